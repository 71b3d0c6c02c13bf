"""Linking: which detection of the next frame follows each detection, for a whole movie.

Frame pairs are independent problems. Runs of consecutive frames are solved together, several runs
at once in threads; neither the length of a run nor the number of threads changes a link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import in_threads, lap, release_device_memory, to_host
from .detections import Detections
from .errors import ResourceError
from .match import match

Place = Callable[[NDArray[np.float64]], Any]
"""Brings an array to where the work is done."""

_RUN = 30_000
"""Detections in a run of frames: enough to make a call worth it, few enough to stay in the cache."""

_DEVICE_RUN = 4_000_000
"""The same on a GPU: enough to fill it."""


@dataclass(frozen=True, eq=False)
class Links:
    """Links found by assignment, with their proof.

    Parameters
    ----------
    pairs : (E, 2) int64 array
        Rows of source and target detection.
    cost, margin : (E,) float64 arrays
        As in `Match`.
    gap : float
        Largest gap between cost and lower bound among the problems solved, in the unit of the cost;
        0 proves every link set optimal.
    fallbacks : int
        How often a problem did not fit the GPU's memory and was halved or solved on the host.
    probability : (E,) float64 array or None
        How likely each link is, where a model tells.
    """

    pairs: NDArray[np.int64]
    cost: NDArray[np.float64]
    margin: NDArray[np.float64]
    gap: float
    fallbacks: int = 0
    probability: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class LinkCosts:
    """What `match` needs to know beside the points; see there."""

    max_distance: float
    cost: str = "euclidean"
    unmatched_cost: float | None = None
    solver: str = "bid_and_augment"


def link_frames(
    detections: Detections,
    position: NDArray[np.float64],
    costs: LinkCosts,
    *,
    place: Place = np.asarray,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    most_bytes: int | None = None,
) -> Links:
    """Link every frame to the next by an optimal assignment with births and deaths.

    Parameters
    ----------
    detections : Detections
        N of them, for their frames.
    position : (N, 3) float64 array
        Where they are, in the unit of the costs.
    costs : LinkCosts
    place : callable
        Brings positions to where the work is done; `to_device` for a GPU. What does not fit there is halved,
        down to a pair of frames, and that is linked on the host.
    workers : int
        Threads.
    progress : callable, optional
        Told (detections done, detections in all) after every run of frames.
    most_bytes : int, optional
        Memory that the candidate pairs may take, all threads together.

    Returns
    -------
    Links
        Sorted by source, on the host.

    Raises
    ------
    SettingsError, ResourceError
        As `match`.

    Examples
    --------
    >>> seen = Detections.from_table([0, 0, 1, 1], [[0, 0, 0], [0, 9, 9], [0, 9, 8], [0, 0, 1]])
    >>> link_frames(seen, seen.position, LinkCosts(max_distance=3.0)).pairs.tolist()
    [[0, 3], [1, 2]]
    """
    start = detections.frame_start
    elsewhere = place is not np.asarray
    runs = _runs(start, _DEVICE_RUN if elsewhere else _RUN)
    at_once = 1 if elsewhere else max(1, min(workers, len(runs)))
    share = None if most_bytes is None else most_bytes // at_once

    def link_run(run: tuple[int, int], place: Place = place) -> Links:
        first, last = run
        begin, middle, end, stop = start[[first, first + 1, last, last + 1]].tolist()
        try:
            here = place(position[begin:stop])
            lap("copy", here)
            links = link(
                *((here[: end - begin], here[middle - begin :]), (1, 1), costs),
                blocks=(detections.frame[begin:end], detections.frame[middle:stop]),
                workers=workers // at_once,
                most_bytes=share,
            )
            links.pairs[:] += [begin, middle]
            return links
        except (MemoryError, ResourceError):
            if place is np.asarray:
                raise
        # Behind the handler, which holds on to what the GPU holds.
        here = None
        release_device_memory()
        if last - first == 1:
            return replace(link_run(run, np.asarray), fallbacks=1)
        half = (first + last) // 2
        return joined([link_run((first, half)), link_run((half, last))], fallbacks=1)

    found = [Links(np.empty((0, 2), np.int64), np.empty(0), np.empty(0), 0.0)]
    for run, links in zip(runs, in_threads(link_run, runs, at_once), strict=True):
        found.append(links)
        if progress is not None:
            progress(int(start[run[1]]), len(detections))
    return joined(found)


def link(
    points: tuple[NDArray[np.float64], NDArray[np.float64]],
    offsets: tuple[int, int],
    costs: LinkCosts,
    *,
    blocks: tuple[NDArray[np.int32], NDArray[np.int32]],
    workers: int = 1,
    most_bytes: int | None = None,
) -> Links:
    """Link points to others that come offsets[0] to offsets[1] frames later, by one assignment.

    Parameters
    ----------
    points : ((R, 3), (C, 3)) float64 arrays
        What may be linked from, and what may be linked to; on a GPU, the work is done there.
    offsets : (int, int)
        Frames from source to target, ends included.
    blocks : ((R,), (C,)) int32 arrays
        Their frames, non-decreasing.
    costs, workers, most_bytes
        As in `link_frames`.

    Returns
    -------
    Links
        Whose pairs are rows of the two sets of points.
    """
    found = match(
        *points,
        costs.max_distance,
        cost=costs.cost,
        unmatched_cost=costs.unmatched_cost,
        source_block=blocks[0],
        target_block=blocks[1],
        offsets=offsets,
        solver=costs.solver,
        workers=workers,
        most_bytes=most_bytes,
    )
    pairs = np.column_stack([to_host(found.source), to_host(found.target)])
    cost, margin, gap = to_host(found.cost), to_host(found.margin), found.assignment.gap * found.unit
    lap("copy", found.source)
    return Links(pairs, cost, margin, gap)


def joined(parts: list[Links], *, fallbacks: int = 0) -> Links:
    """All links of the parts, sorted by source; `fallbacks` are added to theirs."""
    gap, fallbacks = max(part.gap for part in parts), sum(part.fallbacks for part in parts) + fallbacks
    parts = [part for part in parts if len(part.pairs)] or parts[:1]
    if len(parts) == 1:
        return replace(parts[0], gap=gap, fallbacks=fallbacks)
    pairs = np.concatenate([part.pairs for part in parts])
    cost, margin = (np.concatenate([getattr(part, of) for part in parts]) for of in ("cost", "margin"))
    if (pairs[1:, 0] < pairs[:-1, 0]).any():
        order = np.argsort(pairs[:, 0], kind="stable")
        pairs, cost, margin = pairs[order], cost[order], margin[order]
    return Links(pairs, cost, margin, gap, fallbacks)


def _runs(frame_start: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Runs of frames (first, last) that overlap in one frame and hold about `most` detections."""
    runs, first, final = [], 0, len(frame_start) - 2
    # Only frames that hold something: numbers may be times, with many empty frames between.
    for frame in np.nonzero(np.diff(frame_start))[0].tolist():
        if frame > first and frame_start[frame + 1] - frame_start[first] > most:
            runs.append((first, frame))
            first = frame
    if final > first:
        runs.append((first, final))
    return runs
