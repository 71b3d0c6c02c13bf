"""Prepare parts of a few frames, from which noise and spots of a movie are learned."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import floor, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..settings.detection import DetectionSettings

FRAMES, MOST_FRAMES = 4, 16
"""Number of frames used; of small ones, which hold few spots, up to so many."""
_VOXELS = 700_000  # of each, at most


def frames_of(size: int) -> int:
    """Number of frames of so many voxels from which a movie is learned.

    Examples
    --------
    >>> frames_of(128 * 128), frames_of(10**6)
    (16, 4)
    """
    return max(FRAMES, min(MOST_FRAMES, FRAMES * _VOXELS // max(size, 1)))


def checked(image: NDArray, frame: int) -> NDArray:
    """Convert a frame to a supported dtype and native byte order.

    Raises
    ------
    InputError
        If the image does not have three axes, has no voxels, or does not contain real numbers.
    """
    if image.ndim != 3 or image.dtype.kind not in "biuf" or image.size == 0:
        raise InputError(
            f"Frame {frame} is an array of {image.dtype}, shape {image.shape}; "
            "numbers over z, y, x are needed."
        )
    return image


def middle_of(image: NDArray) -> float:
    """A whole number near the grey value of the background, which is subtracted from a frame.

    A background much larger than the spots would reduce the precision.
    """
    part = np.asarray(image).ravel()[:: max(1, image.size // 100_000)].astype(np.float64)
    part = part[np.isfinite(part)]
    return float(np.round(np.median(part))) if len(part) else 0.0


def unit_of(images: Sequence[NDArray]) -> float:
    """1 for grey values as cameras have them; a power of two for others, whose range is then 1024 to 2048.

    Examples
    --------
    >>> image = np.linspace(0, 4000, 100)
    >>> unit_of([image]), unit_of([1e-12 * image]) == 2.0**-38
    (1.0, True)
    """
    parts = [np.asarray(image).ravel()[:: max(1, image.size // 100_000)] for image in images]
    values = np.concatenate([part[np.isfinite(part)].astype(np.float64) for part in parts])
    spread = float(np.ptp(values)) if len(values) else 0.0
    usual = spread == 0 or not np.isfinite(spread) or 1 <= spread < 2**20
    return 1.0 if usual else 2.0 ** (floor(log2(spread)) - 10)


def prepared(
    image: NDArray, settings: DetectionSettings, middle: float, unit: float = 1.0
) -> NDArray[np.float32]:
    """(x - middle) / unit in single precision, with spots bright; NaN for values that are not finite."""
    out = np.empty(image.shape, np.float32)
    exact = image.dtype.kind == "f" or image.dtype.itemsize <= 2
    for plane, voxels in zip(out, image, strict=True):
        with np.errstate(over="ignore"):  # what single precision cannot hold counts as not measured
            values = voxels.astype(np.result_type(image.dtype, np.float32) if exact else np.float64)
            plane[:] = (values - values.dtype.type(middle)) / values.dtype.type(unit)
        if image.dtype.kind == "f":
            plane[~np.isfinite(plane)] = np.nan
    return np.negative(out, out=out) if settings.dark else out


def crop(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """The part of a large image with the most structure: if particles are few, the centre may have none."""
    share = min(1.0, sqrt(_VOXELS / image.size))
    if share == 1 or min(image.shape[1:]) < 64:
        return image
    keep = [max(int(n * share), 16) for n in image.shape[1:]]
    starts = [
        np.unique(np.linspace(0, max(n - k, 0), 2 * n // k).astype(int))
        for n, k in zip(image.shape[1:], keep, strict=True)
    ]
    # Means of 4 x 4 pixels: the noise of single ones is no structure.
    flat = np.nan_to_num(np.fmax.reduce(image))[: image.shape[1] // 4 * 4, : image.shape[2] // 4 * 4]
    coarse = flat.reshape(flat.shape[0] // 4, 4, flat.shape[1] // 4, 4).mean(axis=(1, 3))

    def structure(start: tuple[int, int]) -> float:
        (y, x), (high, wide) = (k // 4 for k in start), (k // 4 for k in keep)
        return float(coarse[y : y + high, x : x + wide].var())

    y, x = max(product(*(axis.tolist() for axis in starts)), key=structure)
    return np.ascontiguousarray(image[:, y : y + keep[0], x : x + keep[1]])
