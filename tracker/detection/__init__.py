"""Detect: image stacks in, detections out, one frame at a time; spots, or centroids of labels.

`labels`                 centroids of label images
`preview`                how many spots there are against the threshold
`found`                  the spots of one frame, as columns
`model`                  what is learned of a movie first: noise, width and profile, spots or bodies
`profile`, `width`       what a spot looks like, from those that stand out; its width where it is not given
`joint`, `bodies`        the joint fit of all spots of a frame; bodies that have no profile in common
`decision`               which candidates are kept, and the probability of each
`significance`, `null`   how far spots stand out, and how often noise does
`scene`                  a frame as spots on a background, worked on slab by slab
`background`, `response` local regression; the matched filter and its maxima
`noise`, `sample`        the variance of a voxel; the parts of frames that are learned from
`spots`, `sign`          `DetectionSettings`; whether dark or bright spots stand out
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._arrays import release_device_memory
from ..detections import Detections
from ..device import device_for
from .labels import centroids as centroids
from .labels import detect_labels as detect_labels
from .sample import FRAMES, checked
from .spots import DetectionSettings

if TYPE_CHECKING:  # kernels are loaded when they are needed
    from .found import Found
    from .model import SpotModel
    from .scene import Work

_LOG = logging.getLogger("outbid")
_WORTH_A_GPU = 200_000_000
"""Voxels of a movie below which `auto` stays on the CPU: loading CuPy with its filters takes seconds."""


def sample_numbers(count: int) -> list[int]:
    """Numbers of the frames from which a movie of `count` is learned, evenly spread.

    Examples
    --------
    >>> sample_numbers(100), sample_numbers(2)
    ([0, 33, 66, 99], [0, 1])
    """
    return np.unique(np.linspace(0, max(count - 1, 0), FRAMES).astype(int)).tolist() if count else []


def learn_from(
    read: Callable[[Sequence[int]], Iterable[NDArray]],
    count: int,
    settings: DetectionSettings,
    *,
    workers: int = 2,
) -> tuple[SpotModel | None, DetectionSettings]:
    """Learn noise, width and profile from four frames of a movie, evenly spread.

    Where nothing stands out there, from the first frame in which something does.

    Parameters
    ----------
    read : callable
        Gives the frames with these numbers, as (Z, Y, X) arrays.
    count : int
        How many frames there are.
    settings : DetectionSettings
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    SpotModel or None
        None where nothing stands out in any frame.
    DetectionSettings
        With what was found out: for `detect`, with the model.

    Raises
    ------
    InputError
        If a frame is not 3-dimensional or holds no real numbers.
    """
    from .model import learn
    from .scene import Work

    model = None
    with ThreadPoolExecutor(workers) as pool:
        if count:
            model, settings = learn(list(read(sample_numbers(count))), settings, Work(pool))
        for number in range(count if model is None else 0):
            model, settings = learn(list(read([number])), settings, Work(pool))
            if model is not None:
                break
    return model, settings


def preview_numbers(count: int) -> list[int]:
    """Numbers of the frames that a preview shows: the first, the middle and the last."""
    return sorted({0, count // 2, max(count - 1, 0)})


def expected_noise(found: Detections) -> float:
    """How many of the detections are expected to be noise: the sum of 1 - ``probability``."""
    return float((1 - found.features["probability"]).sum())


def detect(
    frames: Iterable[NDArray],
    settings: DetectionSettings | None = None,
    *,
    unit: str = "pixel",
    workers: int = 2,
    count: int = 0,
    model: SpotModel | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[Detections, DetectionSettings]:
    """Find the spots of a movie, frame by frame.

    Parameters
    ----------
    frames : iterable of (Z, Y, X) array
        Numbered 0, 1, 2, …; Z is 1 in 2D. Each is released before the next is asked for.
    settings : DetectionSettings, optional
        By default everything is found in the images.
    unit : str
        Of `settings.spacing`.
    workers : int
        Threads; they do not change the result.
    count : int
        How many frames there will be, for `progress` and for the choice of a device.
    model : SpotModel, optional
        What `learn_from` learned, with the settings that it returned. By default it is learned from four of
        `frames`, evenly spread, if that is a sequence; else from the first in which something stands out.
    progress : callable, optional
        Given the number of frames done, and `count`.

    Returns
    -------
    Detections
        Positions are voxel centres times `spacing`; `outbid.detect` describes the features.
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
    >>> spot = np.exp(-((z - 4) ** 2 + (y - 10.3) ** 2 + (x - 20) ** 2) / 8)
    >>> seen, used = detect([spot, spot], DetectionSettings(radius=3.5))
    >>> seen.frame.tolist(), seen.position[0].round(1).tolist()
    ([0, 1], [4.0, 10.3, 20.0])
    """
    from .model import learn
    from .scene import Work
    from .sign import OTHER_SIGN, other_sign_stands_out

    settings = settings or DetectionSettings()
    everything: list[Found] = []
    with ThreadPoolExecutor(workers) as pool:
        work = Work(pool)
        if model is None and isinstance(frames, Sequence | np.ndarray):
            model, settings = learn_from(partial(_some, frames), len(frames), settings, workers=workers)
        for frame, image in enumerate(frames):
            if frame == 0:
                device = device_for(settings.device, image.size * count, _WORTH_A_GPU)
                settings = replace(settings, device=device)
                if other_sign_stands_out(checked(image, frame), settings):
                    _LOG.warning(OTHER_SIGN[settings.dark])
            if model is None:
                model, settings = learn([checked(image, frame)], settings, work)
            here, settings = _found(image, frame, model, settings, work)
            everything.append(here)
            if progress is not None:
                progress(frame + 1, count)
    return _as_detections(everything, unit), settings


def _some(frames: Sequence[NDArray] | NDArray, numbers: Sequence[int]) -> Iterator[NDArray]:
    return (frames[number] for number in numbers)


def _found(
    image: NDArray, frame: int, model: SpotModel | None, settings: DetectionSettings, work: Work
) -> tuple[Found, DetectionSettings]:
    """A frame's spots; and the settings, on the CPU once a GPU was too small."""
    from .found import empty, find_in

    if model is None:  # nothing stands out of the noise so far
        return empty(), settings
    if settings.device == "gpu":
        try:
            return _kept(
                find_in(image, frame, model, settings, replace(work, pool=None, on_gpu=True))
            ), settings
        except MemoryError:
            release_device_memory()
            _LOG.warning("frame %d does not fit the GPU's memory: the CPU goes on from here", frame)
            settings = replace(settings, device="cpu")
    return _kept(find_in(image, frame, model, settings, work)), settings


def _kept(found: Found) -> Found:
    """The candidates that are spots, by position: what is best first depends on digits."""
    order = np.lexsort(found.position[: found.keep].T[::-1])
    features = {name: values[: found.keep][order] for name, values in found.features.items()}
    return replace(found, position=found.position[: found.keep][order], features=features)


def _as_detections(everything: list[Found], unit: str) -> Detections:
    from .found import FEATURES

    frame = np.repeat(np.arange(len(everything), dtype=np.int32), [found.keep for found in everything])
    position = np.concatenate([np.empty((0, 3)), *(found.position for found in everything)])
    features = {
        name: np.concatenate([np.empty(0), *(found.features[name] for found in everything)])
        for name in FEATURES
    }
    return Detections(frame.astype(np.int32), position, unit, features)
