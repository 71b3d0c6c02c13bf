r"""Kin: cells divide at a similar age as their sister and their mother.

This has been known for bacteria since Powell (1955, Biometrika 42, 16), and also holds for embryos and
cultured cells. If a cell divides at age A, the log of the age B at which its sister divides has a Gaussian
distribution around log A, and that for its daughter around log A + g; but a share ε of relatives are
independent. If p(a) is the probability that a cell divides at age a, and S(a) that it lives longer, the
likelihood ratio of two divisions for relatives against unrelated cells is

.. math:: (1 - \varepsilon) \, \frac{N(\log B; \log A + g, s^2)}{B \, p(B)} + \varepsilon

If the other cell was followed to age C without a division, it is

.. math:: (1 - \varepsilon) \, \frac{P(B > C)}{S(C)} + \varepsilon

Sisters have no order, so the first ratio is the geometric mean of both directions, which is slightly too
small if all cells divide in synchrony. The mean of these ratios over all possible fates of both cells is the
gain of being relatives. The gains from the sister and from the mother are treated as independent. The
similarity is learned from cells that are seen to divide; it is underestimated if movies are not much longer
than lives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .generations import Lives

_BEFORE = 2.0
"""Weight of the prior, in pairs of relatives."""
_ROUNDS = 4
"""Number of iterations of learning."""
_NEVER = 1e-9
"""Least probability of an age, because ratios are divided by it."""


@dataclass(frozen=True)
class Kin:
    """Similarity of the ages at which two relatives divide.

    Parameters
    ----------
    spread : float
        Variance of the log of the ratio of both ages.
    apart : float
        Share of independent pairs.
    grown : float
        Mean of the log of the ratio of both ages.
    """

    spread: float
    apart: float = 0.3
    grown: float = 0.0

    def seen(self, told: NDArray[np.float64], *, grows: bool) -> Kin:
        """Update with pairs, as counted by the kernel `count_alike`, in addition to the prior."""
        pairs, alike, both, logs, squares = told.tolist()
        grown = logs / (_BEFORE + both) if grows else 0.0
        spread = (_BEFORE * self.spread + squares - both * grown**2) / (_BEFORE + both)
        return Kin(max(spread, 0.0), (_BEFORE * self.apart + pairs - alike) / (_BEFORE + pairs), grown)


_SISTERS, _MOTHERS = Kin(0.15**2), Kin(0.2**2)
"""The prior. Sisters in embryos have a spread of .05 to .11, in cultured cells .12; mothers .09 to .13."""


def kin_gains(lives: Lives, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) contribution of the similar ages of relatives to the log odds of each family.

    Parameters
    ----------
    lives : Lives
    chance : (P,) float64 array
        Probability of each family, not including the similarity of relatives.
    """
    from . import kin_cpu as kernels

    families, points = lives.families, len(lives.frame)
    of_point, of_family = np.zeros(points + len(lives.first)), np.zeros(len(chance))
    kernels.gains(*_asked(lives, chance, *kin_of(lives, chance), of_point, of_family))
    gain = of_family + of_point[lives.point_of] + of_point[points + families.second]
    gain[families.ended] += of_point[points + families.first[families.ended]]
    return gain


def kin_of(lives: Lives, chance: NDArray[np.float64]) -> tuple[Kin, Kin]:
    """Similarity of sisters, and of daughters with their mother, by expectation-maximisation.

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
    """Arguments of the kernels: lives of each family, last frame of the mother, possible ends of lives."""
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
    """Probabilities, by age, that a life ends and that it lasts longer.

    Examples
    --------
    >>> [by_age.round(2).tolist() for by_age in _ages(np.array([0.0, 0.1, 0.5]))]
    [[0.0, 0.1, 0.45], [1.0, 0.9, 0.55]]
    """
    lasts = np.exp(-np.append(0.0, np.cumsum(hazard[1:])))
    dies = hazard * np.append(1.0, lasts[:-1])
    return np.maximum(dies, _NEVER), np.maximum(lasts, _NEVER)
