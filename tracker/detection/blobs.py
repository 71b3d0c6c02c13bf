"""Blobs without a common profile, such as nuclei: maxima of a Laplacian of Gaussian against minima.

Each blob has the larger response of a narrower and a wider filter: the narrower one divides blobs that touch.

A bright blob is surrounded by a ring of minima, which would count as decoys against dim blobs. So the filter
response of accepted blobs is subtracted before the others are tested, as in CLEAN (Högbom, Astron.
Astrophys. Suppl. 15, 417, 1974).

The filter is the negative Laplacian, normalised by the widths (Lindeberg, Int. J. Comput. Vision 30, 79,
1998). Texture and uneven light cause minima that are as deep as the false maxima are high. The minima
therefore serve as an empirical null distribution (target and decoy; Elias & Gygi, Nat. Methods 4, 207, 2007).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d, gaussian_filter
from scipy.spatial import cKDTree
from scipy.special import ndtr

from .decision import Decision
from .fit_cpu import REACH
from .joint import WINDOW, local_maxima
from .response_cpu import vertices
from .spectrum import Modes, along
from .stabilise import light_of_spots
from .width import NARROWEST, NEXT, TRIED, Search

_FILTER = 1.4
"""Prior: width of the filter over that of a Gaussian blob."""
_SCALES = (0.85, 1.0)
"""Prior: widths of the filter over the common one; a blob counts at that of its largest response."""
_ALIKE = 3.0
"""Prior: standard deviations of the logarithm of the blobs' brightness by which one may be dimmer."""
_EVERYWHERE = 0.05
"""Guard: share of the noise scale of the whole frame that is added to the local one."""
_STRETCHES = (0.7, 0.85, 1.0, 1.2, 1.4)
"""Prior: widths along z over those in the plane, in units of length."""
_WITHIN = 1.5
"""Prior: widths about the middle of a blob in which a minimum is its texture."""
_NEARBY = 0.5
"""Prior: range of qualities in which minima and maxima are counted for a probability."""


def laplacian(image: NDArray[np.float32], sigma: NDArray[np.float64]) -> NDArray[np.float32]:
    """Sum over axes of -σ² times the second derivative of the smoothed image; edge values are repeated."""
    deep = [axis for axis in range(3) if sigma[axis] > 0 and image.shape[axis] > 1]
    total = None
    for curved in deep:
        part = image
        for axis in deep:
            part = _along(part, float(sigma[axis]), axis, curved=axis == curved)
        total = part if total is None else total + part
    return image * 0 if total is None else -total


def _along(image: NDArray[np.float32], width: float, axis: int, *, curved: bool) -> NDArray[np.float32]:
    """Smoothed along an axis, or σ² times the second derivative; exact for constants and parabolas."""
    reach = max(int(REACH * width + 0.5), 1)
    x = np.arange(-reach, reach + 1)
    taps = np.exp(-0.5 * (x / width) ** 2)
    taps /= taps.sum()
    if curved:
        taps = (x**2 / width**2 - 1) * taps - ((x**2 / width**2 - 1) * taps).sum() * taps
        taps *= 2 * width**2 / (x**2 * taps).sum()
    return correlate1d(image, taps, axis, mode="nearest")


class Blobs(NamedTuple):
    """Maxima of the filter response, best first.

    Parameters
    ----------
    position : (n, 3) float64 array
        In voxels: the vertex of a parabola through the maximum and its neighbours.
    height : (n,) float64 array
        Grey values, normalised so that it does not depend on the voxel.
    quality : (n,) float64 array
        Height without the rings of neighbouring blobs, divided by the local noise scale of the residual.
    decision : Decision
        The decision on the number of blobs.
    """

    position: NDArray[np.float64]
    height: NDArray[np.float64]
    quality: NDArray[np.float64]
    decision: Decision


