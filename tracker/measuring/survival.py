"""Medians of times that end only in part while they are observed (Kaplan and Meier 1958)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .groups import Estimate, Samples
from .likelihood import Floats


def half_life(lasting: Floats, complete: NDArray[np.bool_], weight: Floats) -> float:
    """The time at which the Kaplan-Meier estimate of survival falls to a half; NaN if it does not.

    The median of complete times alone is too short, for long ones do not end while they are observed.

    Parameters
    ----------
    lasting : (N,) float64 array
        How long each was observed.
    complete : (N,) bool array
        Whether each ended; the others are censored.
    weight : (N,) float64 array

    Examples
    --------
    >>> half_life(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True]), np.ones(4))
    3.0
    """
    order = np.lexsort((~complete, lasting))
    own = weight[order]
    left = own[::-1].cumsum()[::-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        lost = np.where(left > 0, own * complete[order] / left, 0.0)
    gone = np.flatnonzero(np.cumprod(1 - lost) <= 0.5)
    return float(lasting[order][gone[0]]) if len(gone) else np.nan


def median_time(weights: Samples, owner: NDArray, lasting: Floats, complete: NDArray[np.bool_]) -> Estimate:
    """The median of times of tracks, `owner` (N,), by `half_life`; its error by the bootstrap and draws."""
    drawn, samples = (
        np.array([half_life(lasting, complete, each) for each in many[:, owner]])
        for many in (weights.drawn, weights.resampled)
    )
    known = drawn[np.isfinite(drawn)]
    return Estimate.of(known if len(known) else np.array([np.nan]), samples)
