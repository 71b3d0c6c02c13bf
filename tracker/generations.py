r"""Generations: how long cells live before they divide, and what that says of every division.

With the hazard h(a) of a division at the age of a frames, and H its sum, a cell that divides at age a has the
likelihood h(a) exp(-H(a - 1)), and one that was followed so long without dividing exp(-H(a)). A division in
the middle of a life makes two of it; the ratio of their likelihoods to that of the one is what it gains.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .families import Families
from .movie import Movie

_DOUBT = 1.0
"""Divisions of no particular age that are taken to be seen at every age."""
_WIDTH = 0.15
"""Ages are told apart by this share of themselves."""


def gains_of_age(
    movie: Movie,
    before: NDArray[np.int64],
    families: Families,
    chance: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(P,) log odds that the ages of the mother and of both daughters add to a division's.

    Parameters
    ----------
    movie : Movie
    before : (N,) int64 array
        The detection linked before each; -1 for none.
    families : Families
    chance : (P,) float64 array
        Probability of each; what is learned of ages, and other divisions of the same life, count by it.
    """
    from . import generations_cpu as kernels

    count, last = len(movie.frame), int(movie.frame[-1]) if len(movie.frame) else 0
    chain, first, final = np.arange(count), movie.frame.copy(), movie.frame.copy()
    kernels.follow(movie.frame, before, chain, final)
    key = chain[families.mother] * (last + 2) + movie.frame[families.mother]
    life, point_of = np.unique(key, return_inverse=True)
    chain_of, frame = np.divmod(life, last + 2)
    divides = np.minimum(np.bincount(point_of, chance, len(life)), 1.0)
    point_start = np.searchsorted(chain_of, np.arange(count + 1))
    born = np.bincount(families.second, chance, count)
    ended = families.ended
    born = np.minimum(born + np.bincount(families.first[ended], chance[ended], count), 1.0)
    lives = (chain == np.arange(count)).nonzero()[0]
    hazard, mean = _hazard(lives, first, final, born, point_start, frame, divides, last)
    of_point, of_birth = np.zeros(len(life)), np.zeros(count)
    kernels.gains(
        lives, first, final, born, point_start, frame, divides, np.log(hazard),
        np.cumsum(hazard) - hazard[0], mean, of_point, of_birth,
    )  # fmt: skip
    gain = of_point[point_of] + of_birth[families.second]
    return np.asarray(gain + np.where(ended, of_birth[families.first], 0.0))


def _hazard(
    lives: NDArray[np.int64],
    first: NDArray[np.int64],
    final: NDArray[np.int64],
    born: NDArray[np.float64],
    point_start: NDArray[np.int64],
    frame: NDArray[np.int64],
    divides: NDArray[np.float64],
    last: int,
) -> tuple[NDArray[np.float64], float]:
    """(last + 3,) hazard by age, and its mean over all ages; ages that are much alike share one."""
    from . import generations_cpu as kernels

    seen, lived = np.zeros(last + 3), np.zeros(last + 3)
    kernels.count_ages(lives, first, final, born, point_start, frame, divides, seen, lived)
    lived = np.cumsum(lived)
    frames = float((final - first)[lives].sum()) + 1.0
    mean = min(max(float(divides.sum()) / frames, 1e-9), 0.5)
    age, few = np.arange(last + 3), round(1 / _WIDTH)
    group = np.where(age <= few, age, few + np.log(np.maximum(age, few) / few) / _WIDTH).astype(np.int64)
    group = np.unique(group, return_inverse=True)[1]
    pooled = (np.bincount(group, seen) + _DOUBT) / (np.bincount(group, lived) + _DOUBT / mean)
    return np.asarray(np.minimum(pooled, 1.0)[group]), mean
