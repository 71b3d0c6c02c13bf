"""Images and settings as detection computes with them: grey values near 0, bright spots, widths in voxels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import floor, log2, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..settings.detection import DetectionSettings

FRAMES = 4
"""Guard: frames from which a movie is learned; more cost time and hardly change a width."""
MOST_FRAMES = 16
"""Guard: the same for small frames, which hold few spots."""
VOXELS = 700_000
"""Guard: voxels of a frame that are learned from, and of all frames in which widths are tried."""
SAMPLED = 100_000
"""Guard: voxels of which a mean, a median or a range is taken."""
_COARSE = 4
"""Guard: pixels of the side of a block whose mean counts as structure: the noise of single ones is none."""
LEAST_SIDE = 64
"""Guard: pixels along y or x of the parts of a frame: a spectrum of fewer is coarse."""


class Sample(NamedTuple):
    """Parts of frames from which a movie is learned.

    Parameters
    ----------
    parts : list of (Z, Y, X) float32 array
        Prepared grey values, see `prepared`.
    middle, unit : float
        Grey values x of all frames are taken as (x - middle) / unit.
    sigma : (3,) float64 array
        Widths of a spot in voxels by the settings, see `sigma_of`.
    """

    parts: list[NDArray[np.float32]]
    middle: float
    unit: float
    sigma: NDArray[np.float64]


def sample_of(frames: Sequence[NDArray], settings: DetectionSettings) -> Sample:
    """Prepared parts of checked frames, with the scale of the first."""
    middle, unit = middle_of(frames[0]), unit_of(frames)
    parts = [crop(prepared(frame, settings, middle, unit)) for frame in frames]
    return Sample(parts, middle, unit, sigma_of(settings, frames[0].shape))


def sample_numbers(count: int, voxels: int) -> list[int]:
    """Evenly spaced numbers of the frames, of so many voxels, from which a movie of `count` is learned.

    Examples
    --------
    >>> sample_numbers(100, 10**6), sample_numbers(2, 10**6), len(sample_numbers(100, 128 * 128))
    ([0, 33, 66, 99], [0, 1], 16)
    """
    frames = max(FRAMES, min(MOST_FRAMES, FRAMES * VOXELS // max(voxels, 1)))
    return np.unique(np.linspace(0, max(count - 1, 0), frames).astype(int)).tolist() if count else []


def middle_of(image: NDArray) -> float:
    """A whole number near the grey value of the background, which is subtracted from a frame.

    A background much larger than the spots would reduce the precision.
    """
    values = _sampled(image)
    return float(np.round(np.median(values))) if len(values) else 0.0


def _sampled(image: NDArray) -> NDArray[np.float64]:
    """Finite grey values of every so many voxels."""
    values = np.asarray(image).ravel()[:: max(1, image.size // SAMPLED)].astype(np.float64)
    return values[np.isfinite(values)]


def unit_of(images: Sequence[NDArray]) -> float:
    """1 for grey values as cameras have them; a power of two for others, whose range is then 1024 to 2048.

    Examples
    --------
    >>> image = np.linspace(0, 4000, 100)
    >>> unit_of([image]), unit_of([1e-12 * image]) == 2.0**-38
    (1.0, True)
    """
    values = np.concatenate([_sampled(image) for image in images])
    extent = float(np.ptp(values)) if len(values) else 0.0
    as_cameras = extent == 0 or not np.isfinite(extent) or 1 <= extent < 2**20
    return 1.0 if as_cameras else 2.0 ** (floor(log2(extent)) - 10)


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
    share = min(1.0, sqrt(VOXELS / image.size))
    if share == 1 or min(image.shape[1:]) < LEAST_SIDE:
        return image
    keep = [max(int(n * share), 16) for n in image.shape[1:]]
    starts = [
        np.unique(np.linspace(0, max(n - k, 0), 2 * n // k).astype(int))
        for n, k in zip(image.shape[1:], keep, strict=True)
    ]
    rows, columns = (n // _COARSE for n in image.shape[1:])
    flat = np.nan_to_num(np.fmax.reduce(image))[: rows * _COARSE, : columns * _COARSE]
    coarse = flat.reshape(rows, _COARSE, columns, _COARSE).mean(axis=(1, 3))

    def structure(start: tuple[int, int]) -> float:
        (y, x), (high, wide) = (k // _COARSE for k in start), (k // _COARSE for k in keep)
        return float(coarse[y : y + high, x : x + wide].var())

    y, x = max(product(*(axis.tolist() for axis in starts)), key=structure)
    return np.ascontiguousarray(image[:, y : y + keep[0], x : x + keep[1]])


def sigma_of(settings: DetectionSettings, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """(3,): standard deviation, in voxels, of a Gaussian spot with these radii; 0 along a flat z axis."""
    flat = shape[0] == 1
    radius = settings.radius or 0.0
    along = settings.radius_z if settings.radius_z is not None else radius
    sizes = zip((along, radius, radius), settings.spacing, strict=True)
    z, y, x = (r / sqrt(2 if flat else 3) / size for r, size in sizes)
    return np.array([0.0 if flat else z, y, x])
