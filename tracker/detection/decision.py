"""Decide which candidates to keep: by the expected Jaccard index or by a false discovery rate.

Among the k best candidates, n0(k) are expected to be noise. If there are T true spots, the expected Jaccard
index of the k best is J = (k - n0) / (T + n0). It is largest if the last candidate kept is a spot with
probability J / (1 + J); this is .4 to .5, much less than the 99 % of a usual test. With `fdr`, the largest
set with n0 / k of at most q is kept instead (Benjamini & Hochberg, J. R. Stat. Soc. B 57, 289, 1995).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .null import expected_maxima, free_share

_SURE = 0.01  # false discovery rate of the set that is kept in any case
_MOST_FALSE = 0.2  # of a set that is kept by its expected Jaccard index
_LEAST = 3.0  # standard deviations of any spot
_ENOUGH = 5  # sure spots that say how many there are
_DEEP = 2.0  # in 3D crowds and light out of focus add as many false ones as noise does
_WINDOW = 0.5  # standard deviations: noise of its density is a fifth among 25 candidates
_COUNTED = 4.5  # standard deviations of what leaves noise no room


@dataclass(frozen=True, eq=False)
class Decision:
    """Candidates, best first.

    Parameters
    ----------
    order : (n,) int64 array
        Rows of the candidates.
    keep : int
        Number of candidates that are accepted as spots.
    probability : (n,) float64 array
        Probability that each candidate is not noise, by rank; non-increasing.
    """

    order: NDArray[np.int64]
    keep: int
    probability: NDArray[np.float64]


def decide(
    z: NDArray[np.float64], shape: tuple[int, ...], sigma: NDArray[np.float64], fdr: float | None
) -> Decision:
    """Decide which candidates are spots, given their significance.

    Parameters
    ----------
    z : (n,) float64 array
    shape, sigma
        Shape of the frame and width of the matched filter, in voxels.
    fdr : float, optional
        Largest false discovery rate; with None, the set with the largest expected Jaccard index is kept.
    """
    order = np.argsort(-z, kind="stable")
    best = z[order]
    free = free_share(int((z > _COUNTED).sum()), shape, sigma)
    false = np.maximum.accumulate(expected_maxima(np.maximum(best, 1.2), shape, sigma, free))
    weigh = 1.0 if shape[0] == 1 else _DEEP
    return Decision(order, kept(best, false, weigh, fdr), probabilities(best, false, _WINDOW))


def kept(best: NDArray[np.float64], false: NDArray[np.float64], weigh: float, fdr: float | None) -> int:
    """Number of best spots to keep; `false` is the expected number of noise maxima in the first 1, 2, …"""
    rank = np.arange(1, len(best) + 1)
    rate = rates(false)
    if fdr is not None:
        return int((rate <= fdr).sum())
    sure = int(((rate <= _SURE) & (best > _LEAST)).sum())
    if sure < _ENOUGH:
        return sure
    jaccard = expected_jaccard(rank - weigh * false, weigh * false)
    jaccard[(rate > _MOST_FALSE) | (best <= _LEAST)] = 0.0
    return max(sure, int(np.argmax(jaccard)) + 1)


def rates(false: NDArray[np.float64]) -> NDArray[np.float64]:
    """False discovery rate of the first 1, 2, … candidates, made monotone."""
    rate = np.minimum(false / np.arange(1, len(false) + 1), 1)
    return np.minimum.accumulate(rate[::-1])[::-1]


def expected_jaccard(true: NDArray[np.float64], false: NDArray[np.float64]) -> NDArray[np.float64]:
    """Jaccard indices of sets with these numbers of true and false spots, given the largest true number."""
    return true / (max(float(true.max(initial=0.0)), 1e-9) + false)


def probabilities(
    best: NDArray[np.float64], false: NDArray[np.float64], window: float
) -> NDArray[np.float64]:
    """(n,): 1 minus the expected noise per candidate within `window` above each one; non-increasing.

    Examples
    --------
    >>> probabilities(np.array([9.0, 3.2, 3.1]), np.array([0.0, 0.5, 1.2]), 0.5).tolist()
    [1.0, 0.5, 0.4]
    """
    first = np.searchsorted(-best, -(best + window), side="left")
    before = np.where(first > 0, false[np.maximum(first - 1, 0)], 0.0)
    rate = (false - before) / (np.arange(1, len(best) + 1) - first)
    return 1 - np.maximum.accumulate(np.clip(rate, 0, 1)).round(12)
