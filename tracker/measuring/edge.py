"""Intervals of a persistence time by likelihood ratio: none is below 0, and diffusion lies at that edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr

from .likelihood import PERSISTENT, Floats, Sums
from .pooled import Pooled, profile

LEVELS = (0.68, 0.95)
"""Error levels of the intervals that are stated."""


def confidence(lost: ArrayLike, edge: ArrayLike, below: ArrayLike) -> Floats:
    """The level from which on an interval contains a value of a parameter that has a lowest value, the edge.

    The interval is that of Feldman and Cousins (1998). The estimate is normal around the true value, but
    never beyond the edge; likelihood ratios are its squared distances. Far from the edge, an interval of
    68 % has the values that lose up to 1, and at the edge up to .22.

    Parameters
    ----------
    lost : array_like
        Twice the log-likelihood that a value loses against the best one.
    edge : array_like
        The same of the edge.
    below : array_like of bool
        Whether the value lies between the edge and the best one.

    References
    ----------
    G. J. Feldman, R. D. Cousins, Unified approach to the classical statistical analysis of small signals,
    Phys. Rev. D 57, 1998.

    Examples
    --------
    >>> confidence([1.0, 1.0], [9.0, 1.0], [True, True]).round(2).tolist()
    [0.68, 0.84]
    """
    root, far = np.sqrt(np.maximum(lost, 0.0)), np.sqrt(np.maximum(edge, 0.0))
    apart = np.maximum(np.where(below, far - root, far + root), 0.0)  # of value and edge, in standard errors
    with np.errstate(divide="ignore", invalid="ignore"):
        other = np.where(apart < root, (np.square(apart) + np.square(root)) / (2 * apart), root)
    return np.asarray(ndtr(root) - ndtr(-other), np.float64)


def persistence_limits(sums: Sums, best: Pooled, diffusion: Pooled, spread: float) -> Floats:
    """Low and high ends of the interval of a persistence time for each of `LEVELS`, in intervals of time.

    0 if diffusion is inside, and inf if straight motion is.

    Parameters
    ----------
    sums : Sums
        Of the tracks.
    best, diffusion : Pooled
        Fits of the persistent walk and of diffusion.
    spread : float
        Standard error by a bootstrap over that by the likelihood, by whose square its logarithm is divided
        (Chandler and Bate 2007): tracks that differ, and doubtful links.
    """
    top = max(best.log_likelihood, diffusion.log_likelihood)

    def lost(logarithm: float) -> float:
        return 2 * (top - profile(sums, PERSISTENT, logarithm)[0]) / spread**2

    edge = min(2 * (top - diffusion.log_likelihood) / spread**2, lost(PERSISTENT.low))

    def level(logarithm: float) -> float:
        return float(confidence(lost(logarithm), edge, logarithm < best.parameter))

    ends = []
    for wanted in LEVELS:

        def beyond(logarithm: float, wanted: float = wanted) -> float:
            return level(logarithm) - wanted

        low, high = 0.0, np.inf
        if float(confidence(edge, edge, True)) > wanted and beyond(PERSISTENT.low) > 0:
            low = float(np.exp(brentq(beyond, PERSISTENT.low, best.parameter, xtol=1e-4)))
        if beyond(PERSISTENT.high) > 0:
            high = float(np.exp(brentq(beyond, best.parameter, PERSISTENT.high, xtol=1e-4)))
        ends += [low, high]
    return np.array(ends)


def symmetric_error(value: float, limits: Floats) -> float:
    """A standard error from the ends of intervals: half the value at least where that of 95 % reaches 0."""
    low, high, lowest, _ = limits
    return float(max(value - low, (value - lowest) / 2, min(high, 2 * high - value) - value))
