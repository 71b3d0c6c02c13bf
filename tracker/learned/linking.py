"""Learned linking: read, learn, decide, sum up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import (
    array_module,
    free_device_memory,
    free_memory,
    on_device,
    placed,
    to_host,
)
from ..compute.threads import computing
from ..compute.timing import lap
from ..compute.tolerances import FEW
from ..errors import ResourceError, SettingsError
from ..gated.batches import Batches
from ..gated.linking import Links
from ..particles.detections import Detections
from ..pins.edits import Edited
from ..pins.rows import Found, PinnedRows
from ..settings.fixed import values_along
from ..settings.tracking import TrackingSettings
from .edited import Grown
from .features import features_of, kinds_of
from .inference.decide import log_odds
from .inference.encounters import with_encounters
from .inference.jpda import converged, exponent, updated
from .latest import LatestColumns
from .learn import Fit, learn
from .learn.fixed import Fixed
from .learn.m_steps import m_step
from .learn.options import LearnOptions
from .learn.pinned import pinned
from .lineage.hypotheses import Hypothesis, hypothesis
from .prepare import Reading, read_movie
from .summary import Summary, summarise

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
class FittedMovie:
    """What was learned from a movie, and what was decided without pins; arrays are where it was learned."""

    reading: Reading
    fit: Fit
    summary: Summary
    settings: TrackingSettings
    options: LearnOptions
    decided: Decided
    fresh: NDArray[np.int64] | None = None
    """(K,) Rows of detections of which links are sought with the pins; None if all are as learned from."""


class Decided(NamedTuple):
    """Links, and what tracks do, from which they follow; rows are those of the movie as it was read."""

    links: Links
    tracks: Hypothesis


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
    movie = fit_movie(detections, settings, workers, progress)
    edits = settings.edited(detections)
    pins = settings.pins_in(edits.detections)
    if settings.stated:  # the CPU alone solves again under them
        names = ("reading", "decided", *(() if edits.detections is detections else ("fit",)))
        made = {name: placed(getattr(movie, name), to_host) for name in names}
        movie = with_edits(replace(movie, **made), detections, edits)
    links = under_pins(movie, pins).links
    if settings.device == "gpu":
        there = movie.options.device == "gpu"
        here = not there or len(settings.stated) > 0
        batches = Batches(int(there), on_host=int(here))
        links = replace(links, batches=batches, solved_elsewhere=not on_device(links.pairs))
    links = placed(in_given_order(links, movie.reading.order), to_host)
    lap("links in the given order")
    return movie.summary, links


def fit_movie(
    detections: Detections, settings: TrackingSettings, workers: int = 1, progress: Progress = None
) -> FittedMovie:
    """Learn a model, and decide on links without pins. Parameters are those of `linked`."""
    holes, device = settings.max_gap is None, settings.device
    compared = kinds_of(detections.features, settings.features)
    by_host = compared or LearnOptions().whole(len(detections))  # which alone compares columns, and learns
    if device == "gpu" and (by_host or len(detections) * _GPU_BYTES > free_device_memory()):
        device = "cpu"
    reading = read_movie(detections, settings.spacing, holes=holes, device=device).without_outliers()
    lap("sorting by place", reading.position)
    known = values_along(settings.fixed, reading.axes)
    options = replace(_options(settings, reading, known), workers=workers, device=device)
    _refuse_large(reading.frame_start, options.nearest, int(_SHARE * free_memory()))
    options = replace(options, on_sweep=_reporting(progress, len(reading.frame), options))
    with computing(workers):
        columns = features_of(detections.features, reading, settings.features)
        features = None if columns is None else columns.features
        fit = learn(reading.position, reading.frame_start, options, time=reading.time, features=features)
        lap("learning")
        decided = _decided(fit, settings)
        lap("deciding")
        shorten = settings.max_gap is None
        summary = summarise(reading, fit, known, columns=columns, shorten=shorten)
        if columns is not None:
            latest = LatestColumns.of(detections.features, reading, settings.features, fit.model.features)
            summary = replace(summary, latest=latest)
        lap("summing up")
    if progress is not None:
        progress(len(detections), len(detections))
    return FittedMovie(
        reading=reading, fit=fit, summary=summary, settings=settings, options=options, decided=decided
    )


def with_edits(movie: FittedMovie, detections: Detections, edits: Edited) -> FittedMovie:
    """The movie with detections that were added, moved and removed; `under_pins` links them.

    The model stays as it was learned from the detections before. A detection before their first frame or
    after their last one gets no link.
    """
    if edits.detections is detections:
        return movie
    fit, (links, tracks) = movie.fit, movie.decided
    grown = Grown.of(movie.reading, detections, edits, movie.settings.spacing)
    model = fit.model.take("row", grown.source)
    fit = replace(fit, movie=grown.movie(fit.movie), model=model, posterior=grown.posterior(fit.posterior))
    links = replace(links, pairs=grown.row[links.pairs])
    decided = Decided(links, grown.hypothesis(tracks))
    return replace(movie, reading=grown.reading, fit=fit, decided=decided, fresh=grown.fresh)


def under_pins(movie: FittedMovie, pins: Found) -> Decided:
    """Links under the learned model and pins, whose rows are those of the detections.

    Raises
    ------
    SettingsError
        If a pin names a detection that learning left out, or pins leave no links of one particle.
    """
    if not pins.pins and movie.fresh is None:
        return movie.decided
    rows, before, settings = _by_row(movie, pins), movie.decided, movie.settings
    with computing(movie.options.workers):
        tracks = before.tracks.under(rows, before.links, movie.options)
        links = tracks.decide(settings.solver, exact=settings.exact_margins)
        links = with_encounters(tracks.movie, movie.fit.model, links)
    lap("links under pins")
    return Decided(_with_divided(links, rows.divided), tracks)


def fit_again(movie: FittedMovie, detections: Detections, edits: Edited, pins: Found) -> FittedMovie:
    """The movie with a model that was learned once more, by M-steps from posteriors under edits and pins.

    What varies in space stays, and so do columns and whether tracks divide.
    """
    edited = with_edits(movie, detections, edits)
    fit, options, rows = edited.fit, movie.options, _by_row(edited, pins)
    with computing(options.workers):
        for _ in range(FEW):
            solved = pinned(fit.movie, fit.model, fit.posterior, rows, options)
            under = updated(*solved[:3], omega=exponent(solved.posterior.probability))
            model = options.fixed.apply(fit.movie, m_step(solved.movie, solved.model, under, None))
            posterior = converged(fit.movie, model, fit.posterior)
            fit = replace(fit, model=model, posterior=posterior)
        if edited.fresh is not None:
            model = fit.model.take("row", np.setdiff1d(np.arange(len(fit.movie)), edited.fresh))
            fit = replace(
                movie.fit, model=model, posterior=converged(movie.fit.movie, model, movie.fit.posterior)
            )
        return replace(movie, fit=fit, decided=_decided(fit, movie.settings))


def _by_row(movie: FittedMovie, pins: Found) -> PinnedRows:
    """Pins by the rows of the movie as it was read."""
    order = movie.reading.order
    gone, last = order < 0, max(int(order.max()), *map(max, pins.rows), 0)
    place = np.full(last + 1, -1)
    place[order[~gone]] = np.flatnonzero(~gone)
    rows = tuple(tuple(place[list(row)].tolist()) for row in pins.rows)
    if (outlier := next((k for k, row in enumerate(rows) if min(row) < 0), None)) is not None:
        raise SettingsError(f"{pins.pins[outlier]}: it is far from all others and left out. Remove the pin.")
    stated = PinnedRows.of(Found(pins.pins, rows, ()), len(order))
    return stated if movie.fresh is None else stated.beside(gone, movie.fresh)


def _options(settings: TrackingSettings, reading: Reading, known: dict[str, Any]) -> LearnOptions:
    """Options of `learn` for the given settings."""
    options = LearnOptions(fixed=Fixed(**known))
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


def _decided(fit: Fit, settings: TrackingSettings) -> Decided:
    """The links of maximum expected F1, without pins."""
    tracks = hypothesis(
        fit.movie, fit.model, fit.posterior, divisions=settings.divisions, merges=settings.merges
    )
    links = tracks.decide(settings.solver, exact=settings.exact_margins)
    return Decided(with_encounters(fit.movie, fit.model, links), tracks)


def _with_divided(links: Links, divided: NDArray[np.int64]) -> Links:
    """The links with those of divisions that are pinned."""
    pairs = np.concatenate([divided[:, :2], divided[:, ::2]])
    gain = np.full(len(pairs), log_odds(1.0))
    return links.join(Links(pairs, -gain, gain, links.gap, probability=np.ones(len(pairs))), "link")


def in_given_order(links: Links, order: NDArray[np.int64]) -> Links:
    """Convert links to the original row numbers, sorted by source and target."""
    xp = array_module(links.pairs)
    pairs = (to_host(order) if xp is np else order)[links.pairs]
    row = xp.full(int(order.max()) + 1 if len(order) else 0, -1)
    row[pairs[:, 0]] = xp.arange(len(pairs))
    place = row[row >= 0]
    if len(place) < len(pairs):  # mothers are the source of two
        place = (pairs[:, 0] * len(row) + pairs[:, 1]).argsort()  # numbers that are all different
    return replace(links, pairs=pairs).take("link", place)
