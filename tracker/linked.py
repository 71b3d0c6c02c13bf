"""Learned linking: read, learn, decide, sum up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import free_device_memory, free_memory
from ._timing import lap
from .batches import Batches
from .columns import marks_of
from .detections import Detections
from .errors import ResourceError
from .inference.decide import decide
from .known import values_along
from .learn import Learned, learn
from .learn.fixed import Fixed
from .learn.options import LearnOptions
from .lineage import with_divisions, with_merges
from .linking import Links
from .reading import Reading, read_movie
from .summary import Summary, summarise

if TYPE_CHECKING:
    from .tracking import TrackingSettings

WORTH_A_GPU_LEARNED = 500_000
"""Number of detections below which `auto` uses the CPU: of so many, 16 cores take 7.0 s and an H100 2.8 s, to
which a second comes for its start."""
_GPU_BYTES = 2500
"""Guard: bytes of a GPU's memory that a detection takes at most."""
_PAIR_BYTES = 110
"""Guard: bytes that a candidate pair takes at most, all arrays of a sweep together."""
_SHARE = 0.8
"""Guard: share of the free memory that candidates may take."""
_SLICE = 0.6
"""Prior: least standard deviation of a step between slices, in their distance."""
Progress = Callable[[int, int], None] | None


def linked(
    detections: Detections, settings: TrackingSettings, workers: int = 1, progress: Progress = None
) -> tuple[Summary, Links]:
    """Learn a model from the detections of a movie, and link them by the posterior over links.

    Parameters
    ----------
    detections : Detections
    settings : TrackingSettings
        Without a `max_distance`.
    workers : int
        Threads; they do not change the result.
    progress : callable, optional
        Called with (detections done, detections in all).

    Returns
    -------
    Summary, Links
        Costs, margins and the gap are in nats; see `decide`.

    Raises
    ------
    ResourceError
        If candidates need more memory than there is.
    """
    holes, device = settings.max_gap is None, settings.device
    reading = read_movie(detections, settings.spacing, holes=holes, device=device).without_strays()
    known = values_along(settings.known, reading.axes)
    options = _options(settings, reading, known, workers)
    _refuse_large(reading.frame_start, options.nearest, int(_SHARE * free_memory()))
    options = replace(options, on_sweep=_reporting(progress, len(reading.frame), options))
    columns = marks_of(detections.features, reading, settings.column, workers)
    marks = None if columns is None else columns.marks
    if device == "gpu" and (marks is not None or len(detections) * _GPU_BYTES > free_device_memory()):
        options = replace(options, device="cpu")  # which alone compares columns
    learned = learn(reading.position, reading.frame_start, options, time=reading.time, marks=marks)
    lap("learning")
    links = _decided(learned, settings, workers)
    if device == "gpu":
        there = options.device == device
        links = replace(links, batches=Batches(int(there), on_host=int(not there)))
    lap("deciding")
    shorten = settings.max_gap is None
    summary = summarise(reading, learned, known, columns=columns, shorten=shorten, workers=workers)
    lap("errors of what is learned")
    if progress is not None:
        progress(len(detections), len(detections))
    return summary, _in_original_order(links, reading.order)


def _options(
    settings: TrackingSettings, reading: Reading, known: dict[str, Any], workers: int
) -> LearnOptions:
    """Options of `learn` for the given settings."""
    options = LearnOptions(fixed=Fixed(**known), workers=workers, device=settings.device)
    if reading.slices.any():
        options = replace(options, least_step=tuple((_SLICE * reading.slices).tolist()))
    if settings.max_gap is None:
        return options
    return replace(options, longest_lag=settings.max_gap + 1)


def _refuse_large(frame_start: NDArray[np.int64], nearest: int, most_bytes: int) -> None:
    """Refuse a movie whose candidate pairs to the nearest detections need more memory."""
    count = np.diff(frame_start)
    pairs = int((count[:-1] * np.minimum(count[1:], nearest)).sum())
    if pairs * _PAIR_BYTES > most_bytes:
        raise ResourceError(
            f"{pairs:,} pairs or more are candidates: {pairs * _PAIR_BYTES / 1e9:.1f} GB, more than the "
            f"{most_bytes / 1e9:.1f} GB that may be used. Link the movie in ranges of frames: --cluster."
        )


def _reporting(progress: Progress, detections: int, options: LearnOptions) -> Callable[[int], None]:
    """Report sweeps as detections done; the last is reported when all is done."""
    covered, work = 0, options.work(detections)

    def report(more: int) -> None:
        nonlocal covered
        covered += more
        if progress is not None:
            progress(min(detections * covered // work, detections - 1), detections)

    return report


def _decided(learned: Learned, settings: TrackingSettings, workers: int) -> Links:
    """The links of maximum expected F1; with divisions, or with merges if nothing divides."""
    posterior, solver, exact = learned.posterior, settings.solver, settings.exact_margins
    for wanted, find in ((settings.divisions, with_divisions), (settings.merges, with_merges)):
        if wanted:
            links, lineage = find(
                learned.movie, learned.model, posterior, solver=solver, exact=exact, workers=workers
            )
            if lineage.model is not None:
                return links
    return decide(posterior.candidates, posterior.probability, solver=solver, exact=exact)


def _in_original_order(links: Links, order: NDArray[np.int64]) -> Links:
    """Convert links to the original row numbers, sorted by source and target."""
    pairs = order[links.pairs]
    place = np.argsort(pairs[:, 0] * len(order) + pairs[:, 1])  # numbers that are all different
    assert links.probability is not None
    return replace(
        links, pairs=pairs[place], cost=links.cost[place], margin=links.margin[place],
        probability=links.probability[place],
    )  # fmt: skip
