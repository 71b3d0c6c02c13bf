"""Decide which candidates to keep: by the expected Jaccard index or by a false discovery rate.

The significances u of the candidates are those of noise, whose density follows from the filter, and those of
spots, which are log-normal. The fit of both (maximum posterior) gives the probability of each candidate.
Among the k best, Σ p are expected to be spots; of T in all, the expected Jaccard index is Σ p / (k + T - Σ
p). With `fdr`, the largest set whose mean of 1 - p is at most that is kept instead (Benjamini & Hochberg, J.
R. Stat. Soc. B 57, 289, 1995).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

_WIDER = 0.35  # logarithm of the width of noise's tail, at most: minima measured it before
_NUMBER = 1.1  # of the number of noise maxima over the computed one, at most and at least: more is a crowd
_UNEQUAL, _UNEQUAL_BY = 0.5, 0.4  # prior on the spread of the logarithm of spots' amplitudes; its own spread
_PRESENT = 6.9  # logarithm of 1,000 : 1, for spots at all: some 30 widths are tried
_STARTS = (0.5, 0.8, 0.95)  # shares of the candidates that are noise, from which the fit starts
_TURNS = 200  # of the simplex


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


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Noise and spots in the significances of candidates.

    Parameters: logarithms of the width of noise's tail, of its number over the computed one, of the number
    of spots; mean and logarithm of the standard deviation of the logarithm of their significances.
    """

    u: NDArray[np.float64]
    false: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    low: float

    @cached_property
    def above(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Heights, expected maxima of noise above each, and their density there: a table."""
        height = np.linspace(self.low / 2, self.low + 40, 10_000)  # beyond, the density of a Gaussian is 0
        number = self.false(height)
        return height, number, -np.gradient(number, height)

    def rates(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Densities of noise and of spots at each candidate, and how many candidates there should be."""
        (q, share, number, sd), mean = np.exp(theta[[0, 1, 2, 4]]), theta[3]
        height, above, density = self.above
        slope = np.interp(self.u / q, height, density) / q
        t = (np.log(self.u) - mean) / sd
        spots = number * np.exp(-t * t / 2) / (self.u * sd * np.sqrt(2 * np.pi))
        seen = number * float(ndtr((mean - np.log(self.low)) / sd))
        noise = share * float(np.interp(self.low / q, height, above))
        return np.maximum(share * slope, 1e-300), spots, noise + seen

    def loss(self, theta: NDArray[np.float64]) -> float:
        """Negative logarithm of the posterior."""
        noise, spots, expected = self.rates(theta)
        unequal = (theta[4] - np.log(_UNEQUAL)) / _UNEQUAL_BY
        return float(expected - np.log(noise + spots).sum() + unequal**2 / 2)

    def fitted(self) -> tuple[NDArray[np.float64], float]:
        """The parameters of the largest posterior, and its logarithm over that without spots."""
        best = None
        for at in _STARTS:
            mean = float(np.log(np.quantile(self.u, (1 + at) / 2)))
            start = np.array([0.1, 0.0, np.log(len(self.u) * (1 - at) + 1), mean, np.log(0.4)])
            simplex = start + np.vstack([np.zeros(5), np.diag([0.2, 0.3, 0.4, 0.3, 0.3])])
            options = {"maxiter": _TURNS, "initial_simplex": simplex}
            bounds = [(0, _WIDER), (-_NUMBER, _NUMBER), (None, None), (np.log(self.low), None), (None, None)]
            fit = minimize(self.loss, start, method="Nelder-Mead", options=options, bounds=bounds)
            best = fit if best is None or fit.fun < best.fun else best
        assert best is not None
        none = min(
            self.loss(np.array([wide, share, -20.0, 1.0, np.log(_UNEQUAL)]))
            for wide in np.linspace(0, _WIDER, 13)
            for share in np.linspace(-_NUMBER, _NUMBER, 5)
        )
        return best.x, none - float(best.fun)


def decide(
    u: NDArray[np.float64],
    false: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    least: float,
    fdr: float | None = None,
) -> Decision:
    """Decide which candidates are spots.

    Parameters
    ----------
    u : (n,) float64 array
        Significances of the candidates.
    false : callable
        Expected number of maxima of noise above a significance.
    least : float
        Significance above which the candidates are complete.
    fdr : float, optional
        Largest false discovery rate; with None, the set with the largest expected Jaccard index is kept.
    """
    order = np.argsort(-u, kind="stable")
    best = np.maximum(u[order], 1e-3)
    complete = best > least
    if not complete.any():
        return Decision(order, 0, np.zeros(len(u)))
    mixture = _Mixture(best[complete], false, least)
    theta, evidence = mixture.fitted()
    noise, spots, _ = _Mixture(best, false, least).rates(theta)
    p = np.minimum.accumulate(spots / (noise + spots))
    rank, true = np.arange(1, len(p) + 1), np.cumsum(p)
    if fdr is not None:
        keep = int(((rank - true) / rank <= fdr).sum())
    elif evidence < _PRESENT:
        keep = 0
    else:
        total = max(float(np.exp(theta[2])), float(true[-1]))
        keep = int(np.argmax(true / (rank + total - true))) + 1
    return Decision(order, keep, p)
