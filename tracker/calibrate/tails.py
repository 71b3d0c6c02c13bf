"""Tails: estimate how heavy the tails of steps are, from the distances of links that may be wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SHARES = 1 - np.geomspace(1, 2e-3, 40)
"""Quantiles at which distances are compared,"""
_KNOWN = 500.0
"""and the least number of links."""
_CLEAR = 0.001
"""Gain in log likelihood per link above which one tail is better than another."""

_FREEDOM = np.array([2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 30.0])
_SCALE = np.geomspace(0.25, 1.6, 22)
"""Grid of degrees of freedom and scales;"""
_LEAST = np.searchsorted(_SCALE, 0.95 * (1 - 2 / _FREEDOM))
"""the latter if steps vary by them as much as motion says, or more: of pairs that may be wrong the near ones
pass for right, and where many may be, distances seem to be shorter than they are."""


def no_stretch() -> NDArray[np.float64]:
    """(2, 2, K) quantiles that do not change any distance."""
    return np.broadcast_to(_SHARES, (2, 2, len(_SHARES)))


def stretch_of(
    distance2: NDArray[np.float64],
    size: NDArray[np.int64],
    weight: NDArray[np.float64],
    right: NDArray[np.bool_],
    axes: int,
) -> NDArray[np.float64]:
    """(2, 2, K) quantiles of squared distances in `axes` and in twice as many dimensions: observed, and true.

    Parameters
    ----------
    distance2, size, weight : (Q,) arrays
        As in `tail_from`.
    right : (Q,) bool array
        Whether each is a true link.
    axes : int
    """
    found = no_stretch().copy()
    for known, dimensions in zip(found, (axes, 2 * axes), strict=True):
        taken = np.nonzero(size == dimensions)[0]
        taken = taken[np.argsort(distance2[taken])]
        if min(weight[taken].sum(), right[taken].sum()) > _KNOWN:
            for quantile, chance in zip(known, (weight[taken], right[taken].astype(np.float64)), strict=True):
                share = np.cumsum(chance)
                quantile[1:] = np.interp(_SHARES[1:], share / share[-1], distance2[taken])
    return found


def stretched(
    distance2: NDArray[np.float64], size: NDArray[np.int64], stretch: NDArray[np.float64], axes: int
) -> NDArray[np.float64]:
    """(Q,) squared distances, transformed from the observed to the true distribution.

    Examples
    --------
    >>> stretch = no_stretch() * [[[2.0], [1.0]], [[2.0], [1.0]]]
    >>> stretched(np.array([0.0, 1.0, 100.0]), np.full(3, 6), stretch, axes=3).tolist()
    [0.0, 0.5, 50.0]
    """
    if (stretch[:, 0] == stretch[:, 1]).all():
        return distance2
    found = distance2.copy()
    for (known, right), dimensions in zip(stretch, (axes, 2 * axes), strict=True):
        taken = size == dimensions
        far = np.maximum(distance2[taken] / max(known[-1], 1e-300), 1.0)
        found[taken] = np.interp(distance2[taken], known, right) * far
    return found


def tail_from(
    distance2: NDArray[np.float64],
    size: NDArray[np.int64],
    weight: NDArray[np.float64],
    known: tuple[float, float] = (0.0, 1.0),
) -> tuple[float, float]:
    """Degrees of freedom and scale of the best Student's t; 0 and 1 if a Gaussian fits as well.

    Only distributions with at least 95 % of the variance of the motion model are considered.

    Parameters
    ----------
    distance2 : (Q,) float64 array
        Squared Mahalanobis distances of links.
    size : (Q,) int64 array
        Number of dimensions of each distance.
    weight : (Q,) float64 array
        Probability of each link.
    known : (float, float)
        The current values, which are kept if they fit as well.
    """
    from . import tails_cpu as kernels

    # Two sizes at most, and distances in bins: the likelihood needs no more.
    near = np.append(0.0, np.geomspace(1e-3, max(float(distance2.max(initial=1.0)), 1.0) + 1, 200))
    largest, counts = int(size.max(initial=1)), np.zeros((2, len(near)))
    sizes = np.array([largest, size.min(initial=largest)])
    kernels.count_near(distance2, size, weight, largest, near, counts)
    clear = _CLEAR * max(float(weight.sum()), 1e-300)
    (freedom, scale), most = kernels.likeliest(near, counts, sizes, _FREEDOM, _SCALE, _LEAST)
    if most <= clear - float((counts @ near).sum()) / 2:
        return 0.0, 1.0
    kept = _FREEDOM[np.argmin(np.abs(_FREEDOM - known[0]))], _SCALE[np.argmin(np.abs(_SCALE - known[1]))]
    if known[0] > 0 and most <= kernels.log_likelihood(near, counts, sizes, *kept) + clear:
        return float(kept[0]), float(kept[1])
    return float(_FREEDOM[freedom]), float(_SCALE[scale])
