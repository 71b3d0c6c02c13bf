"""Bootstrap: confidence interval of a mean over a few seeds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

DRAWS = 4000
"""Number of resamples; the same number of values always gives the same ones."""


def interval(values: ArrayLike) -> tuple[float, float, float]:
    """Mean of the values and its 95 % percentile bootstrap interval; NaN values are ignored.

    Parameters
    ----------
    values : (N,) array_like of float
        One value for each seed. With fewer than about eight values the interval is too narrow.

    Returns
    -------
    mean, low, high : float
        NaN if there are no values.

    References
    ----------
    B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.

    Examples
    --------
    >>> mean, low, high = interval([0.90, 0.92, 0.94, 0.91, 0.93])
    >>> round(mean, 3), low < mean < high, 0.90 <= low, high <= 0.94
    (0.92, True, True, True)
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[~np.isnan(finite)]
    if len(finite) == 0:
        return np.nan, np.nan, np.nan
    drawn = np.random.default_rng(0).integers(0, len(finite), (DRAWS, len(finite)))
    low, high = np.quantile(finite[drawn].mean(axis=1), [(1 - 0.95) / 2, (1 + 0.95) / 2])
    return float(finite.mean()), float(low), float(high)
