"""Learned linking: read, learn, decide, sum up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module, free_device_memory, free_memory, on_device, placed, to_host
from ..compute.threads import threads_kept
from ..compute.timing import lap
from ..compute.tolerances import FEW
from ..errors import ResourceError, SettingsError
from ..gated.batches import Batches
from ..gated.linking import Links
from ..particles.detections import Detections
from ..pins.rows import Found, PinnedRows
from ..settings.fixed import values_along
from .features import kinds_of, marks_of
from .inference.decide import decide, log_odds
from .inference.jpda import converged, exponent, updated
from .inference.posterior import LinkPosterior
from .learn import Learned, learn
from .learn.fixed import Fixed
from .learn.m_steps import maximised
from .learn.options import LearnOptions
from .learn.pinned import pinned
from .lineage import Lineage, with_divisions, with_merges
from .lineage.again import divided_again
from .lineage.joint import decide_jointly
from .prepare import Reading, read_movie
from .summary import Summary, summarise

if TYPE_CHECKING:
    from ..settings.tracking import TrackingSettings

_GPU_BYTES = 3500
"""Guard: bytes of a GPU's memory a detection takes at most: seven million took 24.5 GB, with the pool."""
_PAIR_BYTES = 110
"""Guard: bytes that a candidate pair takes at most, all arrays of a sweep together."""
_SHARE = 0.8
"""Guard: share of the free memory that candidates may take."""
_SLICE = 0.6
"""Prior: least standard deviation of a step between slices, in their distance."""
Progress = Callable[[int, int], None] | None


@dataclass(frozen=True, eq=False)
class LearnedMovie:
    """What was learned from a movie, and what was decided without pins; arrays are where it was learned."""

    reading: Reading
    learned: Learned
    summary: Summary
    settings: TrackingSettings
    options: LearnOptions
    decided: Decided


class Decided(NamedTuple):
    """Links, by the posterior that they follow from; rows are those of the movie as it was read.

    lineage : Lineage or None
        Without pins, if tracks divide; or if they merge, which `merges` says.
    """

    links: Links
    posterior: LinkPosterior
    lineage: Lineage | None = None
    merges: bool = False


