"""Measure camera noise from images: the variance of a voxel as a linear function of its mean.

The mixed second difference e = ∂²x ∂²y I / 6 of a plane is almost pure noise, and for white noise it has the
variance of a voxel. In bins of the mean over 5 x 5 voxels, this variance is estimated as (quantile .4 of |e|
/ .5244)². A line is fitted from below: points above it contain spots. Gain and offset need not be known
separately.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..compute.tolerances import NEGLIGIBLE
from ..settings.detection import DetectionSettings
from .prepare import SAMPLED, Sample
from .stabilise import Noise

_BINS = (*np.linspace(0, 0.9, 18), 0.93, 0.96, 0.98, 0.99, 0.997, 1.0)
"""Shares of the voxels, in the order of their means, that bound the bins."""
_FEWEST = 60
"""Guard: voxels of a bin of which a variance is measured."""
_QUANTILE = 0.4
"""Prior: quantile of |e| that the variance is read from: below what spots reach."""
_TRIMMED = 0.9
"""Prior: share of |e| that a trimmed variance is of."""
_FLAT_RISE = 0.02
"""Error level: rise of the variance over the range of means, relative to it, below which it is no slope."""
_SATURATED = 3
"""Error level: voxels of the largest value from which it is that of saturation."""


def noise_of(frames: Sequence[NDArray], sample: Sample, settings: DetectionSettings) -> Noise:
    """The noise of a movie in the scale of the sample, from the settings or measured in its parts.

    Examples
    --------
    >>> from outbid.detection.prepare import sample_of
    >>> light = np.random.default_rng(0).poisson(np.linspace(10, 90, 200), (1, 200, 200))
    >>> frames, settings = [100 + 2.0 * light], DetectionSettings()
    >>> sample = sample_of(frames, settings)
    >>> noise = noise_of(frames, sample, settings)
    >>> round((noise.base - noise.slope * sample.middle) / -200, 1), round(noise.slope, 1)
    (1.0, 2.0)
    """
    parts, middle, unit = sample.parts, sample.middle, sample.unit
    sign, differences = -1.0 if settings.dark else 1.0, [_differences(part) for part in parts]
    if settings.gain is not None:
        slope = settings.gain / unit
        base = ((settings.read_noise or 0.0) / unit) ** 2 + slope * (middle - (settings.offset or 0.0)) / unit
    else:
        base, slope = _line([(sign * mean, rough) for mean, rough in differences])
    least = _least_variance(parts, [mean for mean, _ in differences], base, sign * slope)
    rise = abs(slope) * max((float(np.ptp(mean)) for mean, _ in differences if len(mean)), default=0.0)
    if settings.gain is None and rise < _FLAT_RISE * least:  # or values would be small beside their offset
        base, slope = max(base, 0.0), 0.0
    saturation = np.inf if settings.dark else (_saturation(frames) - middle) / unit
    return Noise(base, sign * slope, least, saturation, settings.gain is not None)


def _saturation(frames: Sequence[NDArray]) -> float:
    """The grey value at which the camera saturates: the largest value of its bit depth, of 8 bits or more."""
    if frames[0].dtype.kind not in "iu":
        return np.inf
    value = max(int(frame.max()) for frame in frames)
    several = sum(int((frame == value).sum()) for frame in frames) >= _SATURATED
    largest = value == np.iinfo(frames[0].dtype).max
    full = largest or (value >= np.iinfo(np.uint8).max and (value + 1).bit_count() == 1)
    return value if full and several else np.inf


def _line(differences: Sequence[tuple[NDArray, NDArray]]) -> tuple[float, float]:
    """Intercept and slope (at least 0) of the variance, from means and differences of some images."""
    if not any(len(mean) for mean, _ in differences):
        return NEGLIGIBLE, 0.0
    mean, rough = (np.concatenate(column) for column in zip(*differences, strict=True))
    order = np.argsort(mean)
    mean, rough = mean[order], np.abs(rough[order])
    cuts = np.unique((np.array(_BINS) * len(mean)).astype(int))
    bins = [(i, j) for i, j in zip(cuts[:-1], cuts[1:], strict=True) if j - i >= _FEWEST]
    if not bins:
        return float(np.mean(rough**2)), 0.0
    step = _step(rough)
    level = np.array([mean[i:j].mean() for i, j in bins])
    variance = np.array([_variance(rough[i:j], step) for i, j in bins])
    return _lower_line(level, np.maximum(variance, 1e-12), np.array([float(j - i) for i, j in bins]))


def _differences(image: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of 5 x 5 voxels and mixed second differences, where all voxels are measured and unsaturated."""
    measured = image[np.isfinite(image)]
    if min(image.shape[1:]) < 12 or len(measured) == 0:
        return np.empty(0, np.float32), np.empty(0, np.float32)
    pairs, (rows, columns) = [], (image.shape[1] - 4, image.shape[2] - 4)
    low, high = float(measured.min()), float(measured.max())
    for plane in (one.astype(np.float64) for one in image):
        along_y = plane[:-2] - 2 * plane[1:-1] + plane[2:]
        rough = (along_y[:, :-2] - 2 * along_y[:, 1:-1] + along_y[:, 2:]) / 6
        sums = sum(plane[k : k + rows] for k in range(5))
        sums = sum(sums[:, k : k + columns] for k in range(5)) / 25
        good = np.isfinite(sums) & (sums > low) & (sums < high)
        pairs.append((sums[good].astype(np.float32), rough[1:-1, 1:-1][good].astype(np.float32)))
    mean, rough = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return mean, rough


