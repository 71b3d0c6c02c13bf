"""The posterior under a learned model and pins, which hold as factors of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..inference.posterior import LinkPosterior, swept
from ..model import Model
from ..model.movie import Movie
from ..pins.paths import Edges, with_chains
from ..pins.rows import PinnedRows
from .em import keys_near
from .options import LearnOptions

_SWEEPS = 4
"""Guard: sweeps under pins, from the messages without them."""
_RARE = 1e-9
"""Guard: probability of a delay that is longer than any that was learned, where a link of it is certain."""
_LEAST = 1e-6
"""Error level: probability of a link below which it costs no more in a chain."""


def pinned(
    movie: Movie, model: Model, posterior: LinkPosterior, pins: PinnedRows, options: LearnOptions
) -> tuple[Movie, Model, LinkPosterior]:
    """The movie with pins, the model with delays as long as theirs, and the posterior under both.

    A forced link has no rivals in row and column, a forbidden one is no candidate; what is clutter, or
    begins or ends there, has none. Detections that lose a candidate get all near ones, which may have been
    dropped before. The model and the exponent of rivals stay.

    Parameters
    ----------
    movie, model, posterior
        As learned, without pins.
    pins : PinnedRows
        Their rows are those of the movie.
    options : LearnOptions
    """
    free = replace(movie, pins=pins)
    known = _with_further(free, model, posterior, options)
    if len(pins.same):
        chains = _settled(free, *_with_forced(free, model, known), options)
        pins = with_chains(pins, movie.frame, _edges_of(chains))
        free = replace(movie, pins=pins)
        candidates = known.candidates
        known = known.kept(pins.allows(candidates.tail, candidates.head))
    model, known = _with_forced(free, model, known)
    return free, model, _settled(free, model, known, options)


def _with_further(
    movie: Movie, model: Model, posterior: LinkPosterior, options: LearnOptions
) -> LinkPosterior:
    """The candidates that pins allow, and all near ones of detections that lost some."""
    pins, count = movie.pins, len(movie)
    assert pins is not None
    tail, head, *_ = posterior.candidates
    allowed = pins.allows(tail, head)
    tails, heads = (np.bincount(end[~allowed], minlength=count) > 0 for end in (tail, head))
    tails, heads = tails & ~pins.row_closed, heads & ~pins.column_closed
    known = posterior.kept(allowed)
    for lost in ((tails, ~pins.column_closed), (~pins.row_closed, heads)):
        if lost[0].any() and lost[1].any():
            keys = keys_near(movie, model, posterior, lost, options)
            known = known.with_pairs(keys[pins.allows(*np.divmod(keys, count))], movie.frame)
    return known


def _with_forced(movie: Movie, model: Model, posterior: LinkPosterior) -> tuple[Model, LinkPosterior]:
    """The posterior with forced links among its candidates, and a model that reaches as far."""
    assert movie.pins is not None
    tail, head = movie.pins.forced.T
    posterior = posterior.with_pairs(np.sort(tail * np.int64(len(movie)) + head), movie.frame)
    rates = model.association
    more = int((movie.frame[head] - movie.frame[tail]).max(initial=0)) - rates.longest
    if more > 0:
        ahead, back = (np.append(each, np.full(more, _RARE)) for each in (rates.delay, rates.delay_back))
        model = replace(model, association=replace(rates, delay=ahead, delay_back=back))
    return model, posterior


def _settled(movie: Movie, model: Model, posterior: LinkPosterior, options: LearnOptions) -> LinkPosterior:
    """The posterior after some sweeps."""
    omega = posterior.omega
    for _ in range(_SWEEPS):
        posterior = swept(movie, model, posterior, omega=omega, with_moments=False, workers=options.workers)
    return posterior


def _edges_of(posterior: LinkPosterior) -> Callable[[int, int], Edges]:
    """What gives the links that a chain may consist of, by their probabilities."""
    tail, head, *_ = posterior.candidates
    cost = -np.log(np.clip(posterior.probability, _LEAST, 1.0))
    edges: Edges = (tail.astype(np.int64), head.astype(np.int64), cost)
    return lambda _first, _last: edges
