"""The radius of the spots of an image, where it is not given."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .blobs import local_maxima, noise_gain, noise_of, response
from .spots import NOISE_FACTOR, DetectionSettings, sigma_of

_ELONGATIONS = (1.0, 1.5, 2.0, 2.7)  # of spots along z, that are tried
_ESTIMATE_VOXELS = 1_000_000
_FINER = (0.64, 0.8)  # of the radii that find best
_WIDE = (3.0, 6.0)  # pixels: standard deviations from which pixels may be 2 and 4 times as large
_FLOOR = 5.0  # standard deviations that noise hardly reaches
_KEPT = 2 / 3  # of the sum at those
_MUCH = 5
_ONE_SPOT = (NOISE_FACTOR - _FLOOR) ** 3  # the sum of a spot that detection would just take

OTHER_SIGN = {
    False: "Dark spots on a bright background stand out more than bright ones. To find those: --dark.",
    True: "Bright spots on a dark background stand out more than dark ones. To find those, leave --dark out.",
}
"""The warning where `other_sign_stands_out`, by whether dark spots were looked for."""


def estimate_radius(
    image: NDArray[np.float32], settings: DetectionSettings, pool: Executor | None = None
) -> DetectionSettings:
    """The settings with the finest radii at which spots still stand out well from pixel noise, if any do.

    Where nothing stands out at any radius, it stays None.

    How well they do is Σ (q/σ - 5)³ over the local maxima with quality q above 5 σ, where σ is what the
    filter leaves of white noise. Of all radii that the frame has room for, one finds best; that is about 1.75
    times the spots' own, and takes close neighbours for one. So in the end the radii shrink while two thirds
    of the best sum remain, which costs an eighth of the signal to noise and parts neighbours.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
        On the host.
    settings : DetectionSettings
    pool : Executor, optional
        Tries several radii at once; the result is the same.

    Examples
    --------
    >>> y, x = np.ogrid[:120, :120]
    >>> noise = np.random.default_rng(0).normal(size=(1, 120, 120))
    >>> for sigma in (2, 4):
    ...     spot = 20 * np.exp(-((y - 60) ** 2 + (x - 60) ** 2) / (2 * sigma**2))
    ...     found = estimate_radius((spot + noise).astype(np.float32), DetectionSettings())
    ...     print(round(found.radius / (sigma * 2**0.5), 1))
    1.3
    1.3
    >>> estimate_radius(noise.astype(np.float32), DetectionSettings()).radius is None
    True
    """
    tried = _Tried(_crop(image), pool)
    best = _most_salient(tried, settings)
    most = tried.salience(best)
    if most < _ONE_SPOT:
        return settings
    for share in _FINER:
        along = None if best.radius_z is None else share * best.radius_z
        finer = replace(best, radius=share * (best.radius or 0.0), radius_z=along)
        if _KEPT * most <= tried.salience(finer):
            return finer
    return best


def other_sign_stands_out(
    image: NDArray[np.float32], settings: DetectionSettings, pool: Executor | None = None
) -> bool:
    """Whether spots of the other sign, dark instead of bright, stand out much more.

    It compares the sums of `estimate_radius` at the radius of the settings, up and down: the other one has to
    be 5 times as large. In fluorescence and simulations the right sign had ten times the wrong one's or more.
    Where there is no radius, since nothing stands out, it looks for one of the other sign.

    Parameters
    ----------
    image, settings, pool
        As for `estimate_radius`.

    Examples
    --------
    >>> y, x = np.ogrid[:120, :120]
    >>> noise = np.random.default_rng(0).normal(size=(1, 120, 120))
    >>> image = (noise + 20 * np.exp(-((y - 60) ** 2 + (x - 60) ** 2) / 8)).astype(np.float32)
    >>> [other_sign_stands_out(sign * image, DetectionSettings(radius=3)) for sign in (1, -1)]
    [False, True]
    """
    if settings.radius is None:
        return estimate_radius(-image, settings, pool).radius is not None
    part = _crop(image)
    sigma = sigma_of(settings, part.shape)
    values = response(part, sigma, settings.filter, pool)
    white = _pixel_noise(part) * noise_gain(sigma, settings.filter, flat=part.shape[0] == 1)
    rough = max(white, noise_of(values, sigma))
    return _salience(-values, rough) > max(_MUCH * _salience(values, rough), _ONE_SPOT)


class _Tried:
    """How far spots stand out at the radii that were tried, each once."""

    def __init__(self, image: NDArray[np.float32], pool: Executor | None) -> None:
        self.image = image
        self._pool = pool
        noise = _pixel_noise(image)
        half = _halved(image)
        self._levels = [(image, noise), (half, noise / 2), (_halved(half), noise / 4)]
        self._known: dict[DetectionSettings, tuple[float, float]] = {}

    def salience(self, settings: DetectionSettings, *, uneven: bool = False) -> float:
        """Out of white noise; or, if `uneven`, of light and neighbours too, where they are more than that."""
        if settings not in self._known:
            # Wide filters lose nothing on pixels twice as large, and have an eighth of the work.
            level = int(np.searchsorted(_WIDE, min(sigma_of(settings, self.image.shape)[1:]), side="right"))
            (image, noise), (z, y, x) = self._levels[level], settings.spacing
            sigma = sigma_of(replace(settings, spacing=(z, y * 2**level, x * 2**level)), image.shape)
            values = response(image, sigma, settings.filter)
            white = noise * noise_gain(sigma, settings.filter, flat=image.shape[0] == 1)
            rough = max(white, noise_of(values, sigma))
            self._known[settings] = _salience(values, white), _salience(values, rough)
        return self._known[settings][uneven]

    def best(self, choices: list[DetectionSettings], *, uneven: bool = False) -> DetectionSettings:
        """The first of those with the greatest salience."""
        different = list(dict.fromkeys(choices))
        work = partial(self.salience, uneven=uneven)
        worths = list(self._pool.map(work, different) if self._pool else map(work, different))
        return different[worths.index(max(worths))]


def _most_salient(tried: _Tried, settings: DetectionSettings) -> DetectionSettings:
    """The radii at which spots stand out most; first in the plane, then along z."""
    planes, height, width = tried.image.shape
    plane = settings.spacing[1] * min(height, width)
    radii = [radius for k in range(12) if (radius := settings.spacing[1] * 1.5 * 1.25**k) <= plane / 12]
    radii = radii or [1.5 * settings.spacing[1]]
    # Where a stack has few planes, more smoothing along z finds no more noise to even out.
    deepest = planes / 6 * sqrt(3) * settings.spacing[0]

    def shaped(radius: float, elongation: float) -> DetectionSettings:
        along = None if planes == 1 else min(elongation * radius, deepest)
        return replace(settings, radius=radius, radius_z=along)

    chosen = tried.best([shaped(radius, 1.5) for radius in radii], uneven=True)
    if planes == 1:
        return chosen
    near = [radius for radius in radii if 1 / 1.3 < radius / (chosen.radius or 1.0) < 1.3]
    return tried.best([shaped(*one) for one in product(near, _ELONGATIONS)])


def _halved(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """Means of 2 x 2 pixels in each plane."""
    z, y, x = image.shape
    if min(y, x) < 2:
        return image
    whole = image[:, : y // 2 * 2, : x // 2 * 2]
    return whole.reshape(z, y // 2, 2, x // 2, 2).mean(axis=(2, 4))


def _crop(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """The part of a large image with the most structure: of few particles, the middle may have none."""
    share = min(1.0, sqrt(_ESTIMATE_VOXELS / image.size))
    if share == 1 or min(image.shape[1:]) < 64:
        return image
    keep = [max(int(n * share), 16) for n in image.shape[1:]]
    starts = [np.unique(np.linspace(0, max(n - k, 0), 2 * n // k).astype(int)) for n, k in zip(
        image.shape[1:], keep, strict=True)]  # fmt: skip
    # Means of 4 x 4 pixels: the noise of single ones is no structure.
    flat = image.max(axis=0)[: image.shape[1] // 4 * 4, : image.shape[2] // 4 * 4]
    coarse = flat.reshape(flat.shape[0] // 4, 4, flat.shape[1] // 4, 4).mean(axis=(1, 3))

    def structure(start: tuple[int, int]) -> float:
        (y, x), (high, wide) = (k // 4 for k in start), (k // 4 for k in keep)
        return float(coarse[y : y + high, x : x + wide].var())

    y, x = max(product(*(axis.tolist() for axis in starts)), key=structure)
    return image[:, y : y + keep[0], x : x + keep[1]]


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


def _salience(values: NDArray[np.float32], floor: float) -> float:
    """How far the maxima stand out of the noise."""
    voxel = local_maxima(values, _FLOOR * floor)
    return float(((values[tuple(voxel.T)].astype(np.float64) / floor - _FLOOR) ** 3).sum())
