"""Linking: which detection of the next frame follows each detection, for a whole movie.

Frame pairs are independent problems. Runs of consecutive frames are solved together, several runs
at once in threads; neither the length of a run nor the number of threads changes a link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ._arrays import in_threads, on_device, release_device_memory, to_device, to_host
from .detections import Detections
from .errors import ResourceError
from .match import match

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
        Where they are, in the unit of the costs; on a GPU, the work is done there.
    costs : LinkCosts
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
    runs = _runs(start, _DEVICE_RUN if on_device(position) else _RUN)
    at_once = 1 if on_device(position) else max(1, min(workers, len(runs)))
    share = None if most_bytes is None else most_bytes // at_once

    def link_run(run: tuple[int, int]) -> Links:
        first, last = run
        sources, targets = slice(start[first], start[last]), slice(start[first + 1], start[last + 1])
        try:
            return link(
                *(detections, position, sources, targets, (1, 1), costs),
                workers=workers // at_once,
                most_bytes=share,
            )
        except (MemoryError, ResourceError):
            if not on_device(position):
                raise
            release_device_memory()
        if last - first > 1:
            middle = (first + last) // 2
            return joined([link_run((first, middle)), link_run((middle, last))], fallbacks=1)
        host = to_host(position[start[first] : start[last + 1]])
        pair = detections.take(slice(start[first], start[last + 1]))
        links = link_frames(pair, host, costs, workers=workers)
        return replace(links, pairs=links.pairs + start[first], fallbacks=1)

    found = [Links(np.empty((0, 2), np.int64), np.empty(0), np.empty(0), 0.0)]
    for run, links in zip(runs, in_threads(link_run, runs, at_once), strict=True):
        found.append(links)
        if progress is not None:
            progress(int(start[run[1]]), len(detections))
    return joined(found)


def link(
    detections: Detections,
    position: NDArray[np.float64],
    sources: slice | NDArray[np.int64],
    targets: slice | NDArray[np.int64],
    offsets: tuple[int, int],
    costs: LinkCosts,
    *,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Links:
    """Link some detections to others that come offsets[0] to offsets[1] frames later, by one assignment.

    Parameters
    ----------
    sources, targets : slice or increasing int64 array
        Rows that may be linked from, and rows that may be linked to.
    offsets : (int, int)
        Frames from source to target, ends included.
    detections, position, costs, workers, most_bytes
        As in `link_frames`.
    """
    pick = to_device if on_device(position) else np.asarray
    found = match(
        position[sources if isinstance(sources, slice) else pick(sources)],
        position[targets if isinstance(targets, slice) else pick(targets)],
        costs.max_distance,
        cost=costs.cost,
        unmatched_cost=costs.unmatched_cost,
        source_block=detections.frame[sources],
        target_block=detections.frame[targets],
        offsets=offsets,
        solver=costs.solver,
        workers=workers,
        most_bytes=most_bytes,
    )
    pairs = np.column_stack(
        [_rows_of(sources, to_host(found.source)), _rows_of(targets, to_host(found.target))]
    )
    return Links(pairs, to_host(found.cost), to_host(found.margin), found.assignment.gap * found.unit)


def _rows_of(taken: slice | NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the detections that stand at some places among those taken."""
    return index + taken.start if isinstance(taken, slice) else taken[index]


def joined(parts: list[Links], *, fallbacks: int = 0) -> Links:
    """All links of the parts, sorted by source; `fallbacks` are added to theirs."""
    pairs = np.concatenate([part.pairs for part in parts])
    order = np.argsort(pairs[:, 0], kind="stable")
    return Links(
        pairs[order],
        np.concatenate([part.cost for part in parts])[order],
        np.concatenate([part.margin for part in parts])[order],
        max(part.gap for part in parts),
        sum(part.fallbacks for part in parts) + fallbacks,
    )


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
