"""Lagged covariances of displacements: noise, steps and their correlation without a model of links' states.

EM creeps where noise and steps explain each other; moments do not, but they need the links first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior import LinkPosterior
from ..model import Model
from ..model.levels import NEGLIGIBLE, TINY
from ..model.motion import CORRELATION
from ..model.movie import Movie, summed, weighted
from .m_steps import over_one_interval


def by_moments(movie: Movie, model: Model, posterior: LinkPosterior) -> Model:
    """The model with the noise, and the size of the steps along each axis, of the displacements of its links.

    With steps of variance V whose correlation is k, k^2, … and noise r, displacements d have

        E[d d] = V + 2 r,  E[d d'] = k V - r,  E[d d''] = k^2 V.
    """
    now, next_one, after = _covariances(movie, model, posterior)
    if not (now > 0).all():
        return model
    both, last = float((now + 2 * next_one).sum()), max(float(after.sum()), 0.0)
    # k^2 both = (1 + 2 k) last, over all axes
    kept = min((last + np.sqrt(last * (last + both))) / both, CORRELATION[1]) if both > 0 else 0.0
    noise = np.maximum((kept * now - next_one) / (1 + 2 * kept), NEGLIGIBLE * now)
    noise = np.minimum(noise, (1 - NEGLIGIBLE) / 2 * now)
    motion = model.motion
    size = (now - 2 * noise) / weighted(motion.share, motion.variance)
    return replace(model, motion=replace(motion, noise=noise, variance=motion.variance * size))


def _covariances(movie: Movie, model: Model, posterior: LinkPosterior) -> list[NDArray[np.float64]]:
    """(D,) covariances of displacements beside the flow with themselves, the next and the one after that."""
    candidates = posterior.candidates
    tail, head, count = candidates.tail, candidates.head, len(movie)
    p = posterior.probability * over_one_interval(movie, posterior)
    away = movie.position[head] - movie.position[tail] - model.surroundings.flow[tail]
    weight = np.column_stack([np.ones(len(p)), away])
    later, earlier = (
        np.stack([summed(end, p * column, count) for column in weight.T], axis=1) for end in (tail, head)
    )
    products = (
        weighted(p, np.square(weight)),
        (earlier * later).sum(axis=0),
        weighted(p, earlier[tail] * later[head]),
    )
    return [product[1:] / max(float(product[0]), TINY) for product in products]
