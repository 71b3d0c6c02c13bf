r"""Kin: cells divide at much the age at which their sister and their mother did.

That has been known since Powell (1955, Biometrika 42, 16) of bacteria, and holds for embryos and cultured
cells. If a cell divides at age A, the log of the age B at which its sister does is Gaussian around log A, and
that at which its daughter does around log A + g; but a share ε of kin live each by itself. Where cells divide
at age a with the probability p(a), and live longer with S(a), two divisions are likelier than of any two
cells by

.. math:: (1 - \varepsilon) \, \frac{N(\log B; \log A + g, s^2)}{B \, p(B)} + \varepsilon

and if the other one was followed up to the age C without a division, by

.. math:: (1 - \varepsilon) \, \frac{P(B > C)}{S(C)} + \varepsilon

For sisters, of whom none is the first, the former is the geometric mean of both ways: a little less than it
might be where all cells divide in step. These ratios, over all that may have become of them, are what it
gains that they are kin, and that one divides when it does; those of sisters and of their mother count as if
neither told of the other. How much they are alike is learned from those that are seen to divide: less than
the truth where movies are hardly longer than lives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .generations import Lives

_BEFORE = 2.0
"""Pairs that what is known of kin before any are seen is worth."""
_ROUNDS = 4
"""Rounds in which it is learned."""
_NEVER = 1e-9
"""Least probability of any age, for others are relative to it."""


@dataclass(frozen=True)
class Kin:
    """How much alike the ages are at which two of a kin divide.

    Parameters
    ----------
    spread : float
        Variance of the log of the ratio of both ages.
    apart : float
        Share of those that live each by itself.
    grown : float
        Mean of that log.
    """

    spread: float
    apart: float = 0.3
    grown: float = 0.0

    def seen(self, told: NDArray[np.float64], *, grows: bool) -> Kin:
        """The same with what pairs tell, as the kernel `count_alike` counts them, beside what was known."""
        pairs, alike, both, logs, squares = told.tolist()
        grown = logs / (_BEFORE + both) if grows else 0.0
        spread = (_BEFORE * self.spread + squares - both * grown**2) / (_BEFORE + both)
        return Kin(max(spread, 0.0), (_BEFORE * self.apart + pairs - alike) / (_BEFORE + pairs), grown)


_SISTERS, _MOTHERS = Kin(0.15**2), Kin(0.2**2)
"""Before any are seen. Sisters in embryos have .05 to .11, in cultured cells .12; mothers .09 to .13."""


def kin_gains(lives: Lives, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) log odds that the ages of kin add to each family, for they divide at much the same age.

    Parameters
    ----------
    lives : Lives
    chance : (P,) float64 array
        Probability of each family, in which nothing that kin tell counts yet.
    """
    from . import kin_cpu as kernels

    families, points = lives.families, len(lives.frame)
    of_point, of_family = np.zeros(points + len(lives.first)), np.zeros(len(chance))
    kernels.gains(*_asked(lives, chance, *kin_of(lives, chance), of_point, of_family))
    gain = of_family + of_point[lives.point_of] + of_point[points + families.second]
    gain[families.ended] += of_point[points + families.first[families.ended]]
    return gain


def kin_of(lives: Lives, chance: NDArray[np.float64]) -> tuple[Kin, Kin]:
    """How much sisters are alike, and daughters their mother, by expectation and maximisation.

    Parameters
    ----------
    lives, chance
        As in `kin_gains`.
    """
    from . import kin_cpu as kernels

    sisters, mothers = _SISTERS, _MOTHERS
    for _ in range(_ROUNDS):
        told = np.zeros((2, 5))
        kernels.count_alike(*_asked(lives, chance, sisters, mothers, told))
        sisters, mothers = _SISTERS.seen(told[0], grows=False), _MOTHERS.seen(told[1], grows=True)
    return sisters, mothers


def _asked(
    lives: Lives, chance: NDArray[np.float64], sisters: Kin, mothers: Kin, *written: NDArray[np.float64]
) -> tuple[Any, ...]:
    """What the kernels are told: the lives of each family, when the mother's ends, and when each may end."""
    families, ages = lives.families, _ages(lives.hazard(chance))
    mother = lives.chain[families.mother]
    one = np.where(families.ended, families.first, mother)
    ends = lives.final, lives.point_start, lives.frame, lives.divides(chance), lives.first, lives.born(chance)
    models = [(*ages, kin.spread, kin.apart, kin.grown, kin is sisters) for kin in (sisters, mothers)]
    most = int(np.diff(lives.point_start).max(initial=0)) + 2
    kinds = np.int64, np.float64, np.int64, np.float64
    ways = tuple(tuple(np.empty(most, kind) for kind in kinds) for _ in range(3))
    daughters, begun = (one, lives.chain[families.second]), lives.first[families.mother]
    return mother, *daughters, begun, chance, ends, *models, ways, *written


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
