"""Tails: how heavy those of the steps are, told from the distances of links that may be wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SHARES = 1 - np.geomspace(1, 2e-3, 40)
"""Shares of all links, of which the farthest is known,"""
_KNOWN = 500.0
"""if there are as many links."""
_CLEAR = 0.001
"""Gain in log likelihood, a link, from which on one tail is better than another."""

_FREEDOM = np.array([2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 30.0])
_SCALE = np.geomspace(0.25, 1.6, 22)
"""Degrees of freedom and scales that are tried,"""
_LEAST = np.searchsorted(_SCALE, 0.95 * (1 - 2 / _FREEDOM))
"""the latter if steps vary by them as much as motion says, or more: of pairs that may be wrong the near ones
pass for right, and where many may be, distances seem to be shorter than they are."""


def no_stretch() -> NDArray[np.float64]:
    """(2, 2, K) quantiles that leave all distances as they are."""
    return np.broadcast_to(_SHARES, (2, 2, len(_SHARES)))


def stretch_of(
    distance2: NDArray[np.float64],
    size: NDArray[np.int64],
    weight: NDArray[np.float64],
    right: NDArray[np.bool_],
    axes: int,
) -> NDArray[np.float64]:
    """(2, 2, K) quantiles of squared distances in `axes` and in twice as many dimensions: as seen, and right.

    Parameters
    ----------
    distance2, size, weight : (Q,) arrays
        As in `tail_from`.
    right : (Q,) bool array
        Whether each is a link in truth.
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
    """(Q,) squared distances, stretched so that those as seen would be those that are right.

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
    """Degrees of freedom and scale of the likeliest Student's t; 0 and 1 where the Gaussian does as well.

    Of those by which steps vary no less than motion says, but for 5 %.

    Parameters
    ----------
    distance2 : (Q,) float64 array
        Squared Mahalanobis distances of links.
    size : (Q,) int64 array
        In how many dimensions each was measured.
    weight : (Q,) float64 array
        Probability of each link.
    known : (float, float)
        What is kept where it does as well.
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