def find_blobs(image: NDArray[np.float32], sigma: NDArray[np.float64], fdr: float | None) -> Blobs:
    """Find blobs that match the width of the filter.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
        NaN where nothing was measured.
    sigma : (3,) float64 array
        Width of the filter in voxels; z is ignored in a flat image.
    fdr : float, optional
        As for `decide`.
    """
    dead = ~np.isfinite(image)
    if dead.any():
        image = np.where(dead, np.nanmedian(image) if not dead.all() else 0, image).astype(np.float32)
    responses = [np.where(dead, np.float32(0), laplacian(image, share * sigma)) for share in _SCALES]
    values, low = np.maximum(*responses), np.minimum(*responses)
    voxel, minima = local_maxima(values, 0.0), local_maxima(-low, 0.0)
    position, at = vertices(values, np.float32(1), voxel)[0], tuple(voxel.T)
    height = values[at].astype(np.float64)
    unit = np.where(sigma > 0, sigma * np.sqrt(1 + 1 / _FILTER**2), 1.0)
    scale = _noise_scale(low, sigma)
    depth = _depths(low, scale, minima)
    quality, keep = _qualities(height, scale[at], depth, fdr)
    if keep:
        accepted = quality >= np.sort(quality)[-keep]
        bright = values.shape, position[accepted], height[accepted]
        responses = [
            response - _response_to_blobs(*bright, share * sigma)
            for share, response in zip(_SCALES, responses, strict=True)
        ]
        values, low = np.maximum(*responses), np.minimum(*responses)
        scale = _noise_scale(low, sigma)
        minima = local_maxima(-low, 0.0)
        # Minima inside a blob are due to its misfit.
        outside = cKDTree(position[accepted] / unit).query(minima / unit)[0] > _WITHIN
        depth = _depths(low, scale, minima[outside])
        alone = values[at] + np.where(accepted, height, 0.0)
        quality, keep = _qualities(alone, scale[at], depth, fdr)
    order = np.argsort(-quality, kind="stable")
    best = quality[order]
    probability = _probabilities(best, _number_deeper(depth, best))
    return Blobs(position[order], height[order], best, Decision(order, keep, probability))


def _qualities(
    light: NDArray[np.float64], scale: NDArray[np.float64], depth: NDArray[np.float64], fdr: float | None
) -> tuple[NDArray[np.float64], int]:
    """Quality of each maximum, and how many of the best are blobs.

    Those that stand out of the minima are; and those not much dimmer than these. A crowd has gaps as deep as
    its blobs are high, but haze, texture and noise are dimmer by more than blobs differ.
    """
    height = light / scale
    keep = _count(np.sort(height)[::-1], depth, fdr)
    if keep == 0 or fdr is not None:
        return height, keep
    least = np.sort(height)[-keep]
    alike = significant = height >= least
    while True:
        middle, upper = np.quantile(np.log(np.maximum(light[alike], 1e-30)), [0.5, float(ndtr(1.0))])
        low = float(np.exp(middle - _ALIKE * (upper - middle)))
        more = significant | (light >= low)
        if more.sum() <= alike.sum():
            break
        alike = more
    quality = np.maximum(height, least * light / low)
    return quality, int((quality >= least).sum())


def _response_to_blobs(
    shape: tuple[int, ...],
    position: NDArray[np.float64],
    height: NDArray[np.float64],
    sigma: NDArray[np.float64],
) -> NDArray[np.float32]:
    """The response to Gaussian blobs that alone have these heights."""
    dimensions = int((sigma > 0).sum())
    both = 1 + _FILTER**2  # squared width of the smoothed blob over that of the blob
    peak = dimensions * _FILTER**2 / both / both ** (dimensions / 2)
    return laplacian(light_of_spots(shape, position, height / peak, sigma / _FILTER), sigma)


def _noise_scale(values: NDArray[np.float32], sigma: NDArray[np.float64]) -> NDArray[np.float32]:
    """Standard deviation of noise around each voxel, from negative values, with a share of that of all."""
    square = np.minimum(values, 0) ** 2
    local = gaussian_filter(square, WINDOW * sigma, mode="nearest")
    return np.sqrt(2 * local) + _EVERYWHERE * np.sqrt(2 * square.mean()) + np.float32(1e-30)


