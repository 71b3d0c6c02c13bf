"""Detect: image stacks in, detections out; spots by their scale, or centroids of labels. One frame at a time.

A spot is a local maximum of the negative Laplacian of Gaussian (or a difference of Gaussians, which
approaches it), normalised so that the response to a spot does not depend on the voxel:
L = -Σ_a σ_a² ∂²(G_σ * I)/∂a², with σ_a = radius_a / √d in voxels along axis a, d = 2 or 3
(Lindeberg, Int. J. Comput. Vision 30, 79, 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from .blobs import FILTERS, local_maxima, noise_gain, noise_of, response, shift_to_vertex
from .detections import Detections
from .errors import InputError, SettingsError

_LEAST_SIGMA = 0.5  # voxels; a narrower Gaussian is not sampled any more
_NOISE_FACTOR = 11.0  # a spot stands out of the noise by so many standard deviations
_TYPICAL_SHARE = 0.155  # and has so much of the quality of a typical spot
_ELONGATIONS = (1.0, 1.5, 2.0, 2.7)  # of spots along z, that are tried
_ESTIMATE_VOXELS = 1_000_000


@dataclass(frozen=True)
class DetectionSettings:
    """How spots are found.

    Parameters
    ----------
    radius : float or None
        Radius of a spot in the plane, in the unit of `spacing`; None estimates it from the first frame.
    radius_z : float or None
        Radius along z; None is `radius`, or estimated with it.
    threshold : float or None
        Least quality, the filter's response in grey values; None finds one for each frame.
    spacing : tuple of 3 float
        Size of a voxel along z, y, x.
    filter : str
        ``"dog"``, difference of Gaussians, or ``"log"``, their Laplacian, which takes a little longer.

    Raises
    ------
    SettingsError
        If a value is not finite or not positive, or the filter is unknown.
    """

    radius: float | None = None
    radius_z: float | None = None
    threshold: float | None = None
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    filter: str = "dog"

    def __post_init__(self) -> None:
        for name in ("radius", "radius_z"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise SettingsError(f"{name} is {value}; it must be a number above 0.")
        if self.threshold is not None and not isfinite(self.threshold):
            raise SettingsError(f"threshold is {self.threshold}; it must be a number.")
        if len(self.spacing) != 3 or not all(isfinite(size) and size > 0 for size in self.spacing):
            raise SettingsError(f"spacing is {self.spacing}; it must be three numbers above 0: z, y, x.")
        if self.radius_z is not None and self.radius is None:
            raise SettingsError("radius_z is given without radius. Give both, or neither to estimate them.")
        if self.filter not in FILTERS:
            raise SettingsError(f"There is no filter {self.filter!r}. Known are: {', '.join(FILTERS)}.")


def detect(
    frames: Iterable[NDArray],
    settings: DetectionSettings,
    *,
    unit: str = "pixel",
    workers: int = 2,
    count: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[Detections, DetectionSettings]:
    """Find the spots of a movie, frame by frame.

    Parameters
    ----------
    frames : iterable of (Z, Y, X) array
        Numbered 0, 1, 2, …; Z is 1 in 2D. Each is let go before the next is asked for.
    settings : DetectionSettings
    unit : str
        Of `settings.spacing`.
    workers : int
        Threads; they do not change the result.
    count : int
        How many frames there will be, for `progress`.
    progress : callable, optional
        Given the number of frames done, and `count`.

    Returns
    -------
    Detections
        Positions are voxel centres times `spacing`, with the feature ``quality``.
    DetectionSettings
        With the radii that were used.

    Raises
    ------
    InputError
        If a frame is not 3-dimensional or holds no real numbers.

    Examples
    --------
    >>> z, y, x = np.ogrid[:9, :32, :32]
    >>> spot = np.exp(-((z - 4) ** 2 + (y - 10.25) ** 2 + (x - 20) ** 2) / 8)
    >>> seen, used = detect([spot, spot], DetectionSettings(radius=3))
    >>> seen.frame.tolist(), seen.position[0].round(1).tolist()
    ([0, 1], [4.0, 10.2, 20.0])
    """
    number, place, quality = [], [np.empty((0, 3))], [np.empty(0)]
    with ThreadPoolExecutor(workers) as pool:
        for frame, image in enumerate(frames):
            voxels = _checked(image, frame)
            if settings.radius is None:
                settings = estimate_radius(voxels, settings)
            found, strength = spots(voxels, settings, pool)
            number.append(np.full(len(found), frame, dtype=np.int32))
            place.append(found * settings.spacing)
            quality.append(strength)
            if progress is not None:
                progress(frame + 1, count)
    frame_of = np.concatenate([np.empty(0, dtype=np.int32), *number])
    features = {"quality": np.concatenate(quality)}
    return Detections(frame_of, np.concatenate(place), unit, features), settings


def spots(
    image: NDArray[np.float32], settings: DetectionSettings, pool: Executor | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the spots of a frame.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
    settings : DetectionSettings
        With a radius.
    pool : Executor, optional

    Returns
    -------
    position : (n, 3) float64 array
        In voxels, between them too: the vertex of a parabola through the maximum and its neighbours.
    quality : (n,) float64 array
    """
    sigma = _sigma(settings, image.shape)
    values = response(image, sigma, settings.filter, pool)
    noise = noise_of(values, sigma)
    low = settings.threshold if settings.threshold is not None else _NOISE_FACTOR * noise
    voxel = local_maxima(values, max(low, 0.0))
    quality = values[tuple(voxel.T)].astype(np.float64)
    if settings.threshold is None:
        keep = quality > max(low, _TYPICAL_SHARE * _typical(quality))
        voxel, quality = voxel[keep], quality[keep]
    return voxel + shift_to_vertex(values, voxel), quality


