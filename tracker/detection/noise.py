"""Measure camera noise from images: the variance of a voxel as a linear function of its mean.

The mixed second difference e = ∂²x ∂²y I / 6 of a plane is almost pure noise, and for white noise it has the
variance of a voxel. In bins of the mean over 5 x 5 voxels, this variance is estimated as (quantile .4 of |e|
/ .5244)². A line is fitted from below: points above it contain spots. Gain and offset need not be known
separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_opening

_BINS = (*np.linspace(0, 0.9, 18), 0.93, 0.96, 0.98, 0.99, 0.997, 1.0)
_FEWEST = 60  # voxels that a spread is taken of
_QUANTILE, _AT = 0.4, 0.5244  # of |e|, and where a standard normal variable has it: below what spots reach
_TRIMMED, _LEFT = 0.9, 0.623  # the share of |e| that a trimmed variance is of, and that of a normal variable
_PLANES = 24  # that are looked at
_FLAT_RISE = 0.02  # of the variance over the range of means: less is no slope
_CUT_SHARE = 0.02  # of the voxels in fields of the least value: these were not measured
_CUT_SIZE = 9  # voxels of such a field along y and x: photons are hardly ever all alike over that
_QUIET = 1e-3  # of the range of values: no noise is less, for images without any
_HOT = 8.0  # standard deviations above the neighbours
_MEANT = 100_000  # voxels of which a mean is taken
_RING = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
_HOT_SHARE = 0.12  # of a hot voxel's excess in its neighbours; a spot of half a voxel has .14 and more


class Noise(NamedTuple):
    """Noise: the variance of a voxel is base + slope x mean, at least `least`; values from `top` are cut.

    Parameters
    ----------
    base, slope, least : float
        Squared grey values; grey values; squared grey values.
    top : float
        Grey value at which the camera saturates; the true value may be larger.
    given : bool
        Whether the camera is given: no mode then has less noise than it.
    """

    base: float
    slope: float
    least: float
    top: float
    given: bool = False


def noise_line(images: Sequence[NDArray[np.float32]]) -> tuple[float, float]:
    """Intercept and slope (at least 0) of the variance as a function of the mean.

    Parameters
    ----------
    images : sequence of (Z, Y, X) float32 array
        Images in which light is bright; NaN marks voxels that were not measured.

    Examples
    --------
    >>> light = np.random.default_rng(0).poisson(np.linspace(10, 90, 200), (1, 200, 200))
    >>> base, slope = noise_line([(100 + 2.0 * light).astype(np.float32)])
    >>> round(base / -200, 1), round(slope, 1)
    (1.0, 2.0)
    """
    parts = [pair for image in images for pair in [_differences(image)] if len(pair[0])]
    if not parts:
        return _QUIET, 0.0
    mean, rough = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(mean)
    mean, rough = mean[order], np.abs(rough[order])
    cuts = np.unique((np.array(_BINS) * len(mean)).astype(int))
    bins = [(i, j) for i, j in zip(cuts[:-1], cuts[1:], strict=True) if j - i >= _FEWEST]
    if not bins:
        return float(np.mean(rough**2)), 0.0
    step = _step(rough)
    level = np.array([mean[i:j].mean() for i, j in bins])
    spread = np.array([_spread(rough[i:j], step) for i, j in bins])
    return _lower_line(level, np.maximum(spread, 1e-12), np.array([float(j - i) for i, j in bins]))


def _differences(image: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of 5 x 5 voxels and mixed second differences, where all voxels are measured and unsaturated."""
    part = image[:: max(1, image.shape[0] // _PLANES)]
    known = part[np.isfinite(part)]
    if min(part.shape[1:]) < 12 or len(known) == 0:
        return np.empty(0, np.float32), np.empty(0, np.float32)
    found, (rows, columns) = [], (part.shape[1] - 4, part.shape[2] - 4)
    low, high = float(known.min()), float(known.max())
    for plane in (one.astype(np.float64) for one in part):
        along_y = plane[:-2] - 2 * plane[1:-1] + plane[2:]
        rough = (along_y[:, :-2] - 2 * along_y[:, 1:-1] + along_y[:, 2:]) / 6
        sums = sum(plane[k : k + rows] for k in range(5))
        sums = sum(sums[:, k : k + columns] for k in range(5)) / 25
        good = np.isfinite(sums) & (sums > low) & (sums < high)
        found.append((sums[good].astype(np.float32), rough[1:-1, 1:-1][good].astype(np.float32)))
    mean, rough = (np.concatenate(column) for column in zip(*found, strict=True))
    return mean, rough


def _step(rough: NDArray[np.float64]) -> float:
    """The least difference between distinct values, which is the step of integer grey values."""
    part = np.unique(rough[:: max(1, len(rough) // 100_000)].round(6))
    return float(np.diff(part).min()) if len(part) > 1 else 0.0


def _spread(rough: NDArray[np.float64], step: float) -> float:
    """Variance of differences from a quantile of their size, or a trimmed variance for coarse grey values.

    Each value represents an interval up to half way to its neighbours; otherwise integer grey values would
    cause steps of a tenth.
    """
    value, count = np.unique(rough.round(6), return_counts=True)
    edges = np.append((value[:-1] + value[1:]) / 2, value[-1])
    low = float(np.interp(_QUANTILE * len(rough), np.cumsum(count), edges))
    if low > 2 * step:
        return (low / _AT) ** 2
    top = np.quantile(rough, _TRIMMED)
    return float(np.mean(rough[rough <= top] ** 2)) / _LEFT


def _lower_line(
    level: NDArray[np.float64], spread: NDArray[np.float64], count: NDArray[np.float64]
) -> tuple[float, float]:
    """A line below the points: points above it contain signal and lose their weight."""
    lowest, weight = level.min(), count / spread**2
    base, slope = float(spread[0]), 0.0
    for _ in range(12):
        root = np.sqrt(weight)
        design = np.stack([np.ones_like(level), level - lowest], axis=1) * root[:, None]
        base, slope = np.linalg.lstsq(design, spread * root, rcond=None)[0]
        if slope < 0 or base <= 0:
            base = np.average(spread, weights=weight) if slope <= 0 else 1e-9
            slope = max(slope, 0.0)
        fit = base + slope * (level - lowest)
        above = np.maximum((spread - fit) / fit * np.sqrt(count / 4), 0)
        weight = count / fit**2 / (1 + above**2 / 4)
    if slope * (level.max() - lowest) < _FLAT_RISE * base:
        slope = 0.0
    return float(base - slope * lowest), float(slope)


def least_variance(images: Sequence[NDArray[np.float32]], base: float, slope: float) -> float:
    """Lower limit of the variance: half the variance of the darkest hundredth, or that of rounding."""
    values = np.concatenate([image[np.isfinite(image)][:: max(1, image.size // 200_000)] for image in images])
    if len(values) == 0:
        return 1.0
    means = np.concatenate([_differences(image)[0] for image in images])
    means = means if len(means) else values
    low, high = np.quantile(means, [0.01, 0.99]) if slope else (0.0, 0.0)
    dark = base + slope * float(low if slope >= 0 else high)
    low, high = np.quantile(values, [0.01, 0.9999])
    part = np.unique(values)
    step = float(np.diff(part).min()) if 1 < len(part) < 70_000 else 0.0
    return max(
        dark / 2, step**2 / 12 if step >= 1e-3 * (high - low) else 0.0, (_QUIET * (high - low)) ** 2, 1e-20
    )


def masked(image: NDArray[np.float32], noise: Noise) -> NDArray[np.bool_]:
    """Voxels that were not measured: not finite, in constant regions or planes, or hot."""
    dead = ~np.isfinite(image)
    if dead.all():
        return dead
    low = image == np.fmin.reduce(image, axis=None)
    cut = low.mean() >= _CUT_SHARE and min(image.shape[1:]) >= _CUT_SIZE
    flat = [bool(plane.max() == plane.min()) for plane in image]
    usual = float(np.nanmean(image.ravel()[:: max(1, image.size // _MEANT)]))
    for number, plane in enumerate(image):
        if cut:
            dead[number] |= binary_opening(low[number], np.ones((_CUT_SIZE, _CUT_SIZE), bool))
        if flat[number] and not all(flat):
            dead[number] = True
        if min(plane.shape) >= 5:
            dead[number] |= _hot(plane, noise, usual)
    return dead


def _hot(plane: NDArray[np.float32], noise: Noise, usual: float) -> NDArray[np.bool_]:
    """Hot voxels: single voxels far above their neighbours in the plane, which receive none of the excess."""
    hot = np.zeros(plane.shape, bool)
    side = np.maximum(plane[1:-1, :-2], plane[1:-1, 2:])
    y, x = np.nonzero(plane[1:-1, 1:-1] - side > _HOT * np.sqrt(noise.least))
    ring = np.stack([plane[y + 1 + dy, x + 1 + dx] for dy, dx in _RING])
    top, mean = ring.max(axis=0), np.maximum(ring.mean(axis=0), usual)
    deviation = np.sqrt(np.maximum(noise.base + noise.slope * mean, noise.least))
    above = plane[y + 1, x + 1] - top
    found = (above > _HOT * deviation) & (top - ring.min(axis=0) < _HOT_SHARE * above + 5 * deviation)
    hot[y[found] + 1, x[found] + 1] = True
    return hot
