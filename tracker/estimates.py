"""Estimates from steps: how far particles move, what they remember, how heavy their tails are."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.spatial import cKDTree
from scipy.special import gammainc, gammaln

from .motion import Motion

LAGS = 5
"""Steps whose covariance is used are up to this many less one apart."""

_SAMPLE = 20_000
_BINS = 60
_LEAST = 20
"""Fewer pairs of steps than this tell nothing of a covariance."""
_CREDIBLE = 12.0
"""Least fall of the weighted squares that makes a persistence credible: noise brings more once in 100."""


def spacing_of(position: NDArray[np.float64], frame_start: NDArray[np.int64]) -> float:
    """Median distance of a detection to the nearest other one of its frame; 0 if there is none.

    Parameters
    ----------
    position : (N, axes) float64 array
    frame_start : (F + 1,) int64 array
    """
    within = _nearest(position, frame_start)[1]
    return float(np.median(within)) if len(within) else 0.0


def _nearest(
    position: NDArray[np.float64], frame_start: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distances to the nearest detection of the next frame and of the same (sorted), in some frames."""
    between, within, taken = [np.empty(0)], [np.empty(0)], 0
    for frame in np.random.default_rng(0).permutation(max(len(frame_start) - 2, 0)):
        here = position[frame_start[frame] : frame_start[frame + 1]]
        there = position[frame_start[frame + 1] : frame_start[frame + 2]]
        if len(here) < 2 or len(there) < 2:
            continue
        between.append(cKDTree(there).query(here)[0])
        within.append(cKDTree(here).query(here, 2)[0][:, 1])
        taken += len(here)
        if taken > _SAMPLE:
            break
    return np.concatenate(between), np.sort(np.concatenate(within))


def first_step(position: NDArray[np.float64], frame_start: NDArray[np.int64]) -> float:
    r"""Standard deviation of a step along an axis, before anything is linked.

    The distance from a particle to the nearest detection of the next frame is that of its own step or of
    a stranger, whichever is less. With the stranger's survival function A, taken from the nearest
    neighbours within the frames, and the share q of particles that are seen again,

    .. math:: P(R > r) = [1 - q F_\sigma(r)] A(r)

    with F the distribution function of the length of a Gaussian step; the likeliest σ is returned.

    Parameters
    ----------
    position : (N, axes) float64 array
    frame_start : (F + 1,) int64 array

    Returns
    -------
    float
        0 if no two consecutive frames hold two detections.
    """
    axes = position.shape[1]
    nearest, stranger = _nearest(position, frame_start)
    if len(nearest) == 0:
        return 0.0
    farthest = float(nearest.max())
    if farthest == 0:
        return 0.0
    edges = np.unique([0.0, *np.quantile(nearest, np.linspace(0, 1, _BINS))[1:-1], farthest * (1 + 1e-9)])
    seen = np.histogram(nearest, edges)[0]
    alone = 1 - np.searchsorted(stranger, edges, side="right") / (len(stranger) + 1)
    least = max(float(np.quantile(nearest, 0.02)) / 3, 1e-6 * farthest)
    best, found = -math.inf, farthest
    for sigma in np.geomspace(least, farthest, 120):
        reached = gammainc(axes / 2, (edges / sigma) ** 2 / 2)
        for share in (0.5, 0.7, 0.8, 0.9, 0.95, 1.0):
            chance = np.maximum(-np.diff((1 - share * reached) * alone), 1e-12)
            likelihood = float((seen * np.log(chance / chance.sum())).sum())
            if likelihood > best:
                best, found = likelihood, float(sigma)
    return found


def motion_from(covariance: NDArray[np.float64], weight: NDArray[np.float64]) -> Motion:
    r"""The motion whose step covariances come nearest to those measured.

    For a persistence P the covariances are linear in the squared speed, diffusion and noise:

    .. math:: C_0 = S^2 g_0 + D^2 + 2 \sigma^2, \quad C_1 = S^2 g_1 - \sigma^2, \quad C_k = S^2 g_1 a^{k-1}

    so non-negative least squares gives those, and P is searched on a grid. Without a credible gain the
    particles count as static.

    Parameters
    ----------
    covariance : (LAGS, axes) float64 array
        Mean product of the steps of a particle 0, 1, … frames apart.
    weight : (LAGS,) float64 array
        How many pairs of steps stand behind each.
    """
    lag = np.nonzero(weight >= _LEAST)[0]
    if len(lag) < 2:
        return Motion.static(tuple(np.sqrt(covariance[0]).tolist()))
    variance, root = np.maximum(covariance[0], 1e-300), np.sqrt(weight[lag])[:, None]
    correlation = covariance[lag] / variance
    seen_twice = np.where(lag == 0, 2.0, np.where(lag == 1, -1.0, 0.0))
    best, bar, found = math.inf, math.inf, (0.0, np.zeros((len(variance), 3)))
    for time in (0.0, *np.geomspace(0.3, 300, 61)):
        remembered = Motion((0.0,), (1.0,), time, (0.0,))
        along = np.array([remembered.step_covariance(int(k))[0] for k in lag])
        design = np.column_stack([along, lag == 0, seen_twice]) * root
        fits = [nnls(design, column) for column in (correlation * root).T]
        squares = sum(rest**2 for _, rest in fits)
        if time == 0:
            bar = squares - _CREDIBLE
        if time == 0 or (squares < bar and squares < best):
            best, found = squares, (time, np.array([part for part, _ in fits]))
    speed, diffusion, noise = np.sqrt(found[1] * variance[:, None]).T
    return Motion(tuple(diffusion.tolist()), tuple(speed.tolist()), float(found[0]), tuple(noise.tolist()))


def tail_from(
    distance2: NDArray[np.float64], size: NDArray[np.int64], weight: NDArray[np.float64]
) -> tuple[float, float]:
    """Degrees of freedom and scale of the likeliest Student's t; 0 and 1 where the Gaussian does as well.

    Parameters
    ----------
    distance2 : (Q,) float64 array
        Squared Mahalanobis distances of links.
    size : (Q,) int64 array
        In how many dimensions each was measured.
    weight : (Q,) float64 array
        Probability of each link.
    """
    total = max(float(weight.sum()), 1e-300)
    # Two sizes at most, and distances in bins: the likelihood needs no more.
    edges = np.geomspace(1e-3, max(float(distance2.max(initial=1.0)), 1.0) + 1, 200)
    bins = np.searchsorted(edges, distance2)
    near = np.concatenate([[0.0], edges])
    best, found = -math.inf, (0.0, 1.0)
    sizes = np.unique(size)
    counts = [np.bincount(bins[size == m], weights=weight[size == m], minlength=len(near)) for m in sizes]
    gauss = -sum(float((count * near[: len(count)]).sum()) for count in counts) / 2
    for freedom in (2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 30.0):
        for scale in np.geomspace(0.25, 1.6, 22):
            value = 0.0
            for m, count in zip(sizes, counts, strict=True):
                constant = gammaln((freedom + m) / 2) - gammaln(freedom / 2)
                constant -= m / 2 * math.log(freedom * scale / 2)
                fall = (freedom + m) / 2 * np.log1p(near / (freedom * scale))
                value += float((count * (constant - fall)).sum())
            if value > best:
                best, found = value, (freedom, float(scale))
    return found if best > gauss + 0.001 * total else (0.0, 1.0)