def _depths(
    values: NDArray[np.float32], scale: NDArray[np.float32], minima: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sorted depths of minima."""
    return np.sort((-values / scale)[tuple(minima.T)].astype(np.float64))


def _number_deeper(depth: NDArray[np.float64], height: NDArray[np.float64]) -> NDArray[np.float64]:
    """Number of minima that are deeper than each maximum is high."""
    return (len(depth) - np.searchsorted(depth, height)).astype(np.float64)


def _count(height: NDArray[np.float64], depth: NDArray[np.float64], fdr: float | None) -> int:
    """Number of highest maxima that are kept."""
    if len(height) == 0:
        return 0
    false = _number_deeper(depth, height)
    if fdr is not None:
        return int((np.minimum.accumulate((false / np.arange(1, len(false) + 1))[::-1])[::-1] <= fdr).sum())
    true = np.arange(1, len(false) + 1) - false
    return int(np.argmax(true / (max(float(true.max()), 1e-9) + false))) + 1


def _probabilities(best: NDArray[np.float64], false: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): 1 minus the minima per maximum within `_NEARBY` above each one; non-increasing."""
    first = np.searchsorted(-best, -(best + _NEARBY), side="left")
    before = np.where(first > 0, false[np.maximum(first - 1, 0)], 0.0)
    rate = (false - before) / (np.arange(1, len(best) + 1) - first)
    return 1 - np.maximum.accumulate(np.clip(rate, 0, 1)).round(12)


def width_of_blobs(search: Search) -> NDArray[np.float64] | None:
    """(3,) widths in voxels of the filter of largest response, beyond texture; None if none stands out.

    The power of the normalised filter's response is V(σ) = mean of (σk)⁴ exp(-σ²k²) P(k); its first maximum
    by σ is that of the blobs, at 2/√d times the width of Gaussian ones in d dimensions.
    """
    modes, scale = search.modes[0], search.scale
    power = np.where(np.isfinite(search.power[0]), np.maximum(search.power[0] - 1, 0), 0)
    widths = [w * scale for w in NARROWEST * NEXT ** np.arange(TRIED)]
    variance = [_response_power(modes, sigma, power) for sigma in widths]
    for number in range(1, len(variance) - 1):
        if variance[number - 1] < variance[number] >= variance[number + 1]:
            before, at, after = np.log(np.maximum(variance[number - 1 : number + 2], 1e-30))
            shift = (before - after) / (2 * (before - 2 * at + after))
            wide = NEXT**shift * _FILTER * np.sqrt((scale > 0).sum()) / 2
            return _stretched(widths[number] * wide, modes, power)
    return None


def _stretched(sigma: NDArray[np.float64], modes: Modes, power: NDArray[np.float32]) -> NDArray[np.float64]:
    """With the width along z of the largest response: bodies may touch, or be blurred along z."""
    tried = [sigma * np.array([stretch, 1, 1]) for stretch in _STRETCHES] if sigma[0] > 0 else [sigma]
    return max(tried, key=lambda widths: _response_power(modes, widths, power))


def noise_of_response(modes: Modes, sigma: NDArray[np.float64]) -> float:
    """Standard deviation of the normalised filter's response to white noise of variance 1."""
    return _response_power(modes, sigma, np.float32(1)) ** 0.5


def _response_power(
    modes: Modes, sigma: NDArray[np.float64], power: NDArray[np.float32] | np.float32
) -> float:
    """Mean square of the response to light of this power."""
    z, y, x = (along(axis, (k * s) ** 2) for axis, (k, s) in enumerate(zip(modes.k, sigma, strict=True)))
    square = z + y + x
    return float((square**2 * np.exp(-square) * power).mean(dtype=np.float64))