def _step(rough: NDArray[np.float64]) -> float:
    """The least difference between distinct values, which is the step of integer grey values."""
    part = np.unique(rough[:: max(1, len(rough) // SAMPLED)].round(6))
    return float(np.diff(part).min()) if len(part) > 1 else 0.0


def _variance(rough: NDArray[np.float64], step: float) -> float:
    """Variance of differences from a quantile of their size, or a trimmed variance for coarse grey values.

    Each value represents an interval up to half way to its neighbours; otherwise integer grey values would
    cause steps of a tenth.
    """
    value, count = np.unique(rough.round(6), return_counts=True)
    edges = np.append((value[:-1] + value[1:]) / 2, value[-1])
    low = float(np.interp(_QUANTILE * len(rough), np.cumsum(count), edges))
    if low > 2 * step:
        return (low / float(ndtri((1 + _QUANTILE) / 2))) ** 2
    top = np.quantile(rough, _TRIMMED)
    cut = float(ndtri((1 + _TRIMMED) / 2))
    of_normal = 1 - 2 * cut * np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi) / _TRIMMED
    return float(np.mean(rough[rough <= top] ** 2)) / of_normal


def _lower_line(
    level: NDArray[np.float64], variance: NDArray[np.float64], count: NDArray[np.float64]
) -> tuple[float, float]:
    """A line below the points: points above it contain signal and lose their weight."""
    lowest, weight = level.min(), count / variance**2
    base, slope = float(variance[0]), 0.0
    for _ in range(12):
        root = np.sqrt(weight)
        design = np.stack([np.ones_like(level), level - lowest], axis=1) * root[:, None]
        base, slope = np.linalg.lstsq(design, variance * root, rcond=None)[0]
        if slope < 0 or base <= 0:
            base = np.average(variance, weights=weight) if slope <= 0 else 1e-9
            slope = max(slope, 0.0)
        fit = base + slope * (level - lowest)
        above = np.maximum((variance - fit) / fit * np.sqrt(count / 4), 0)
        weight = count / fit**2 / (1 + above**2 / 4)
    if slope * (level.max() - lowest) < _FLAT_RISE * base:
        slope = 0.0
    return float(base - slope * lowest), float(slope)


def _least_variance(
    images: Sequence[NDArray[np.float32]], local: Sequence[NDArray], base: float, slope: float
) -> float:
    """Lower limit of the variance: half the variance of the darkest hundredth, or that of rounding."""
    values = np.concatenate([image[np.isfinite(image)][:: max(1, image.size // SAMPLED)] for image in images])
    if len(values) == 0:
        return 1.0
    means = np.concatenate(local)
    means = means if len(means) else values
    low, high = np.quantile(means, [0.01, 0.99]) if slope else (0.0, 0.0)
    dark = base + slope * float(low if slope >= 0 else high)
    low, high = np.quantile(values, [0.01, 0.9999])
    part = np.unique(values)
    step = float(np.diff(part).min()) if 1 < len(part) < 70_000 else 0.0
    return max(
        dark / 2,
        step**2 / 12 if step >= NEGLIGIBLE * (high - low) else 0.0,
        (NEGLIGIBLE * (high - low)) ** 2,
        1e-20,
    )
