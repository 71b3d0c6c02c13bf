"""The spots of a movie, frame by frame: the model is learned, and each frame searched with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import release_device_memory
from ..errors import InputError
from ..particles.calibration import Calibration
from ..particles.detections import Detections
from ..settings.detection import DetectionSettings
from ..settings.device import GPU_FROM_VOXELS, device_for
from .prepare import sample_numbers

if TYPE_CHECKING:  # kernels are loaded when they are needed
    from .model import SpotModel
    from .spots import FrameSpots
    from .transform import CosineTransform

_LOG = logging.getLogger("outbid")


def checked(image: NDArray, frame: int) -> NDArray:
    """A frame that detection can work on.

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


def learn_from(
    read: Callable[[Sequence[int]], Iterable[NDArray]],
    count: int,
    settings: DetectionSettings,
    *,
    workers: int = 2,
) -> tuple[SpotModel | None, DetectionSettings]:
    """Learn noise, width and profile from four frames of a movie, evenly spread.

    If these frames contain no significant spot, the first frame with one is used.

    Parameters
    ----------
    read : callable
        Returns the frames with the given numbers, as (Z, Y, X) arrays.
    count : int
        Number of frames.
    settings : DetectionSettings
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    SpotModel or None
        None if no frame contains a significant spot.
    DetectionSettings
        The settings with learned values filled in; pass them to `detect_frames` together with the model.

    Raises
    ------
    InputError
        If a frame is not 3-dimensional or holds no real numbers.
    """
    from .model import learn
    from .transform import CosineTransform

    if not count:
        return None, settings
    first = sample_numbers(count, next(iter(read([0]))).size)
    for numbers in (first, *([number] for number in range(count))):
        frames = [checked(image, number) for number, image in zip(numbers, read(numbers), strict=True)]
        model, learned = learn(frames, settings, CosineTransform(workers))
        if model is not None:
            return model, learned
    return None, settings


def detect_frames(
    frames: Iterable[NDArray],
    settings: DetectionSettings | None = None,
    *,
    unit: str = "pixel",
    workers: int = 2,
    count: int = 0,
    model: SpotModel | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[Detections, DetectionSettings]:
    """Find the spots of frames, one after the other.

    Parameters
    ----------
    frames : iterable of (Z, Y, X) array
        Numbered 0, 1, 2, …; Z is 1 in 2D. Each frame is released before the next one is requested.
    settings : DetectionSettings, optional
        By default everything is learned from the images.
    unit : str
        Unit of `settings.spacing`.
    workers : int
        Threads; they do not change the result.
    count : int
        Number of frames, for `progress` and for the choice of the device.
    model : SpotModel, optional
        The model returned by `learn_from`, to be used with the settings that it returned. By default the
        model is learned from four evenly spaced `frames` if these are a sequence, else from the first frame
        with a significant spot.
    progress : callable, optional
        Called with the number of finished frames and `count`.

    Returns
    -------
    Detections
        Positions are voxel centres times `spacing`; `outbid.detect` describes the features.
    DetectionSettings
        The settings with the radii and the device that were used; the radius is None if no frame contains a
        significant spot.

    Raises
    ------
    InputError
        If a frame is not 3-dimensional or holds no real numbers.
    ResourceError
        If the GPU was asked for and there is none.

    Examples
    --------
    >>> z, y, x = np.ogrid[:9, :32, :32]
    >>> spot = np.exp(-((z - 4) ** 2 + (y - 10.3) ** 2 + (x - 20) ** 2) / 8)
    >>> found, used = detect_frames([spot, spot], DetectionSettings(radius=3.46))
    >>> found.frame.tolist(), found.position[0].round(1).tolist()
    ([0, 1], [4.0, 10.3, 20.0])
    """
    from .model import learn
    from .transform import CosineTransform

    settings, dct = settings or DetectionSettings(), CosineTransform(workers)
    if model is None and isinstance(frames, Sequence | np.ndarray):
        model, settings = learn_from(partial(_some, frames), len(frames), settings, workers=workers)
    spots: list[FrameSpots] = []
    for frame, given in enumerate(frames):
        image = checked(given, frame)
        if frame == 0:
            settings = _with_device(image, settings, count)
        if model is None:
            model, settings = learn([image], settings, dct)
        in_frame, settings = _accepted(image, frame, model, settings, dct)
        spots.append(in_frame)
        if progress is not None:
            progress(frame + 1, count)
    return _as_detections(spots, unit), settings


def _some(frames: Sequence[NDArray] | NDArray, numbers: Sequence[int]) -> Iterator[NDArray]:
    return (frames[number] for number in numbers)


def _with_device(image: NDArray, settings: DetectionSettings, count: int) -> DetectionSettings:
    """The settings with the device that is used; a warning if the first frame has spots of the other sign."""
    from .model import OTHER_SIGN, other_sign_stands_out

    device = device_for(settings.device, image.size * count, GPU_FROM_VOXELS)
    if other_sign_stands_out(image, settings):
        _LOG.warning(OTHER_SIGN[settings.dark])
    return replace(settings, device=device)


def _accepted(
    image: NDArray, frame: int, model: SpotModel | None, settings: DetectionSettings, dct: CosineTransform
) -> tuple[FrameSpots, DetectionSettings]:
    """The spots of a frame, and the settings, which switch to the CPU if GPU memory is too small."""
    from .spots import FrameSpots, spots_of_frame

    if model is None:  # nothing stands out of the noise so far
        return FrameSpots.none(), settings
    if settings.device == "gpu":
        try:
            return spots_of_frame(image, model, settings, replace(dct, on_gpu=True)).accepted(), settings
        except MemoryError:
            release_device_memory()
            _LOG.warning("frame %d does not fit the GPU's memory: the CPU goes on from here", frame)
            settings = replace(settings, device="cpu")
    return spots_of_frame(image, model, settings, dct).accepted(), settings


def _as_detections(frames: list[FrameSpots], unit: str) -> Detections:
    from .spots import FEATURES

    frame = np.repeat(np.arange(len(frames), dtype=np.int32), [spots.keep for spots in frames])
    position = np.concatenate([np.empty((0, 3)), *(spots.position for spots in frames)])
    features = {
        name: np.concatenate([np.empty(0), *(spots.features[name] for spots in frames)]) for name in FEATURES
    }
    return Detections(frame.astype(np.int32), position, Calibration(unit), features)


def expected_noise(detections: Detections) -> float:
    """Expected number of detections that are noise: the sum of 1 - ``probability``."""
    return float((1 - detections.features["probability"]).sum())


def null_of(settings: DetectionSettings) -> str:
    """Against what spots stand out, by the settings that `detect` returned, as a sentence."""
    if settings.bodies:
        return "Null: the filter's minima, for blobs have no profile in common."
    how = "measured" if settings.gain is None else "given"
    return f"Null: the spectrum of everything but spots; the camera's noise is {how}."
