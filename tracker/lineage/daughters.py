r"""The separation of daughters, learned from all candidate divisions of a movie by EM.

The midpoint between two daughters deviates from the predicted position of the mother by a Gaussian amount
m, which is wider along the line between them than across it. The log of the distance r between the
daughters is Gaussian as well, and all directions are equally probable. From the first to the second frame
after the division, the distance of the daughters increases by a Gaussian amount g. If s are the odds of a
division against a death and two births, the odds of a candidate are

.. math:: s \, w \, \frac{N(m_\parallel, m_\perp) \, N(\log r) \, / (A_D r^D)}{\rho_1 \rho_2}
    \frac{N(g; \bar g, \sigma_g)}{N(g; 0, \sigma_0)}

where w is the probability that the three have no other links, A_D the surface of the unit sphere, and
:math:`\rho` the density of detections around each daughter.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma, log, pi

import numpy as np
from numpy.typing import NDArray

from .candidates import Divisions

_STARTS_AT = (0.45, 1.1)
"""Prior: initial distances between daughters, in spacings; the likelihood has several maxima."""
_DISTANCE, _SPREAD = 0.8, 0.5
"""Prior: distance between daughters in spacings, and the standard deviation of its log."""
_OFFSET = 0.15
"""Prior: standard deviation of the midpoint between them along an axis, in spacings."""
_BEGIN = 0.3
"""Prior: initial share of starts that are daughters."""
_GROWTH = 0.2
"""Prior: standard deviation of the growth of the distance between daughters, in spacings."""
_WORTH = 2.0
"""Prior: weight of the priors, in divisions."""
_LEAST = 0.02
"""Guard: least standard deviation of an offset, in spacings, and of the log of a distance."""
_ROUNDS, _STILL = 30, 0.01
"""Guard: rounds of EM, and the gain in nats at which they end."""
_LARGEST = 60.0
"""Guard: limit of log odds."""


@dataclass(frozen=True)
class DaughterModel:
    """Parameters of divisions, lengths in spacings.

    Parameters
    ----------
    odds : float
        Odds of a division against a death and two births at the same positions.
    along, across : float
        Variances of the offset of the midpoint between daughters.
    log_distance, spread : float
        Mean and variance of the log of their distance.
    growth, growth_spread : float
        Mean and variance of the increase of their distance to the next frame.
    chance_spread : float
        Variance of this increase for detections that are not daughters.
    """

    odds: float
    along: float
    across: float
    log_distance: float
    spread: float
    growth: float
    growth_spread: float
    chance_spread: float


def log_odds(divisions: Divisions, model: DaughterModel, axes: int) -> NDArray[np.float64]:
    """(P,) log odds of each candidate against all alternatives."""
    across = divisions.across / model.across + (axes - 1) * log(2 * pi * model.across)
    middle = _log_normal(divisions.along, model.along) - 0.5 * across
    apart = np.log(divisions.distance)
    distance = _log_normal((apart - model.log_distance) ** 2, model.spread) - axes * apart
    growth = _log_normal((divisions.growth - model.growth) ** 2, model.growth_spread)
    growth -= _log_normal(divisions.growth**2, model.chance_spread)
    surface = log(2 * pi ** (axes / 2) / gamma(axes / 2))
    found = log(model.odds) + np.log(divisions.weight) + middle + distance - surface - divisions.log_chance
    found += np.nan_to_num(growth)
    return np.clip(found, -_LARGEST, _LARGEST)


def _log_normal(square: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Log density of a normal variate at these squared deviations."""
    return -0.5 * (square / variance + log(2 * pi * variance))