def centroids(labels: NDArray) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Centres of the objects of a label image.

    Parameters
    ----------
    labels : (Z, Y, X) integer array
        0 is background.

    Returns
    -------
    label : (n,) int64 array
        Increasing.
    position : (n, 3) float64 array
        Mean of the voxels' z, y, x, in voxels.
    size : (n,) int64 array
        Count of voxels.

    Raises
    ------
    InputError
        If the image does not hold whole numbers, or negative ones.

    Examples
    --------
    >>> label, position, size = centroids(np.array([[[7, 7, 0], [0, 0, 2]]]))
    >>> label.tolist(), position.tolist(), size.tolist()
    ([2, 7], [[0.0, 1.0, 2.0], [0.0, 0.0, 0.5]], [1, 2])
    """
    if labels.dtype.kind not in "iub":
        raise InputError(f"A label image holds whole numbers; this one holds {labels.dtype}. Convert it.")
    where = np.nonzero(labels)
    value, index = np.unique(labels[where].astype(np.int64), return_inverse=True)
    if len(value) and value[0] < 0:
        raise InputError(f"Label {value[0]} is negative; labels count from 1 up, 0 is background.")
    size = np.bincount(index, minlength=len(value))
    sums = [np.bincount(index, weights=axis, minlength=len(value)) for axis in where]
    return value, np.stack(sums, axis=1) / size[:, None], size


def detect_labels(
    frames: Iterable[NDArray],
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    unit: str = "pixel",
    count: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Detections:
    """Find the centroids of a movie of label images, frame by frame.

    Parameters
    ----------
    frames : iterable of (Z, Y, X) integer array
    spacing, unit, count, progress
        As for `detect`.

    Returns
    -------
    Detections
        With the features ``label`` and ``size``, in voxels.

    Raises
    ------
    InputError
        As `centroids`.
    """
    number, place, label, size = [], [np.empty((0, 3))], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for frame, image in enumerate(frames):
        value, centre, voxels = centroids(image)
        number.append(np.full(len(value), frame, dtype=np.int32))
        place.append(centre * spacing)
        label.append(value)
        size.append(voxels)
        if progress is not None:
            progress(frame + 1, count)
    frame_of = np.concatenate([np.empty(0, dtype=np.int32), *number])
    features = {"label": np.concatenate(label), "size": np.concatenate(size)}
    return Detections(frame_of, np.concatenate(place), unit, features)


def estimate_radius(image: NDArray[np.float32], settings: DetectionSettings) -> DetectionSettings:
    """The settings with the radii at which spots stand out most from pixel noise.

    Of all radii that the frame has room for, it is that with the greatest Σ (q/σ - 5)³ over the local maxima
    with quality q above 5 σ, where σ is what the filter leaves of white noise. That is the scale of the
    filter that finds best, about 1.5 times that of the spots.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
    settings : DetectionSettings
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
        return _salience(values, max(white, noise_of(values, _sigma(tried, crop.shape))))

    chosen = max(radii, key=in_the_plane)
    if crop.shape[0] == 1:
        return replace(settings, radius=chosen, radius_z=None)
    tried = [
        replace(settings, radius=radius, radius_z=min(radius * long, deepest))
        for radius, long in product([r for r in radii if chosen / 1.3 < r < chosen * 1.3], _ELONGATIONS)
    ]
    return max(tried, key=lambda one: _salience(*_answer(crop, noise, one)))


def _sigma(settings: DetectionSettings, shape: tuple[int, ...]) -> tuple[float, float, float]:
    """Of the Gaussian, in voxels, for a frame of this shape."""
    dimensions = 2 if shape[0] == 1 else 3
    radius = settings.radius or 0.0
    along = settings.radius_z if settings.radius_z is not None else radius
    sizes = zip((along, radius, radius), settings.spacing, strict=True)
    z, y, x = (max(r / sqrt(dimensions) / size, _LEAST_SIGMA) for r, size in sizes)
    return z, y, x


def _checked(image: NDArray, frame: int) -> NDArray[np.float32]:
    """The frame in single precision."""
    if image.ndim != 3 or image.dtype.kind not in "biuf" or image.size == 0:
        raise InputError(
            f"Frame {frame} is an array of {image.dtype}, shape {image.shape}; "
            "numbers over z, y, x are needed."
        )
    voxels = image.astype(np.float32)
    if image.dtype.kind == "f" and not np.isfinite(voxels).all():
        raise InputError(f"Frame {frame} holds values that are not finite. Replace them by the background.")
    return voxels


def _typical(quality: NDArray[np.float64]) -> float:
    """Median of the better of two classes (Otsu, IEEE Trans. SMC 9, 62, 1979); 0 if there are none."""
    if len(quality) < 2:
        return 0.0
    ordered = np.sort(quality)
    count = np.arange(1, len(ordered))
    total = np.cumsum(ordered)
    lower, upper = total[:-1] / count, (total[-1] - total[:-1]) / (len(ordered) - count)
    cut = int(np.argmax(count * (len(ordered) - count) * (upper - lower) ** 2)) + 1
    return float(np.median(ordered[cut:]))


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
    sigma = _sigma(settings, image.shape)
    flat = image.shape[0] == 1
    return response(image, sigma, settings.filter), noise * noise_gain(sigma, settings.filter, flat=flat)


def _salience(values: NDArray[np.float32], floor: float) -> float:
    """How far the maxima stand out of the noise."""
    voxel = local_maxima(values, 5 * floor)
    return float(((values[tuple(voxel.T)].astype(np.float64) / floor - 5) ** 3).sum())
