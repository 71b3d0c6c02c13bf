r"""Sisters: cells of one mother divide at much the same age, and that tells whose daughter a start is.

That has been known since Powell (1955, Biometrika 42, 16) of bacteria, and holds for embryos and cultured
cells. If one sister divides at age A, the log of the age B at which the other does is Gaussian around log A,
but for a share ε of sisters that live each by itself. Where each cell divides at age a with the probability
p(a), and lives longer with S(a), two divisions are likelier than of any two cells by

.. math:: (1 - \varepsilon) \, \frac{N(\log B; \log A, s^2)}{B \, p(B)} + \varepsilon

and if the other one was followed up to the age C without a division, by

.. math:: (1 - \varepsilon) \, \frac{P(B > C)}{S(C)} + \varepsilon

These ratios, over all that may become of both, are what it gains that they are sisters, and that one divides
when it does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .generations import Lives

_SPREAD, _APART = 0.15**2, 0.3
"""Before any are seen; embryos have .08 to .13 squared, cultured cells .12."""
_BEFORE = 2.0
"""Pairs of sisters that this is worth."""
_ROUNDS = 4
"""Rounds in which both are learned."""
_NEVER = 1e-9
"""Least probability of any age, for others are relative to it."""


@dataclass(frozen=True, eq=False)
class Sisters:
    """How much alike the ages are at which sisters divide.

    Parameters
    ----------
    known : tuple
        What the kernels are told of lives and families.
    ages : (F,), (F,) float64 arrays
        How likely the life of any cell ends in a division at each age, and lasts longer.
    size : int
        Most points of a life.
    spread : float
        Variance of the log of the ratio of both ages.
    apart : float
        Share of sisters of which each lives by itself.
    """

    known: tuple[Any, ...]
    ages: tuple[NDArray[np.float64], NDArray[np.float64]]
    size: int
    spread: float
    apart: float

    @classmethod
    def of(cls, lives: Lives, chance: NDArray[np.float64]) -> Sisters:
        """Learn it by expectation and maximisation.

        Parameters
        ----------
        lives : Lives
        chance : (P,) float64 array
            Probability of each family.
        """
        from . import sisters_cpu as kernels

        size = int(np.diff(lives.point_start).max(initial=0))
        found = cls(_known(lives, chance), _ages(lives.hazard(chance)), size, _SPREAD, _APART)
        for _ in range(_ROUNDS):
            told = np.zeros(4)
            kernels.count_alike(*found._and(told))
            pairs, alike, both, squares = told.tolist()
            spread = (_BEFORE * _SPREAD + squares) / (_BEFORE + both)
            apart = (_BEFORE * _APART + pairs - alike) / (_BEFORE + pairs)
            found = replace(found, spread=spread, apart=apart)
        return found

    def gains(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(K,) log odds that sisters add to a division at each point; (P,) and to each family, of its own."""
        from . import sisters_cpu as kernels

        of_point, of_family = np.zeros(len(self.known[6])), np.zeros(len(self.known[0]))
        kernels.gains(*self._and(of_point, of_family))
        return of_point, of_family

    def _and(self, *written: NDArray[np.float64]) -> tuple[Any, ...]:
        """What the kernels want: with room for the ages and weights of the ways of three lives."""
        room = np.empty((3, self.size + 1), np.int64), np.empty((3, self.size + 1))
        return *self.known, (*self.ages, self.spread, self.apart), *room, *written


def sister_gains(lives: Lives, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) log odds that the ages of sisters add to each family: those of the mother, and of its daughters.

    Parameters
    ----------
    lives : Lives
    chance : (P,) float64 array
        Probability of each family, in which nothing that sisters tell counts yet.
    """
    of_point, of_family = Sisters.of(lives, chance).gains()
    return of_point[lives.point_of] + of_family


def _known(lives: Lives, chance: NDArray[np.float64]) -> tuple[Any, ...]:
    """The lives of both daughters and when they begin, and the points at which lives may end."""
    families = lives.families
    one = np.where(families.ended, families.first, lives.chain[families.mother])
    begun, divides = lives.first[families.mother], lives.divides(chance)
    return one, families.second, begun, chance, lives.final, lives.point_start, lives.frame, divides


def _ages(hazard: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How likely a life ends at each age, and lasts longer.

    Examples
    --------
    >>> [by_age.round(2).tolist() for by_age in _ages(np.array([0.0, 0.1, 0.5]))]
    [[0.0, 0.1, 0.45], [1.0, 0.9, 0.55]]
    """
    lasts = np.exp(-np.append(0.0, np.cumsum(hazard[1:])))
    dies = hazard * np.append(1.0, lasts[:-1])
    return np.maximum(dies, _NEVER), np.maximum(lasts, _NEVER)