def linked(
    detections: Detections, settings: TrackingSettings, workers: int = 1, progress: Progress = None
) -> tuple[Summary, Links]:
    """Learn a model from the detections of a movie, and link them by the posterior over links and pins.

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
    movie = learned_movie(detections, settings, workers, progress)
    pins = settings.pins_in(detections)
    if pins.pins:  # the CPU alone solves again under them
        made = {name: placed(getattr(movie, name), to_host) for name in ("reading", "learned", "decided")}
        movie = replace(movie, **made)
    links = under_pins(movie, pins).links
    if settings.device == "gpu":
        there = movie.options.device == "gpu"
        here = not there or len(pins.pins) > 0
        batches = Batches(int(there), on_host=int(here))
        links = replace(links, batches=batches, solved_elsewhere=not on_device(links.pairs))
    links = placed(in_given_order(links, movie.reading.order), to_host)
    lap("links in the given order")
    return movie.summary, links


@threads_kept()
def learned_movie(
    detections: Detections, settings: TrackingSettings, workers: int = 1, progress: Progress = None
) -> LearnedMovie:
    """Learn a model, and decide on links without pins. Parameters are those of `linked`."""
    holes, device = settings.max_gap is None, settings.device
    compared = kinds_of(detections.features, settings.column)
    if device == "gpu" and (compared or len(detections) * _GPU_BYTES > free_device_memory()):
        device = "cpu"  # which alone compares columns
    reading = read_movie(detections, settings.spacing, holes=holes, device=device).without_strays()
    lap("sorting by place", reading.position)
    known = values_along(settings.known, reading.axes)
    options = _options(settings, reading, known, workers, device)
    _refuse_large(reading.frame_start, options.nearest, int(_SHARE * free_memory()))
    options = replace(options, on_sweep=_reporting(progress, len(reading.frame), options))
    columns = marks_of(detections.features, reading, settings.column, workers)
    marks = None if columns is None else columns.marks
    learned = learn(reading.position, reading.frame_start, options, time=reading.time, marks=marks)
    lap("learning")
    decided = _decided(learned, settings, workers)
    lap("deciding")
    shorten = settings.max_gap is None
    summary = summarise(reading, learned, known, columns=columns, shorten=shorten, workers=workers)
    lap("errors of what is learned")
    if progress is not None:
        progress(len(detections), len(detections))
    return LearnedMovie(reading, learned, summary, settings, options, decided)


@threads_kept()
def under_pins(movie: LearnedMovie, pins: Found) -> Decided:
    """Links under the learned model and pins, whose rows are those of the detections.

    Raises
    ------
    SettingsError
        If a pin names a detection that learning left out, or pins leave no links of one particle.
    """
    if not pins.pins:
        return movie.decided
    decided = _decided_under(_by_row(movie, pins), movie)
    lap("links under pins")
    return decided


@threads_kept()
def learned_again(movie: LearnedMovie, pins: Found) -> LearnedMovie:
    """The movie with a model that was learned once more, by M-steps from posteriors under pins.

    What varies in space stays, and so do columns and whether tracks divide.
    """
    learned, options, rows = movie.learned, movie.options, _by_row(movie, pins)
    for _ in range(FEW):
        solved = pinned(learned.movie, learned.model, learned.posterior, rows, options)
        omega = exponent(solved.posterior.probability)
        under = updated(*solved[:3], omega=omega, workers=options.workers)
        model = options.fixed.held(learned.movie, maximised(solved.movie, solved.model, under, None))
        posterior = converged(learned.movie, model, learned.posterior, workers=options.workers)
        learned = replace(learned, model=model, posterior=posterior)
    return replace(movie, learned=learned, decided=_decided(learned, movie.settings, options.workers))


def _by_row(movie: LearnedMovie, pins: Found) -> PinnedRows:
    """Pins by the rows of the movie as it was read."""
    order = movie.reading.order
    place = np.full(max(*map(max, pins.rows), int(order.max())) + 1, -1)
    place[order] = np.arange(len(order))
    rows = tuple(tuple(place[list(row)].tolist()) for row in pins.rows)
    if (stray := next((k for k, row in enumerate(rows) if min(row) < 0), None)) is not None:
        raise SettingsError(f"{pins.pins[stray]}: it is far from all others and left out. Remove the pin.")
    return PinnedRows.of(Found(pins.pins, rows, ()), len(movie.learned.movie))


def _options(
    settings: TrackingSettings, reading: Reading, known: dict[str, Any], workers: int, device: str
) -> LearnOptions:
    """Options of `learn` for the given settings."""
    options = LearnOptions(fixed=Fixed(**known), workers=workers, device=device)
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


def _decided(learned: Learned, settings: TrackingSettings, workers: int) -> Decided:
    """The links of maximum expected F1; with divisions, or with merges if nothing divides."""
    solver, exact, links = settings.solver, settings.exact_margins, None
    given = learned.movie, learned.model, learned.posterior
    if settings.divisions:
        links, lineage = with_divisions(*given, solver=solver, exact=exact, workers=workers)
        if lineage.held is not None:
            return Decided(links, lineage.posterior, lineage)
    if settings.merges:  # which the CPU alone looks for; rows of the lineage are those of reversed time
        here = placed(given, to_host)
        merged, lineage = with_merges(*here, solver=solver, exact=exact, workers=workers)
        if lineage.held is not None:
            return Decided(merged, learned.posterior, lineage, merges=True)
    if links is None:
        candidates, p = learned.posterior.candidates, learned.posterior.probability
        links = decide(candidates, p, solver=solver, exact=exact)
    return Decided(links, learned.posterior)


def _decided_under(pins: PinnedRows, movie: LearnedMovie) -> Decided:
    """The same under pins, where it is known whether tracks divide or merge."""
    learned, lineage, settings, options = movie.learned, movie.decided.lineage, movie.settings, movie.options
    solver, exact, workers = settings.solver, settings.exact_margins, options.workers
    divides = lineage is not None and lineage.held is not None and not movie.decided.merges
    if lineage is None or not divides:
        solved = pinned(learned.movie, learned.model, learned.posterior, pins, options)
        posterior = solved.posterior
        links = decide(posterior.candidates, posterior.probability, solver=solver, exact=exact)
        if lineage is not None and lineage.held is not None:
            links, _ = with_merges(
                *solved[:3], solver=solver, exact=exact, workers=workers, known=lineage.held.admission
            )
    else:
        assert lineage.held is not None
        start, none = lineage.posterior, lineage.held.none
        solved = pinned(learned.movie, lineage.held.rates, start, pins, options, none)
        posterior, divisions, p = divided_again(solved, lineage, movie.decided.links.pairs, workers)
        links = decide_jointly(
            posterior.candidates, posterior.probability, divisions, p, solver=solver, exact=exact
        )
    return Decided(_with_divided(links, pins.divided), posterior, lineage, movie.decided.merges)


def _with_divided(links: Links, divided: NDArray[np.int64]) -> Links:
    """The links with those of divisions that are pinned."""
    many = 2 * len(divided)
    gain = np.full(many, log_odds(1.0))
    assert links.probability is not None
    return replace(
        links, pairs=np.concatenate([links.pairs, divided[:, :2], divided[:, ::2]]),
        cost=np.append(links.cost, -gain), margin=np.append(links.margin, gain),
        probability=np.append(links.probability, np.ones(many)),
    )  # fmt: skip


def in_given_order(links: Links, order: NDArray[np.int64]) -> Links:
    """Convert links to the original row numbers, sorted by source and target."""
    xp = array_module(links.pairs)
    pairs = (to_host(order) if xp is np else order)[links.pairs]
    row = xp.full(len(order), -1)
    row[pairs[:, 0]] = xp.arange(len(pairs))
    place = row[row >= 0]
    if len(place) < len(pairs):  # mothers are the source of two
        place = (pairs[:, 0] * len(order) + pairs[:, 1]).argsort()  # numbers that are all different
    assert links.probability is not None
    return replace(
        links, pairs=pairs[place], cost=links.cost[place], margin=links.margin[place],
        probability=links.probability[place],
    )  # fmt: skip
