"""The posterior over links under a given model, from candidates to the last sweep."""

import numpy as np

from outbid.compute.threads import computing
from outbid.compute.tolerances import NEGLIGIBLE
from outbid.learned.inference.candidates import Search, candidates_of, distinct, pairs_near
from outbid.learned.inference.jpda import converged
from outbid.learned.inference.posterior import LinkPosterior
from outbid.learned.model import Model
from outbid.learned.model.advection import advected
from outbid.learned.model.gate import reaches
from outbid.learned.model.movie import Movie

NEAREST = 10
"""Candidates of each detection and lag."""


def posterior_of(
    movie: Movie, model: Model, *, sweeps: int = 10, still: float = 1e-4, workers: int = 1
) -> LinkPosterior:
    """Probabilities of all candidates within the gate of the model."""
    with computing(workers):
        chance, keys = NEGLIGIBLE * float(np.median(movie.density)), [np.empty(0, np.int64)]
        flow, rows, longest = model.local.flow, np.arange(len(movie)), model.association.longest
        for lag, way in enumerate(advected(movie, flow, rows, longest), 1):
            if model.association.delay[lag - 1] > 0:
                search = Search(
                    lag, NEAREST, movie.position + way, radius=reaches(movie, model.motion, lag, chance)
                )
                keys.append(pairs_near(movie, search))
        start = LinkPosterior.unknown(candidates_of(distinct(keys), movie.frame))
        return converged(movie, model, start, sweeps=sweeps, still=still)
