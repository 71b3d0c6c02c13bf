r"""Generations: ages at which cells divide, and the resulting log odds of each division.

Let h(a) be the hazard of a division at the age of a frames, and H its cumulative sum. A cell that divides at
age a has the likelihood h(a) exp(-H(a - 1)); a cell followed to age a without a division has exp(-H(a)). A
division within a life splits it in two. Its gain is the ratio of the likelihood of the two lives to that of
the single one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..refine.movie import Movie
from .families import Families

_DOUBT = 1.0
"""Weight of the prior of an age-independent hazard, in divisions per age."""
_WIDTH = 0.15
"""Relative resolution of ages."""
_LARGEST = 200.0
"""Limit of log likelihoods: products of three likelihoods must be finite."""


@dataclass(frozen=True, eq=False)
class Lives:
    """Chains of links (lives), and the frames in which families would split them.

    Parameters
    ----------
    families : Families
    chain : (N,) int64 array
        The first detection of the life to which each detection belongs.
    begins : (L,) int64 array
        The first detection of each life.
    first, final : (N,) int64 arrays
        First and last frame of the life that begins at each detection.
    point_of : (P,) int64 array
        Index of the point of each family.
    point_start : (N + 1,) int64 array
        Range of points of the life that begins at each detection.
    frame : (K,) int64 array
        Frame of each point.
    last : int
        Last frame.
    """

    families: Families
    chain: NDArray[np.int64]
    begins: NDArray[np.int64]
    first: NDArray[np.int64]
    final: NDArray[np.int64]
    point_of: NDArray[np.int64]
    point_start: NDArray[np.int64]
    frame: NDArray[np.int64]
    last: int

    @classmethod
    def of(cls, movie: Movie, before: NDArray[np.int64], families: Families) -> Lives:
        """Construct the lives from links.

        Parameters
        ----------
        movie : Movie
        before : (N,) int64 array
            The detection linked before each; -1 for none.
        families : Families
        """
        from . import generations_cpu as kernels

        count, last = len(movie.frame), int(movie.frame[-1])
        chain, final = np.arange(count), movie.frame.copy()
        kernels.follow(movie.frame, before, chain, final)
        key = chain[families.mother] * (last + 2) + movie.frame[families.mother]
        points, point_of = np.unique(key, return_inverse=True)
        chain_of, frame = np.divmod(points, last + 2)
        point_start = np.cumsum(np.bincount(chain_of + 1, minlength=count + 1))
        begins = np.nonzero(before < 0)[0]
        return cls(families, chain, begins, movie.frame, final, point_of, point_start, frame, last)

    def gains(self, chance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(P,) contribution of the ages of mother and daughters to the log odds of each family.

        Parameters
        ----------
        chance : (P,) float64 array
            Probability of each family, with which it is weighted in the estimate of ages and in the lives of
            others.
        """
        from . import generations_cpu as kernels

        ended, mean = self.families.ended, self._mean(chance)
        of_point, of_birth = np.zeros(len(self.frame)), np.zeros(len(self.first))
        by_age = _likelihoods(self.hazard(chance), mean)
        kernels.gains(*(*self._known(chance), *by_age, of_point, of_birth))
        gain = mean + of_point[self.point_of] + of_birth[self.families.second]
        gain[ended] += of_birth[self.families.first[ended]]
        return gain

    def divides(self, chance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(K,) probability of a division at each point, from those of the families (P,)."""
        return np.minimum(np.bincount(self.point_of, chance, len(self.frame)), 1.0)

    def hazard(self, chance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(last + 3,) hazard at each age: divisions per cell of this age, from the probabilities (P,)."""
        from . import generations_cpu as kernels

        seen, lived = np.zeros(self.last + 3), np.zeros(self.last + 3)
        kernels.count_ages(*(*self._known(chance), seen, lived))
        return _hazard(seen, np.cumsum(lived), self._mean(chance))

    def _mean(self, chance: NDArray[np.float64]) -> float:
        """Mean number of divisions per cell and frame, at any age."""
        frames = float((self.final[self.begins] - self.first[self.begins]).sum()) + 1.0
        return min(max(float(self.divides(chance).sum()) / frames, 1e-9), 0.5)

    def born(self, chance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) probability that each life begins with a division, from those of the families (P,)."""
        count, ended = len(self.first), self.families.ended
        born = np.bincount(self.families.second, chance, count)
        born += np.bincount(self.families.first[ended], chance[ended], count)
        return np.minimum(born, 1.0)

    def _known(self, chance: NDArray[np.float64]) -> tuple[NDArray, ...]:
        """The arguments of the kernels."""
        born, divides = self.born(chance), self.divides(chance)
        return self.begins, self.first, self.final, born, self.point_start, self.frame, divides


def _hazard(seen: NDArray[np.float64], lived: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Divisions per cell by age; similar ages share one value."""
    group = _alike(len(seen))
    pooled = (np.bincount(group, seen) + _DOUBT) / (np.bincount(group, lived) + _DOUBT / mean)
    return np.minimum(pooled, 1.0)[group]


@lru_cache(8)
def _alike(ages: int) -> NDArray[np.int64]:
    """(ages,) group number of each age; similar ages form a group."""
    age, few = np.arange(ages), round(1 / _WIDTH)
    group = np.where(age <= few, age, few + np.log(np.maximum(age, few) / few) / _WIDTH).astype(np.int64)
    return np.unique(group, return_inverse=True)[1]


def _likelihoods(hazard: NDArray[np.float64], mean: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Likelihoods, by age, of dividing and of surviving, relative to a constant hazard.

    Examples
    --------
    >>> [by_age.tolist() for by_age in _likelihoods(np.full(3, 0.25), 0.25)]
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    survived = np.append(0.0, np.cumsum(hazard[1:])) - mean * np.arange(len(hazard))
    lasted = np.exp(-np.clip(survived, -_LARGEST, _LARGEST))
    return hazard / mean * np.append(1.0, lasted[:-1]), lasted