def marginals(divisions: Divisions, log_odds: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """(P,) probability of each candidate among all that share a cell; evidence for divisions in nats."""
    odds = np.exp(log_odds)
    ends = (divisions.mother, divisions.first, divisions.second)
    size = max(int(rows.max(initial=-1)) for rows in ends) + 1
    daughters = np.bincount(divisions.first, odds, size) + np.bincount(divisions.second, odds, size)
    total = 1 + np.maximum.reduce(
        [np.bincount(divisions.mother, odds, size)[ends[0]], daughters[ends[1]], daughters[ends[2]]]
    )
    starts = np.bincount(divisions.second, odds, size)
    return odds / total, float(np.log1p(starts).sum())


@dataclass(frozen=True)
class Rates:
    """Statistics of all detections, without divisions.

    Parameters
    ----------
    detections, starts : float
        Number of detections, and expected number without a predecessor.
    alone : float
        Prior probability of a death and two births at three given detections.
    """

    detections: float
    starts: float
    alone: float

    def share(self, expected: float) -> float:
        """Share of starts that are daughters, given the expected number of divisions."""
        return min((expected + 0.5) / (self.starts + 1), 1 - 0.5 / (self.starts + 1))

    def odds(self, expected: float) -> float:
        """Odds of a division against a death and two births; births exclude daughters."""
        often = (expected + 0.5) / (self.detections + 1)
        return often / self.alone / (1 - self.share(expected))


def learned_daughters(
    divisions: Divisions, rates: Rates, axes: int, log_factor: NDArray[np.float64]
) -> tuple[DaughterModel, float]:
    """The maximum-likelihood model, and its evidence against no divisions, in nats.

    Parameters
    ----------
    divisions : Divisions
    rates : Rates
    axes : int
        D.
    log_factor : (P,) float64 array
        Additional log odds, such as those from the ages of the mothers.
    """
    tried = [_climbed(divisions, rates, axes, log_factor, distance) for distance in _STARTS_AT]
    return max(tried, key=lambda found: found[1])


def _climbed(
    divisions: Divisions, rates: Rates, axes: int, log_factor: NDArray[np.float64], distance: float
) -> tuple[DaughterModel, float]:
    """EM from one initial distance between daughters."""
    expected = _BEGIN * rates.starts
    odds, offset, growth = rates.odds(expected), _OFFSET**2, _GROWTH**2
    model = DaughterModel(odds, offset, offset, log(distance), _SPREAD**2 / 4, 0.0, growth, growth)
    most = -np.inf
    for _ in range(_ROUNDS):
        probability, gain = marginals(divisions, log_odds(divisions, model, axes) + log_factor)
        evidence = gain + rates.starts * np.log1p(-rates.share(expected))
        if evidence < most + _STILL:
            break
        used, most, expected = model, evidence, float(probability.sum())
        model = _maximised(divisions, probability, rates.odds(expected), axes)
    return used, most


def _maximised(
    divisions: Divisions, probability: NDArray[np.float64], odds: float, axes: int
) -> DaughterModel:
    """The M-step: moments weighted by the probabilities, with priors worth `_WORTH` divisions."""
    total = float(probability.sum()) + _WORTH
    logs = np.log(divisions.distance)
    along = float(probability @ divisions.along) + _WORTH * _OFFSET**2
    across = float(probability @ divisions.across) / max(axes - 1, 1) + _WORTH * _OFFSET**2
    mean = float(probability @ logs + _WORTH * log(_DISTANCE)) / total
    spread = float(probability @ (logs - mean) ** 2) + _WORTH * _SPREAD**2
    along, across, spread = (max(width / total, _LEAST**2) for width in (along, across, spread))
    return DaughterModel(odds, along, across, mean, spread, *_grown(divisions.growth, probability))


def _grown(growth: NDArray[np.float64], probability: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and variance of the growth of distances, and its variance by chance."""
    known = np.isfinite(growth)
    seen, true = growth[known], probability[known]
    chance, total = 1 - true, true.sum() + _WORTH
    mean = float(true @ seen) / total
    spread = (true @ (seen - mean) ** 2 + _WORTH * _GROWTH**2) / total
    other = (chance @ seen**2 + _WORTH * _GROWTH**2) / (chance.sum() + _WORTH)
    return mean, max(float(spread), _LEAST**2), max(float(other), _LEAST**2)
