"""Linking: which detection of the next frame follows each detection, for a whole movie.

Frame pairs are independent problems. Several consecutive frames (a run) are solved together, and several
runs at the same time in threads; neither the length of a run nor the number of threads changes a link. On
a GPU every thread has its own CUDA stream, so that one run of frames is copied to or from the GPU while
another is solved. Solvers whose time grows faster than the size of the problem get one frame pair at a
time, on the GPU as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assignment import AbstractAssignmentSolver, solver_named
from ..compute.arrays import LINK, Arrays, free_memory, on_device, release_device_memory, to_host
from ..compute.streams import in_lanes
from ..compute.threads import in_threads
from ..compute.timing import lap
from ..errors import ResourceError
from ..particles.detections import Detections
from ..pins.rows import PinnedRows
from ..settings.costs import COSTS
from .batches import Batches, candidates_each, largest_matrix, plan, plan_pairs, room_for_candidates, runs
from .matching import match, nearest_image

Place = Callable[[NDArray[np.float64]], Any]
"""Copies an array to the device that does the work."""

NO_LIMIT = 2**62
"""Memory limit that no machine reaches."""

RUN = 30_000
"""Detections in a run of frames: enough to amortise a call, few enough to stay in the cache."""

_LARGE = 1_000_000
"""Links from which on threads concatenate them."""

CANDIDATE_SHARE = 1 / 3
"""Share of main memory for candidates; costs and solver need about twice as much in addition."""


@dataclass(frozen=True, eq=False)
class Links(Arrays):
    """Links found by assignment, with their optimality gap.

    Parameters
    ----------
    pairs : (E, 2) int64 array
        Rows of source and target detection.
    cost, margin : (E,) float64 arrays
        As in `Match`.
    gap : float
        Largest gap between cost and lower bound among the problems solved, in the unit of the cost;
        0 proves every link set optimal.
    batches : Batches
        Counts of the batches on a GPU.
    probability : (E,) float64 array or None
        How likely each link is, where a model gives it.
    solved_elsewhere : bool
        Whether points or probabilities were on a GPU, and links were found on the host: because the solver
        has no kernels for them there, or by divisions or pins.
    """

    pairs: NDArray[np.int64] = field(metadata=LINK)
    cost: NDArray[np.float64] = field(metadata=LINK)
    margin: NDArray[np.float64] = field(metadata=LINK)
    gap: float
    batches: Batches = field(default_factory=Batches)
    probability: NDArray[np.float64] | None = field(metadata=LINK, default=None)
    solved_elsewhere: bool = False


def no_links() -> Links:
    """An empty set of links."""
    return Links(np.empty((0, 2), np.int64), np.empty(0), np.empty(0), 0.0)


_Run = tuple[int, int]
"""First and last frame of those that are linked together."""


@dataclass(frozen=True)
class LinkCosts:
    """Costs, gate, solver and other arguments of `match`, without the points; and pins, by row."""

    max_distance: float
    cost: str = "euclidean"
    unmatched_cost: float | None = None
    solver: str | AbstractAssignmentSolver = "bid_and_augment"
    exact_margins: bool = False
    box: tuple[float, float, float] | None = None
    pins: PinnedRows | None = None

    @property
    def chosen(self) -> AbstractAssignmentSolver:
        """The solver object that the setting `solver` names."""
        return solver_named(self.solver) if isinstance(self.solver, str) else self.solver

    def with_workers(self, workers: int) -> LinkCosts:
        """Copy of these costs whose solver uses the given number of threads."""
        return replace(self, solver=self.chosen.with_workers(max(1, workers)))


_Movie = tuple[Detections, NDArray[np.float64], LinkCosts]


def link_frames(
    detections: Detections,
    position: NDArray[np.float64],
    costs: LinkCosts,
    *,
    place: Place = np.asarray,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    memory: int = NO_LIMIT,
    cache: dict[_Run, Links] | None = None,
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
        Brings positions to where the work is done; `to_device` for a GPU. Batches are planned to fit its
        memory; what does not is halved, down to a pair of frames, and that is linked on the host.
    workers : int
        Threads.
    progress : callable, optional
        Called with (detections done, detections in all) after every run of frames.
    memory : int
        Bytes that may be used there, all threads together.
    cache : dict, optional
        Links of runs of frames in which no pin acts, from earlier calls on the host with the same costs;
        those found are added.

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
    solver = costs.chosen
    movie = detections, position, costs
    if place is np.asarray:
        cuts = runs(start, RUN if solver.is_near_linear else 0)
        threads = workers
        if solver.needs_matrix:
            threads = min(workers, max(1, memory // max(1, largest_matrix(start))))
        # As many as can be done in equal rounds: 19 of a million on 16 cores ten at a time, for all share
        # the way to the memory.
        rounds = -(-len(cuts) // threads) or 1
        at_once = -(-len(cuts) // rounds) or 1
        movie = detections, position, costs.with_workers(workers // at_once)
        share = int(CANDIDATE_SHARE * memory / at_once)
        work = partial(_kept, {} if cache is None else cache, movie, (workers // at_once, share))
        batches = Batches()
        solved: Iterator[Links | None] = in_threads(work, cuts, at_once)
    else:
        each = candidates_each(position, start, costs.max_distance)
        if solver.is_near_linear:
            cuts, at_once, planned = plan(start, each, memory)
        else:
            cuts, at_once, planned = plan_pairs(start, each, memory, as_matrix=solver.needs_matrix)
        lap("planning")
        batches = Batches(planned_bytes=planned)
        solved = in_lanes(partial(_tried, movie, place, workers, memory // at_once), cuts, at_once)
    found: list[Links | None] = []
    for run, links in zip(cuts, solved, strict=True):
        found.append(links)
        if progress is not None:
            progress(int(start[run[1]]), len(detections))
    # What did not fit beside others has the device to itself now.
    whole = [
        _tried_alone(movie, place, workers, memory, run) if links is None else links
        for run, links in zip(cuts, found, strict=True)
    ]
    return joined([no_links(), *whole, _stated(position, costs)], batches)


def _kept(cache: dict[_Run, Links], movie: _Movie, room: tuple[int, int], run: _Run) -> Links:
    """The links of a run on the host: known ones, or those found, which are kept where no pin acts."""
    detections, _, costs = movie
    begin, middle, end, stop = detections.frame_start[[run[0], run[0] + 1, run[1], run[1] + 1]].tolist()
    if costs.pins is None or not costs.pins.acts(slice(begin, end), slice(middle, stop)):
        if run not in cache:
            cache[run] = _link_run((*movie[:2], replace(costs, pins=None)), np.asarray, *room, run)
        return cache[run]
    return _link_run(movie, np.asarray, *room, run)


def _stated(position: NDArray[np.float64], costs: LinkCosts) -> Links:
    """The links that pins state, which leave the problem: nothing is cheaper without them."""
    pairs = np.empty((0, 2), np.int64) if costs.pins is None else costs.pins.pairs
    step = position[pairs[:, 1]] - position[pairs[:, 0]]
    if costs.box is not None:
        step = nearest_image(step, costs.box)
    cost = np.linalg.norm(step, axis=1) ** COSTS[costs.cost]
    return Links(pairs, cost, np.full(len(pairs), np.inf), 0.0)


def _link_run(movie: _Movie, place: Place, workers: int, most_bytes: int, run: _Run) -> Links:
    """Link the frames of a run, each to the next."""
    detections, position, costs = movie
    first, last = run
    rows = detections.frame_start[[first, first + 1, last, last + 1]].tolist()
    begin, middle, end, stop = rows
    if costs.pins is not None:
        tails, heads = np.arange(begin, end), np.arange(middle, stop)
        sides = tails[~costs.pins.row_closed[tails]], heads[~costs.pins.column_closed[heads]]
        return link_rows(movie, sides, (1, 1), place, workers, most_bytes)
    here = place(position[begin:stop])
    lap("copy", here)
    links = link(
        *((here[: end - begin], here[middle - begin :]), (1, 1), costs),
        blocks=(detections.frame[begin:end], detections.frame[middle:stop]),
        workers=workers,
        most_bytes=most_bytes,
    )
    links.pairs[:] += [begin, middle]
    return links


def _tried(movie: _Movie, place: Place, workers: int, memory: int, run: _Run) -> Links | None:
    """Run `_link_run` on a device as one batch; None if it does not fit the memory."""
    size = int(np.diff(movie[0].frame_start[[run[0], run[1] + 1]])[0])
    links = if_it_fits(_link_run, movie, place, workers, room_for_candidates(size, memory), run)
    return None if links is None else replace(links, batches=one_batch(links))


def _tried_alone(movie: _Movie, place: Place, workers: int, memory: int, run: _Run) -> Links:
    """Link one batch alone on the device; halve it until it fits, and at last use the host."""
    release_device_memory()
    [links] = in_lanes(partial(_tried, movie, place, workers, memory), [run], 1)
    if links is not None:
        return links
    first, last = run
    if last - first == 1:
        release_device_memory()
        links = _link_run(movie, np.asarray, workers, host_share(), run)
        return replace(links, batches=Batches(on_host=1))
    half = (first + last) // 2
    halves = (first, half), (half, last)
    return joined([_tried_alone(movie, place, workers, memory, run) for run in halves], Batches(halvings=1))


def link_rows(
    movie: _Movie,
    sides: tuple[NDArray[np.int64], NDArray[np.int64]],
    offsets: tuple[int, int],
    place: Place,
    workers: int,
    most_bytes: int,
) -> Links:
    """Link some detections to others, given the rows of both; without the links that pins forbid."""
    detections, position, costs = movie
    tails, heads = sides
    no = None
    if costs.pins is not None:
        some = costs.pins.forbidden
        some = some[np.isin(some[:, 0], tails) & np.isin(some[:, 1], heads)]
        no = np.column_stack([np.searchsorted(side, rows) for side, rows in zip(sides, some.T, strict=True)])
    found = link(
        *((place(position[tails]), place(position[heads])), offsets, costs),
        blocks=(detections.frame[tails], detections.frame[heads]), workers=workers, most_bytes=most_bytes,
        forbidden=no,
    )  # fmt: skip
    return replace(found, pairs=np.column_stack([tails[found.pairs[:, 0]], heads[found.pairs[:, 1]]]))


def link(
    points: tuple[NDArray[np.float64], NDArray[np.float64]],
    offsets: tuple[int, int],
    costs: LinkCosts,
    *,
    blocks: tuple[NDArray[np.int32], NDArray[np.int32]],
    workers: int = 1,
    most_bytes: int | None = None,
    forbidden: NDArray[np.int64] | None = None,
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
    forbidden : (M, 2) int64 array, optional
        As in `match`.

    Returns
    -------
    Links
        Whose pairs are rows of the two sets of points.
    """
    found = match(
        *points, costs.max_distance, cost=costs.cost, unmatched_cost=costs.unmatched_cost,
        source_block=blocks[0], target_block=blocks[1], offsets=offsets, solver=costs.solver,
        exact=costs.exact_margins, workers=workers, most_bytes=most_bytes, box=costs.box,
        forbidden=forbidden,
    )  # fmt: skip
    pairs = np.column_stack([to_host(found.source), to_host(found.target)])
    cost, margin, gap = to_host(found.cost), to_host(found.margin), found.assignment.gap * found.unit
    lap("copy", found.source)
    elsewhere = on_device(points[0]) and not on_device(found.assignment.col_of_row)
    return Links(pairs, cost, margin, gap, solved_elsewhere=elsewhere)


