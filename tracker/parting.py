r"""How daughters part, learned from the starts of a movie by expectation and maximisation.

The point midway between the daughters is where the mother is foretold, with a Gaussian spread. The log of
their distance is Gaussian, with axes along which they part more or less; and they part further, by a
Gaussian amount, into the next frame. A share of all starts are daughters; for each family the odds are

.. math:: \frac{w}{1 - w} \frac{N(m; s) \, L(r) \, N(g; \gamma, t)}{\rho f(v) h(g)}

with ρ, f and h the densities of starts, of the steps of all particles and of the growth by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .families import FREEDOM, Families, log_t

_APART = (0.15, 0.3, 0.6, 1.0)
"""Distances between daughters to begin with, in spacings: the likelihood has several peaks."""
_FIRST, _ROUNDS, _STILL = 6, 30, 0.05
"""Rounds from each of those, rounds from the best of them, fewer once they gain less than so many nats."""
_WIDEST = 0.5
"""Largest spread of the middle, in spacings; chance neighbours spread wider."""
_EVIDENCE = 10.0
"""Log likelihood, in nats, that divisions must gain over chance neighbours before any is believed."""
_ALIKE = 5.0
"""Divisions' worth of belief that daughters part along all axes alike."""
_LARGEST = 500.0
"""Log odds are cut there: their exponentials must be finite."""


@dataclass(frozen=True, eq=False)
class Parting:
    """How daughters part, in the unit of the positions.

    Parameters
    ----------
    share : float
        Of the starts that are daughters.
    middle : float
        Variance of the middle between the daughters along an axis.
    apart, spread : float
        Mean and variance of the log of their distance.
    axes : (A,) float64 array
        Relative squares of that distance along the axes; their product is 1.
    growth, growth_spread : float
        Mean and variance of what their distance grows by into the next frame.
    """

    share: float
    middle: float
    apart: float
    spread: float
    axes: NDArray[np.float64]
    growth: float
    growth_spread: float


def parting_of(families: Families, starts: int, earlier: NDArray[np.float64] | float = 0.0) -> Parting | None:
    """The likeliest way in which daughters part; None without evidence for any.

    Parameters
    ----------
    families : Families
    starts : int
        How many starts there are.
    earlier : (P,) float64 array, optional
        Log odds from elsewhere.
    """
    if not len(families):
        return None
    tried = [_climbed(families, starts, earlier, _begun(families, apart), _FIRST) for apart in _APART]
    best, _ = max(tried, key=lambda reached: reached[1])
    parting, evidence = _climbed(families, starts, earlier, best, _ROUNDS)
    wide = parting.middle > (_WIDEST * families.spacing) ** 2
    return None if evidence < _EVIDENCE or wide else parting


def log_odds(families: Families, parting: Parting) -> NDArray[np.float64]:
    """(P,) log odds of a family against a particle that goes on as usual and a start by chance."""
    axes, variance = len(parting.axes), parting.middle
    odds = math.log(parting.share / (1 - parting.share)) - families.chance
    odds += log_t(families.middle2, axes, variance, FREEDOM)
    log_apart = _log_apart(families, parting.axes)
    odds += log_t((log_apart - parting.apart) ** 2, 1, parting.spread, FREEDOM) - axes * log_apart
    odds -= math.log(2 * math.pi ** (axes / 2) / math.gamma(axes / 2))  # the surface of a unit sphere
    known = np.isfinite(families.growth)
    grown = _log_normal(families.growth[known], parting.growth, parting.growth_spread)
    odds[known] += grown - families.usual_growth[known]
    return np.minimum(odds, _LARGEST)


def probabilities(families: Families, odds: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """(P,) probability of each family among all that want its starts; and the log of all explanations.

    The latter is summed over all starts that are in a family, against chance alone.
    """
    weight = np.exp(np.minimum(odds, _LARGEST))
    size = int(families.second.max(initial=-1)) + 1
    total = 1 + np.bincount(families.second, weight, size)
    ended = families.ended
    size = max(size, int(families.first[ended].max(initial=-1)) + 1)
    total = np.concatenate([total, np.ones(size - len(total))])
    total += np.bincount(families.first[ended], weight[ended], size)
    most = total[families.second]
    most[ended] = np.maximum(most[ended], total[families.first[ended]])
    return weight / most, float(np.log(total).sum())


def _begun(families: Families, apart: float) -> Parting:
    distance = apart * families.spacing
    axes, variance = families.apart.shape[1], (0.25 * distance) ** 2
    return Parting(0.5, variance, math.log(distance), 0.25, np.ones(axes), 0.0, 4 * variance)


def _climbed(
    families: Families, starts: int, earlier: NDArray[np.float64] | float, parting: Parting, rounds: int
) -> tuple[Parting, float]:
    """A likelier way, and the log likelihood that it gains."""
    evidence = -math.inf
    for _ in range(rounds):
        used, before = parting, evidence
        chance, explained = probabilities(families, log_odds(families, used) + earlier)
        evidence = explained + starts * math.log(1 - used.share)
        parting = _likeliest(families, starts, chance, used)
        if evidence < before + _STILL:
            break
    return used, evidence


def _likeliest(families: Families, starts: int, chance: NDArray[np.float64], used: Parting) -> Parting:
    """The parting that these probabilities tell."""
    axes, least = len(used.axes), (1e-4 * families.spacing) ** 2
    found = max(float(chance.sum()), 1e-300)
    apart2 = families.apart**2
    along = apart2 / np.maximum((apart2 / used.axes).sum(axis=1), 1e-300)[:, None]
    stretch = (axes * (chance @ along) + _ALIKE) / (found + _ALIKE)
    stretch /= math.exp(float(np.log(stretch).mean()))
    log_apart = _log_apart(families, stretch)
    mean, spread = _moments(log_apart, chance, _heed((log_apart - used.apart) ** 2, 1, used.spread))
    heed = _heed(families.middle2, axes, used.middle)
    known = np.isfinite(families.growth)
    growth, growth_spread = used.growth, used.growth_spread
    if chance[known].sum() > 1:
        growth, growth_spread = _moments(families.growth[known], chance[known])
    return Parting(
        share=min(max(found / max(starts, 1), 1e-6), 1 - 1e-3),
        middle=max(float(chance @ (heed * families.middle2)) / found / axes, least),
        apart=mean,
        spread=max(spread, 1e-3),
        axes=stretch,
        growth=growth,
        growth_spread=max(growth_spread, least),
    )


def _heed(square: NDArray[np.float64], axes: int, variance: float) -> NDArray[np.float64]:
    """What each counts for in the variance of a Student's t."""
    return (FREEDOM + axes) / (FREEDOM + square / variance)


def _moments(
    values: NDArray[np.float64], weight: NDArray[np.float64], heed: NDArray[np.float64] | float = 1.0
) -> tuple[float, float]:
    """Weighted mean and variance; of a Student's t with what each counts for."""
    total = max(float(weight.sum()), 1e-300)
    counted = weight * heed
    mean = float(counted @ values) / max(float(counted.sum()), 1e-300)
    return mean, float(counted @ (values - mean) ** 2) / total


def _log_apart(families: Families, axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) log of the distance between daughters, every axis in its own measure."""
    least = 1e-6 * families.spacing
    return 0.5 * np.log(np.maximum((families.apart**2 / axes).sum(axis=1), least**2))


def _log_normal(values: NDArray[np.float64], mean: float, variance: float) -> NDArray[np.float64]:
    """Log density of a Gaussian."""
    return -((values - mean) ** 2) / variance / 2 - 0.5 * math.log(2 * math.pi * variance)
