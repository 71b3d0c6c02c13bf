"""The posterior over links under a model that is given, with all candidates within its gate."""

from __future__ import annotations

import numpy as np

from outbid.inference.candidates import Search, candidates_of, distinct, pairs_near
from outbid.inference.posterior import LinkPosterior, settled
from outbid.model import Model
from outbid.model.advection import advected
from outbid.model.gate import CHANCE, reaches
from outbid.model.movie import Movie


def infer(
    movie: Movie, model: Model, *, sweeps: int = 10, still: float = 1e-4, workers: int = 1
) -> LinkPosterior:
    """The probability of each candidate link of a movie, and of each birth, death and clutter."""
    chance, keys = CHANCE * float(np.median(movie.density)), [np.empty(0, np.int64)]
    flow, rows, longest = model.surroundings.flow, np.arange(len(movie)), model.association.longest
    for lag, way in enumerate(advected(movie, flow, rows, longest, workers=workers), 1):
        if model.association.delay[lag - 1] > 0:
            reach = reaches(movie, model.motion, lag, chance)
            search = Search(lag, 10, movie.position + way, radius=reach)
            keys.append(pairs_near(movie, search, workers=workers))
    start = LinkPosterior.unknown(candidates_of(distinct(keys), movie.frame))
    return settled(movie, model, start, sweeps=sweeps, still=still, workers=workers)