def if_it_fits(work: Callable[..., Links], *given: object) -> Links | None:
    """The links that the work returns, or None if it does not fit the memory."""
    try:
        return work(*given)
    except (MemoryError, ResourceError):
        return None


def one_batch(links: Links) -> Batches:
    """The account of links that were found on a device as one batch."""
    return Batches(without_kernels=1) if links.solved_elsewhere else Batches(count=1)


def host_share() -> int:
    """Bytes of free main memory that candidates may use when a GPU has no space for them."""
    return int(0.8 * CANDIDATE_SHARE * free_memory())


def joined(parts: list[Links], *more: Batches) -> Links:
    """Concatenate the links of all parts, sorted by source, and add batches to their account."""
    gap = max(part.gap for part in parts)
    batches = sum([part.batches for part in parts] + list(more), Batches())
    parts = [part for part in parts if len(part.pairs)] or parts[:1]
    if len(parts) == 1:
        return replace(parts[0], gap=gap, batches=batches)
    names = ("pairs", "cost", "margin")
    threads = len(names) if sum(len(part.pairs) for part in parts) > _LARGE else 1
    pairs, cost, margin = in_threads(
        lambda name: np.concatenate([getattr(part, name) for part in parts]), names, threads
    )
    if (pairs[1:, 0] < pairs[:-1, 0]).any():
        order = np.argsort(pairs[:, 0], kind="stable")
        pairs, cost, margin = pairs[order], cost[order], margin[order]
    return Links(pairs, cost, margin, gap, batches)
