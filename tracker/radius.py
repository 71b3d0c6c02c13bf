"""The radius of the spots of an image, where nobody tells it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from itertools import product
from math import sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .blobs import local_maxima, noise_gain, noise_of, response
from .spots import DetectionSettings, sigma_of

_Choice = TypeVar("_Choice")

_ELONGATIONS = (1.0, 1.5, 2.0, 2.7)  # of spots along z, that are tried
_ESTIMATE_VOXELS = 1_000_000


def estimate_radius(
    image: NDArray[np.float32], settings: DetectionSettings, pool: Executor | None = None
) -> DetectionSettings:
    """The settings with the radii at which spots stand out most from pixel noise.

    Of all radii that the frame has room for, it is that with the greatest Σ (q/σ - 5)³ over the local maxima
    with quality q above 5 σ, where σ is what the filter leaves of white noise. That is the scale of the
    filter that finds best, about 1.5 times that of the spots.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
        On the host.
    settings : DetectionSettings
    pool : Executor, optional
        Tries several radii at once; the result is the same.
    """
    crop = _crop(image)
    noise = _pixel_noise(crop)
    plane = settings.spacing[1] * min(crop.shape[1:])
    radii = [radius for k in range(12) if (radius := settings.spacing[1] * 1.5 * 1.25**k) <= plane / 12]
    radii = radii or [1.5 * settings.spacing[1]]
    # Where a stack has few planes, more smoothing along z finds no more noise to even out.
    deepest = crop.shape[0] / 6 * sqrt(3) * settings.spacing[0]

    def in_the_plane(radius: float) -> float:
        tried = replace(settings, radius=radius, radius_z=min(1.5 * radius, deepest))
        values, white = _answer(crop, noise, tried)
        # Uneven light and neighbours are noise too, where they are more than white noise.
        return _salience(values, max(white, noise_of(values, sigma_of(tried, crop.shape))))

    chosen = _best(radii, in_the_plane, pool)
    if crop.shape[0] == 1:
        return replace(settings, radius=chosen, radius_z=None)
    tried = [
        replace(settings, radius=radius, radius_z=min(radius * long, deepest))
        for radius, long in product([r for r in radii if chosen / 1.3 < r < chosen * 1.3], _ELONGATIONS)
    ]
    return _best(tried, lambda one: _salience(*_answer(crop, noise, one)), pool)


def _best(choices: list[_Choice], worth: Callable[[_Choice], float], pool: Executor | None) -> _Choice:
    """The first of the choices that are worth most."""
    worths = list(pool.map(worth, choices) if pool else map(worth, choices))
    return choices[worths.index(max(worths))]


def _crop(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """The middle of a large image."""
    share = min(1.0, sqrt(_ESTIMATE_VOXELS / image.size))
    if share == 1:
        return image
    keep = [max(int(n * share), 16) for n in image.shape[1:]]
    start = [(n - k) // 2 for n, k in zip(image.shape[1:], keep, strict=True)]
    return image[:, start[0] : start[0] + keep[0], start[1] : start[1] + keep[1]]


def _pixel_noise(image: NDArray[np.float32]) -> float:
    """Standard deviation of white noise, from the differences of pixels to their four neighbours."""
    middle = image[:, 1:-1, 1:-1] * 4
    around = image[:, :-2, 1:-1] + image[:, 2:, 1:-1] + image[:, 1:-1, :-2] + image[:, 1:-1, 2:]
    rough = middle - around
    if rough.size == 0:
        return 1.0
    return (
        float(np.median(np.abs(rough - np.median(rough)))) * 1.4826 / sqrt(20)
        or float(image.std()) / 20
        or 1.0
    )


def _answer(
    image: NDArray[np.float32], noise: float, settings: DetectionSettings
) -> tuple[NDArray[np.float32], float]:
    """The filter's answer, and what it leaves of white noise."""
    sigma = sigma_of(settings, image.shape)
    flat = image.shape[0] == 1
    return response(image, sigma, settings.filter), noise * noise_gain(sigma, settings.filter, flat=flat)


def _salience(values: NDArray[np.float32], floor: float) -> float:
    """How far the maxima stand out of the noise."""
    voxel = local_maxima(values, 5 * floor)
    return float(((values[tuple(voxel.T)].astype(np.float64) / floor - 5) ** 3).sum())
