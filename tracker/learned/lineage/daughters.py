r"""The model of divisions: how often they are, and how daughters separate.

The midpoint between two daughters deviates from the predicted position of the mother by a Gaussian amount
m, of unlike variances along and across the line between them. The log of the distance r between the
daughters is Gaussian. Both scale with the local spacing :math:`\ell` around the mother to a learned power a.
The direction n between the daughters has the angular central Gaussian density
:math:`\propto (n^T \Lambda^{-1} n)^{-D/2}` (D. E. Tyler, Biometrika 74, 1987). From the first to the second
frame after the division, the distance of the daughters increases by a Gaussian amount g. With the rate
:math:`\beta` of divisions, the surface A_D of the unit sphere and the density :math:`\rho` of detections
around each daughter, the weight of a division is

.. math:: W = \beta \, \frac{2 N(m_\parallel, m_\perp) \, N(\log r) \, / (A_D r^D)}{\rho_1 \rho_2}
    \frac{(n^T \Lambda^{-1} n)^{-D/2}}{|\Lambda|^{1/2}} \frac{N(g; \bar g, \sigma_g)}{N(g; 0, \sigma_0)}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gamma, log, pi

import numpy as np
from numpy.typing import NDArray

from .candidates import LEAST, Divisions, product

_DISTANCE, _SPREAD = 0.8, 0.5
"""Prior: distance between daughters in spacings, and the standard deviation of its log."""
_WORTH = 2.0
"""Prior: number of divisions that the priors of daughters are worth; many movies show few divisions."""
_OFFSET = 0.15
"""Prior: standard deviation of the midpoint between them along an axis, and of growth of their distance."""


@dataclass(frozen=True, eq=False)
class DaughterModel:
    """Parameters of divisions, lengths in spacings.

    Parameters
    ----------
    rate : float
        Probability that a detection divides.
    death, birth : float
        Deaths and births that are no divisions, relative to those of the model of links, which counts both.
    along, across : float
        Variances of the offset of the midpoint between daughters.
    log_distance, spread : float
        Mean and variance of the log of their distance.
    growth, growth_spread : float
        Mean and variance of the increase of their distance to the next frame.
    other_spread : float
        Variance of this increase for detections that are not daughters.
    scaling : float
        The power of the local spacing with which lengths scale.
    shape : (D, D) float64 array
        Lambda, of determinant 1.
    """

    rate: float
    death: float
    birth: float
    along: float
    across: float
    log_distance: float
    spread: float
    growth: float
    growth_spread: float
    other_spread: float
    scaling: float
    shape: NDArray[np.float64]

    @classmethod
    def initial(cls, rate: float, axes: int) -> DaughterModel:
        """The model from which EM starts."""
        offset = _OFFSET**2
        return cls(
            rate=rate, death=1.0, birth=1.0, along=offset, across=offset, log_distance=log(_DISTANCE),
            spread=_SPREAD**2 / 4, growth=0.0, growth_spread=offset, other_spread=offset, scaling=0.0,
            shape=np.eye(axes),
        )  # fmt: skip

    @property
    def parameters(self) -> int:
        """Number of parameters that a model without divisions lacks."""
        axes = len(self.shape)
        return 9 + axes * (axes + 1) // 2 - 1


def log_weight(divisions: Divisions, model: DaughterModel) -> NDArray[np.float64]:
    """(P,) log of the weight W of each candidate."""
    axes, unit = len(model.shape), model.scaling * divisions.room
    shrunk = np.exp(-2 * unit)
    middle = _log_normal(divisions.along * shrunk, model.along) - axes * unit
    middle -= 0.5 * (divisions.across * shrunk / model.across + (axes - 1) * log(2 * pi * model.across))
    apart = np.log(divisions.distance)
    distance = _log_normal((apart - model.log_distance - unit) ** 2, model.spread) - axes * apart
    surface = log(2 * pi ** (axes / 2) / gamma(axes / 2))
    growth = _log_normal((divisions.growth - model.growth) ** 2, model.growth_spread)
    growth -= _log_normal(divisions.growth**2, model.other_spread)
    whole = log(2 * model.rate) + middle + distance - surface - divisions.log_density + np.nan_to_num(growth)
    weight: NDArray[np.float64] = whole - 0.5 * axes * np.log(_stretch(divisions, model))
    return weight


def _stretch(divisions: Divisions, model: DaughterModel) -> NDArray[np.float64]:
    r"""(P,) :math:`n^T \Lambda^{-1} n` of the direction of each division."""
    n, inverse = divisions.direction, np.linalg.inv(model.shape)
    along = np.stack([sum(a * b for a, b in zip(n.T, row, strict=True)) for row in inverse.tolist()], axis=1)
    return np.maximum(product(n, along), LEAST)  # detections at one place have no direction


def _log_normal(square: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Log density of a normal variate at these squared deviations."""
    return -0.5 * (square / variance + log(2 * pi * variance))


def m_step(
    divisions: Divisions, probability: NDArray[np.float64], model: DaughterModel, mothers: float
) -> DaughterModel:
    """The M-step: moments weighted by the probabilities (P,), with priors worth `_WORTH` divisions.

    Deaths and births of the model stay; so many detections may be mothers.
    """
    axes, apart, room = len(model.shape), np.log(divisions.distance), divisions.room
    expected = float(probability.sum())

    def moment(values: NDArray[np.float64], prior: float) -> float:
        return (float((probability * values).sum()) + _WORTH * prior) / (expected + _WORTH)

    off = room - float((probability * room).sum()) / max(expected, LEAST)
    scaling = moment(off * apart, 0.0) / moment(off**2, model.spread)
    apart, shrunk = apart - scaling * room, np.exp(-2 * scaling * room)
    mean = moment(apart, log(_DISTANCE))
    variances = (
        moment(shrunk * divisions.along, _OFFSET**2),
        moment(shrunk * divisions.across / max(axes - 1, 1), _OFFSET**2),
        moment((apart - mean) ** 2, _SPREAD**2),
    )
    along, across, spread = (max(variance, LEAST**2) for variance in variances)
    growth, growth_spread, other_spread = _grown(divisions.growth, probability)
    return replace(
        model, rate=(expected + 0.5) / (mothers + 1), along=along, across=across, log_distance=mean,
        spread=spread, growth=growth, growth_spread=growth_spread, other_spread=other_spread,
        scaling=scaling, shape=_directed(divisions, probability, model),
    )  # fmt: skip


def _grown(growth: NDArray[np.float64], probability: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and variance of the growth of distances, and its variance by chance."""
    seen = np.isfinite(growth)
    growth, true = growth[seen], probability[seen]
    others, total = 1 - true, true.sum() + _WORTH
    mean = float((true * growth).sum() / total)
    spread = ((true * (growth - mean) ** 2).sum() + _WORTH * _OFFSET**2) / total
    other = ((others * growth**2).sum() + _WORTH * _OFFSET**2) / (others.sum() + _WORTH)
    return mean, max(float(spread), LEAST**2), max(float(other), LEAST**2)


def _directed(
    divisions: Divisions, probability: NDArray[np.float64], model: DaughterModel
) -> NDArray[np.float64]:
    """(D, D) shape of the directions: one step of Tyler's fixed point."""
    n, axes = divisions.direction, len(model.shape)
    each = axes * probability / _stretch(divisions, model)
    spread = np.array([[float((each * a * b).sum()) for b in n.T] for a in n.T])
    shape = spread + _WORTH * np.eye(axes)
    return np.asarray(shape / np.linalg.det(shape) ** (1 / axes))
