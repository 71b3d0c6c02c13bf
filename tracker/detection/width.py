"""Estimate the width of spots from the autocorrelation of the background-subtracted image.

Noise does not contribute at lags of 1 and more. The half width divided by 1.665 is σ of a spot. The
background window is increased until the width no longer grows in proportion, as it would with uneven light.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from .background import Smoother, variance
from .joint import begin
from .joint_cpu import Noise
from .profile import gaussian
from .response import bell, correlate
from .scene import Scene, Work

_WINDOWS = 4.0 * 1.45 ** np.arange(12)  # voxels, of the background
_WINDOW = 6.0  # widths of a spot: of a background that leaves it as it is
_HALF = 1.665  # half width of an autocorrelation over σ: 2 √ln 2
_MOST_NARROWED = 1.6  # width of a spot over that after a background is subtracted
_SEEN = 6.0  # standard errors of the autocorrelation at lag 1
_PLATEAU = 0.5  # growth of the width in that of the window, of logarithms
_LAGS_Z = 20
_USUAL = 1.5  # length of a spot along z over its width, where it is not seen
_THINNEST = (0.5, 0.7)  # voxels, along z and in the plane
_ROOM = 16.0  # widths of a frame: with fewer, its background bends as spots do
_CORNER = 2.6  # radians a voxel: of the corners of a spectrum, where only noise is
_BANDS = (0.8, 1.2), (3.0, 3.5)  # radians a width of a spot: where its power is, and where little is left
_SALIENT = 5.0  # standard deviations that maxima of noise hardly reach
_MANY = 0.8  # of the largest number of such maxima


@dataclass(frozen=True)
class _Tried:
    window: float
    sigma: tuple[float, float]  # along z, in the plane
    seen: float


def autocorrelated(
    images: Sequence[NDArray[np.float32]], noise: Noise, spacing: tuple[float, float, float]
) -> tuple[NDArray[np.float64] | None, float]:
    """(3,) widths in voxels, or None if no signal is significant; and the significance of the signal."""
    tried: list[_Tried] = []
    size = min(min(image.shape[1:]) for image in images)
    for window in _WINDOWS.tolist():
        if window > max(size / 7, 4):
            break
        flattened = [_flattened(image, window, noise) for image in images]
        one = _width(flattened, window, spacing)
        if one is not None:
            tried.append(one)
            if one.sigma[1] < window / 6:
                break
    if not tried:
        return None, 0.0
    best = _plateau(tried)
    if best is None or best.sigma[1] > size / _ROOM:
        return None, tried[-1].seen
    plane = _without_window(best.sigma[1], best.window)
    return np.array([best.sigma[0], plane, plane]), best.seen


def _without_window(sigma: float, window: float) -> float:
    """The width of Gaussian spots that seem this wide after a background with this window is subtracted.

    The background is fitted twice, so with a window's spectrum S what is left of an image has the power
    (1 - S)^4: a sum of Gaussians. Half widths are estimated as those of images are.
    """
    lag = np.arange(1, int(2.2 * window) + 4, dtype=np.float64)
    true = sigma * np.linspace(1, _MOST_NARROWED, 61)
    spread = true[:, None] ** 2 + np.arange(5) * window**2 / 2
    shares = np.array([1, -4, 6, -4, 1]) / spread
    seen = [
        _half_width(share @ np.exp(-(lag**2) / (4 * wide[:, None])))
        for share, wide in zip(shares, spread, strict=True)
    ]
    return float(np.interp(sigma, [one or 0.0 for one in seen], true))


def _plateau(tried: list[_Tried]) -> _Tried | None:
    """The first width that does not grow with the window; otherwise the one that grows least, if small."""
    growth = [
        np.log(b.sigma[1] / a.sigma[1]) / np.log(b.window / a.window) if b.sigma[1] < b.window / 2 else 9.0
        for a, b in zip(tried[:-1], tried[1:], strict=True)
    ]
    flat = [k for k, slope in enumerate(growth) if slope < _PLATEAU]
    if flat:
        return tried[flat[0] + 1]
    best = tried[int(np.argmin(growth)) + 1] if growth else tried[0]
    return best if best.sigma[1] < best.window / 3 else None


def _flattened(image: NDArray[np.float32], window: float, noise: Noise) -> NDArray[np.float32]:
    """The image minus a background with this window, in standard deviations, without margins."""
    z, height, width = image.shape
    smoother = Smoother((z, height, width), (window, window))

    sums = smoother.zeros(4)
    smoother.add_up(image, image, np.inf, 0, sums)
    smooth = smoother.fit(sums, noise).rows(0, height)
    values = np.nan_to_num((image - smooth) / np.sqrt(variance(smooth, noise)))
    edge = min(int(window), min(height, width) // 6)
    values = values[:, edge : height - edge, edge : width - edge]
    top = max(float(np.quantile(values[:, ::2, ::2], 0.9995)), 1e-9)
    return np.ascontiguousarray(np.clip(values, -top, top), np.float32)


def _correlation(values: NDArray[np.float32], axis: int, lags: int) -> NDArray[np.float64]:
    """(lags,): autocorrelation at shifts 1, 2, … along an axis."""
    size = values.shape[axis]
    padded = fft.next_fast_len(size + lags, real=True)
    power = np.abs(fft.rfft(values, padded, axis=axis)) ** 2
    summed = power.sum(axis=tuple(other for other in range(3) if other != axis), dtype=np.float64)
    sums = fft.irfft(summed, padded)[1 : lags + 1]
    return sums / (values.size / size * (size - np.arange(1, lags + 1)))


def _width(
    flattened: list[NDArray[np.float32]], window: float, spacing: tuple[float, float, float]
) -> _Tried | None:
    """Widths for one background window; None if no signal is significant."""
    least = min(min(values.shape[1:]) for values in flattened)
    lags = min(int(2.2 * window) + 3, least - 1, max(least // 2, 2))
    if lags < 2:
        return None
    plane = np.mean([_correlation(v, a, lags) for v in flattened for a in (1, 2)], axis=0)
    seen = float(plane[0] * np.sqrt(2 * sum(values.size for values in flattened)))
    sigma = _half_width(plane)
    if seen < _SEEN or sigma is None:
        return None
    sigma = max(sigma, _THINNEST[1])
    return _Tried(window, (_along_z(flattened, sigma, spacing), sigma), seen)


def _along_z(
    flattened: list[NDArray[np.float32]], sigma: float, spacing: tuple[float, float, float]
) -> float:
    """The width along z, from planes smoothed to the width in the plane, whose noise is independent."""
    depth = min(values.shape[0] for values in flattened)
    if depth == 1:
        return 0.0
    taps = bell(sigma, reach=2.5)
    taps /= taps.sum()
    lags = max(min(depth // 2, _LAGS_Z), 1)
    smooth = [correlate(values, (np.ones(1), taps, taps)) for values in flattened]
    along = _half_width(np.mean([_correlation(values, 0, lags) for values in smooth], axis=0))
    if along is None or along > 0.95 * lags / _HALF:
        # Longer than the lags, or light that is uneven along z: between a usual spot and the longest.
        along = np.sqrt(_USUAL * sigma * spacing[1] / spacing[0] * max(depth / 4, 0.6))
    return float(np.clip(along, _THINNEST[0], max(depth / 4, 0.6)))


def sharpness(images: Sequence[NDArray[np.float32]], noise: Noise, sigma: float) -> float:
    """Power at wavelengths of about two widths over that at six, less two standard errors and white noise.

    It does not depend on how crowded spots are. Gaussian spots have .0001; edges and texture of bodies more.
    """
    power, waves = np.zeros((2, 0))
    for image in images:
        values = _flattened(image, max(_WINDOW * sigma, float(_WINDOWS[0])), noise)
        y, x = (np.hanning(n + 2)[1:-1] for n in values.shape[1:])
        there = np.abs(fft.fft2(values * (y[:, None] * x))) ** 2
        along, across = (2 * np.pi * fft.fftfreq(n) for n in values.shape[1:])
        power = np.concatenate([power, there.mean(axis=0).ravel()])
        waves = np.concatenate([waves, np.hypot(along[:, None], across).ravel()])
    floor = power[waves > _CORNER].mean()
    usual, sharp = (power[(waves * sigma > low) & (waves * sigma < high)] for low, high in _BANDS)
    if len(usual) == 0 or len(sharp) == 0 or usual.mean() <= floor or sigma * _CORNER < _BANDS[1][1]:
        return 0.0
    error = sharp.mean() / np.sqrt(len(sharp) / 2)
    return float((sharp.mean() - floor - 2 * error) / (usual.mean() - floor))


def width_along_z(
    images: Sequence[NDArray[np.float32]], noise: Noise, sigma: float, spacing: tuple[float, float, float]
) -> float:
    """Width along z, in voxels, of spots with width `sigma` in the plane."""
    window = max(_WINDOW * sigma, float(_WINDOWS[0]))
    return _along_z([_flattened(image, window, noise) for image in images], sigma, spacing)


def _half_width(correlation: NDArray[np.float64]) -> float | None:
    """σ of a Gaussian with this half width above the nearby minimum; lag 0 is extrapolated as a Gaussian."""
    if len(correlation) < 3 or correlation[0] <= 0:
        return None
    first = correlation[0]
    top = min(first ** (4 / 3) / max(correlation[1], 0.02 * first) ** (1 / 3), 6 * first)
    values = np.concatenate([[top], correlation])
    below = np.flatnonzero(values < top / 2)
    near = int(below[0]) if len(below) else len(values) - 1
    values = values - min(0.0, float(values[: 5 * near + 2].min()))
    below = np.flatnonzero(values < values[0] / 2)
    if len(below) == 0:
        return (len(values) - 1) / _HALF
    k = int(below[0])
    return float((k - 1 + (values[k - 1] - values[0] / 2) / (values[k - 1] - values[k])) / _HALF)


def salient(images: Sequence[NDArray[np.float32]], noise: Noise, work: Work) -> NDArray[np.float64] | None:
    """(3,) widths at which maxima are most significant, if the autocorrelation fails; None if none are.

    The response to uneven light increases with the width of the filter. So the next wider one has to be less
    significant; and where a still wider one is more, hardly any width may have more maxima.
    """
    image = max(images, key=lambda one: float(np.nanstd(one)))
    flat = image.shape[0] == 1
    deep = max(image.shape[0] / 5, 0.5)
    tried: list[tuple[float, int, NDArray[np.float64]]] = []
    for plane in (0.8 * 1.35 ** np.arange(10)).tolist():
        stretches = [0.0] if flat else [stretch for stretch in (0.4, 0.75, 1.3) if stretch * plane <= deep]
        if plane > max(min(image.shape[1:]) / _ROOM, 1.2) or not stretches:
            break
        best = 0.0, 0, np.zeros(3)
        for stretch in stretches:
            sigma = np.array([0.0 if flat else max(0.5, stretch * plane), plane, plane])
            scene = Scene(image, noise, gaussian(sigma, flat), work)
            height = begin(scene, _SALIENT)
            stands = float(((height - _SALIENT) ** 3).sum())
            if stands > best[0] and (len(height) >= 3 or height.max() > 2 * _SALIENT):
                best = stands, len(height), scene.optics.sigma
        tried.append(best)
    peaks = [a for a, b in itertools.pairwise(tried) if a[0] > b[0]]
    if not peaks:
        return None
    stands, count, sigma = max(peaks, key=lambda one: one[0])
    many = count >= _MANY * max(one[1] for one in tried)
    return sigma if many or stands >= max(one[0] for one in tried) else None
