"""Detect: image stacks in, detections out, one frame at a time; spots, or centroids of labels.

`spots`, `radius`        the spots of a frame, and their usual size
`blobs`                  filters that answer to spots, their maxima and noise
`preview`                how many spots there are against the threshold
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._arrays import release_device_memory
from ..detections import Detections
from ..device import device_for
from ..errors import InputError
from .radius import OTHER_SIGN, estimate_radius, other_sign_stands_out
from .spots import DetectionSettings, checked, find_spots

_LOG = logging.getLogger("outbid")
_WORTH_A_GPU = 200_000_000
"""Voxels of a movie below which `auto` stays on the CPU.

A frame of 7.6 million took an H200 0.011 s and two threads of its host 0.28 s; but loading CuPy with its
kernels takes 0.8 s, or 8 s where they have to be compiled, once for each width of the filters.
"""


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
        Numbered 0, 1, 2, …; Z is 1 in 2D. Each is released before the next is asked for.
    settings : DetectionSettings
    unit : str
        Of `settings.spacing`.
    workers : int
        Threads; they do not change the result.
    count : int
        How many frames there will be, for `progress` and for the choice of a device.
    progress : callable, optional
        Given the number of frames done, and `count`.

    Returns
    -------
    Detections
        Positions are voxel centres times `spacing`, with the feature ``quality``.
    DetectionSettings
        With the radii and the device that were used; no radius where nothing stands out in any frame.

    Raises
    ------
    InputError
        If a frame is not 3-dimensional or holds no real numbers.
    ResourceError
        If the GPU was asked for and there is none.

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
            if frame == 0:
                settings = replace(
                    settings, device=device_for(settings.device, image.size * count, _WORTH_A_GPU)
                )
            if settings.radius is None or frame == 0:
                here = checked(image, frame, replace(settings, device="cpu"))
            if settings.radius is None:
                settings = estimate_radius(here, settings, pool)
            if frame == 0 and other_sign_stands_out(here, settings, pool):
                _LOG.warning(OTHER_SIGN[settings.dark])
            found, strength, settings = _spots(image, frame, settings, pool)
            number.append(np.full(len(found), frame, dtype=np.int32))
            place.append(found * settings.spacing)
            quality.append(strength)
            if progress is not None:
                progress(frame + 1, count)
    frame_of = np.concatenate([np.empty(0, dtype=np.int32), *number])
    features = {"quality": np.concatenate(quality)}
    return Detections(frame_of, np.concatenate(place), unit, features), settings


def _spots(
    image: NDArray, frame: int, settings: DetectionSettings, pool: Executor
) -> tuple[NDArray[np.float64], NDArray[np.float64], DetectionSettings]:
    """Position and quality of a frame's spots; and the settings, on the CPU once a GPU was too small."""
    if settings.radius is None:  # nothing stands out of the noise so far
        return np.empty((0, 3)), np.empty(0), settings
    if settings.device == "gpu":
        try:
            return *find_spots(checked(image, frame, settings), settings), settings
        except MemoryError:
            release_device_memory()
            _LOG.warning("frame %d does not fit the GPU's memory: the CPU goes on from here", frame)
            settings = replace(settings, device="cpu")
    return *find_spots(checked(image, frame, settings), settings, pool), settings


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

    Examples
    --------
    >>> seen = detect_labels([np.array([[[7, 7, 0], [0, 0, 2]]])], spacing=(1.0, 0.5, 0.5))
    >>> seen.position.tolist(), seen.features["label"].tolist()
    ([[0.0, 0.5, 1.0], [0.0, 0.0, 0.25]], [2, 7])
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
