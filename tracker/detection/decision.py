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
from scipy.spatial import cKDTree
from scipy.special import expit

from ..compute.tolerances import TINY
from .decision_cpu import fitted_mixture

_WIDER = 0.35
"""Prior: largest logarithm of the width of noise's tail: minima measured it before."""
_NUMBER = 1.1
"""Prior: largest logarithm, of either sign, of the number of noise maxima over the computed one: more is a
crowd."""
_UNEQUAL = 0.5
"""Prior: median of the standard deviation of the logarithm of spots' amplitudes."""
_UNEQUAL_BY = 0.4
"""Prior: standard deviation of the logarithm of this one."""
_PRESENT = 6.9
"""Error level: logarithm of 1,000 : 1, odds of any spots: some 30 widths are tried."""
_STARTS = (0.5, 0.8, 0.95)
"""Where the fit starts: shares of the candidates that are noise."""
_HALO = 0.15
"""Prior: amplitude of the halo of a spot relative to the spot."""
_HALO_WIDTH, _HALO_REACH = 2.2, 5.0
"""Prior: width of the halo, and the distance to which it counts, in widths of a spot."""
_HEIGHTS = 4_000
"""Guard: heights of a table of noise."""


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
class Mixture:
    """Noise and spots in the significances of candidates.

    Parameters: logarithms of the width of noise's tail, of its number over the computed one, of the number
    of spots; mean and logarithm of the standard deviation of the logarithm of their significances.
    """

    u: NDArray[np.float64]
    false: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    low: float

    @cached_property
    def noise(self) -> NDArray[np.float64]:
        """(4, n): heights; expected maxima of noise above each; logarithm of their density, and its slope."""
        height = np.linspace(self.low / 2, self.low + 40, _HEIGHTS)  # beyond, the density of a Gaussian is 0
        number = self.false(height)
        density = np.log(np.maximum(-np.gradient(number, height), 1e-300))
        return np.stack([height, number, density, np.gradient(density, height)])

    def densities(
        self, theta: NDArray[np.float64], u: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Logarithms of the densities of noise and of spots at these significances."""
        wide, share, number, mean, log_sd = theta
        t = (np.log(u) - mean) / np.exp(log_sd)
        height, _, density, _ = self.noise
        noise = share - wide + np.interp(u / np.exp(wide), height, density)
        return noise, number - t * t / 2 - np.log(u) - log_sd - np.log(2 * np.pi) / 2

    def fitted(self) -> tuple[NDArray[np.float64], float]:
        """The parameters of the largest posterior, and its logarithm over that without spots."""
        none, most, low, top = np.log([TINY, len(self.u) + 1, self.low, self.u.max()]).tolist()
        log_sd, far = float(np.log(_UNEQUAL)), 10 * _UNEQUAL_BY  # guards: exponentials stay finite
        bounds = np.array([
            [0, -_NUMBER, none, low, log_sd - far], [_WIDER, _NUMBER, 2 * most, top, log_sd + far],
        ])  # fmt: skip
        middle = np.quantile(self.u, (1 + np.array(_STARTS)) / 2)
        starts = [
            np.array([0.1, 0.0, most + np.log(1 - at), np.log(m), log_sd])
            for at, m in zip(_STARTS, middle, strict=True)
        ]
        given = self.u, self.low, self.noise, _UNEQUAL, _UNEQUAL_BY
        best, loss = min((fitted_mixture(at, bounds, *given) for at in starts), key=lambda fit: float(fit[1]))
        bounds[:, 2:] = none, 0, log_sd
        _, alone = fitted_mixture(np.array([0.1, 0, none, 0, log_sd]), bounds, *given)
        return best, float(alone - loss)


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
    mixture = Mixture(best[complete], false, least)
    theta, evidence = mixture.fitted()
    noise, spots = mixture.densities(theta, best)
    p = np.minimum.accumulate(expit(spots - noise))
    rank, true = np.arange(1, len(p) + 1), np.cumsum(p)
    if fdr is not None:
        keep = int(((rank - true) / rank <= fdr).sum())
    elif evidence < _PRESENT:
        keep = 0
    else:
        total = max(float(np.exp(theta[2])), float(true[-1]))
        keep = int(np.argmax(true / (rank + total - true))) + 1
    return Decision(order, keep, p)


def beside_bright(
    position: NDArray[np.float64],
    height: NDArray[np.float64],
    significance: NDArray[np.float64],
    sigma: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(n,) significances if the halo of much brighter spots is noise at each candidate."""
    wide = np.where(sigma > 0, sigma, 1.0)
    pairs = cKDTree(position / wide).query_pairs(_HALO_REACH, output_type="ndarray")
    away = np.linalg.norm((position[pairs[:, 0]] - position[pairs[:, 1]]) / wide, axis=1)
    bright, dim = height[pairs].max(axis=1), height[pairs].min(axis=1)
    halo = np.where(dim < _HALO * bright, bright, 0) * _HALO * np.exp(-((away / _HALO_WIDTH) ** 2) / 2)
    noise = np.zeros(len(position))
    np.maximum.at(noise, pairs[np.arange(len(pairs)), height[pairs].argmin(axis=1)], halo)
    return significance / np.sqrt(1 + (significance * noise / np.maximum(height, 1e-9)) ** 2)
