"""The posterior under a learned model and pins, which hold as factors of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import LEAST, NEGLIGIBLE, OPEN, TINY
from ...pins.paths import with_chains
from ...pins.rows import PinnedRows
from ..inference.candidates import Search, distinct, pairs_near
from ..inference.posterior import LinkPosterior
from ..model import Model
from ..model.advection import advected
from ..model.gate import reaches
from ..model.movie import Movie
from .em import LEAST_REACH
from .options import LearnOptions
from .region import Region, ends_of, reached

_SWEEPS = 5
"""Guard: sweeps under pins, from the messages without them."""


class Solved(NamedTuple):
    """A movie with pins, its model with delays as long as theirs, and the posterior."""

    movie: Movie
    model: Model
    posterior: LinkPosterior
    core: NDArray[np.bool_]  # (N,) detections whose values were computed again


def pinned(
    movie: Movie, model: Model, posterior: LinkPosterior, pins: PinnedRows, options: LearnOptions,
    unlinked: NDArray[np.float64] | None = None,
) -> Solved:  # fmt: skip
    """The posterior under a model that is held, and pins.

    A forced link competes with none in row and column, a forbidden one is no candidate; what is clutter, or
    begins or ends there, has none. Detections that lose a likely candidate get all near ones, which may have
    been dropped before. The model and the exponent of competition stay; sweeps go as far from pins as they
    change probabilities. Movie, model and posterior are as learned without pins; unlinked (2, N) are the
    weights of no successor and of no predecessor, if they are not the model's.
    """
    known, seeds = _with_further(movie, model, posterior, pins, options)
    if len(pins.same):
        chains = _solved(movie, model, known, pins, (seeds, unlinked))
        (tail, head, *_), p = chains.posterior.candidates, chains.posterior.probability
        edges = tail.astype(np.int64), head.astype(np.int64), -np.log(np.clip(p, LEAST, 1.0))
        pins = with_chains(pins, movie.frame, lambda _first, _last: edges)
        known = known.kept(pins.allows(*known.candidates[:2]))
    return _solved(movie, model, known, pins, (seeds, unlinked))


def _with_further(
    movie: Movie, model: Model, posterior: LinkPosterior, pins: PinnedRows, options: LearnOptions
) -> tuple[LinkPosterior, NDArray[np.bool_]]:
    """The candidates that pins allow and near ones of detections that lost likely ones; all that lost any."""
    count, (tail, head, *_) = np.int64(len(movie)), posterior.candidates
    allowed = pins.allows(tail, head)
    less = posterior.probability * ~allowed
    tails, heads = (np.bincount(end, less, minlength=count) > OPEN for end in (tail, head))
    lost, known = ends_of(posterior, ~allowed, len(movie)), posterior.kept(allowed)
    lost |= pins.fresh
    some = (tails | pins.fresh) & ~pins.row_closed, (heads | pins.fresh) & ~pins.column_closed
    keys = distinct([np.empty(0, np.int64), *_near(movie, model, pins, some, options)])
    return known.with_pairs(keys[pins.allows(*np.divmod(keys, count))], movie.frame), lost


def _near(
    movie: Movie, model: Model, pins: PinnedRows, lost: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    options: LearnOptions,
) -> Iterator[NDArray[np.int64]]:  # fmt: skip
    """Keys of the nearest heads of some tails, and of the nearest tails of some heads, within the gates."""
    tails, heads = lost
    if not (tails | heads).any():
        return
    background, flow = NEGLIGIBLE * float(np.median(movie.density)), model.local.flow
    asking = np.flatnonzero(tails)
    for lag, way in enumerate(advected(movie, flow, asking, model.association.longest), 1):
        reach = reaches(movie, model.motion, lag, background)
        reach = np.maximum(reach, LEAST_REACH) if lag == 1 else reach
        ahead = movie.position + lag * flow
        ahead[asking] = movie.position[asking] + way
        sides = {"tails": (tails, ~pins.column_closed), "heads": (~pins.row_closed, heads)}
        for side, wanted in zip(sides, lost, strict=True):
            if wanted.any():
                of, to = sides[side]
                search = Search(lag, options.nearest, ahead, tails=of, heads=to, radius=reach, asking=side)
                yield pairs_near(movie, search)


def _solved(
    movie: Movie, model: Model, known: LinkPosterior, pins: PinnedRows,
    begun: tuple[NDArray[np.bool_], NDArray[np.float64] | None],
) -> Solved:  # fmt: skip
    """The posterior after sweeps, the first about pins and candidates that are new or gone."""
    lost, unlinked = begun
    movie = replace(movie, pins=pins)
    tail, head = pins.forced.T
    known = known.with_pairs(np.sort(tail * np.int64(len(movie)) + head), movie.frame)
    model = _reaching(model, int((movie.frame[head] - movie.frame[tail]).max(initial=0)))
    fresh = ends_of(known, known.ratio == 0, len(movie))
    core = every = reached(known, lost | pins.row_closed | pins.column_closed) | fresh
    for _ in range(_SWEEPS):
        region, part = Region.of(movie, model, known, core)
        after = region.pasted(known, region.updated(part, unlinked))
        moved = ends_of(known, np.abs(after.probability - known.probability) > NEGLIGIBLE, len(movie))
        known, core = after, reached(after, moved)
        every = every | core
        if not moved.any():
            break
    return Solved(movie, model, known, every)


def _reaching(model: Model, lag: int) -> Model:
    """The model with delays up to this lag at least; unlearned ones occur in certain links alone."""
    rates = model.association
    more = np.full(max(lag - rates.longest, 0), TINY)
    ahead, back = (np.append(each, more) for each in (rates.delay, rates.delay_back))
    return replace(model, association=replace(rates, delay=ahead, delay_back=back)) if len(more) else model
