"""Detection: find spots, or centroids of labels, in image stacks, one frame at a time.

`labels`                  centroids of label images
`preview`                 number of spots as a function of the threshold
`found`, `tiles`          the spots of one frame, as columns; large frames in tiles
`model`, `width`          what is learned of a movie first: noise, and the width of spots
`decision`                which candidates are kept, and the probability of each one
`fitted`                  the last fit, in grey values: positions, amplitudes, sizes and their errors
`candidates`, `joint`     the joint fit of all spots in the response, by a filter that is whitened again
`spectrum`                the spectrum of what is no spot, and the whitened matched filter
`bodies`                  bodies without a common profile
`stabilise`, `noise`      a frame in units of its camera's noise; the variance of a voxel
`response`, `sample`      maxima and the Laplacian of Gaussian; the parts of frames from which is learned
`spots`, `sign`           `DetectionSettings`; whether dark or bright spots stand out
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import release_device_memory
from ..formats.images.labels import centroids as centroids
from ..formats.images.labels import detect_labels as detect_labels
from ..particles.detections import Detections
from ..settings.detection import DetectionSettings
from ..settings.device import device_for
from .sample import FRAMES, checked, frames_of

if TYPE_CHECKING:  # kernels are loaded when they are needed
    from .found import Found
    from .model import SpotModel
    from .spectrum import Transform

_LOG = logging.getLogger("outbid")
_WORTH_A_GPU = 200_000_000
"""Number of voxels in a movie below which `auto` uses the CPU: loading CuPy with its filters takes
seconds."""


def sample_numbers(count: int, frames: int = FRAMES) -> list[int]:
    """Evenly spaced frame numbers from which a movie of `count` frames is learned.

    Examples
    --------
    >>> sample_numbers(100), sample_numbers(2)
    ([0, 33, 66, 99], [0, 1])
    """
    return np.unique(np.linspace(0, max(count - 1, 0), frames).astype(int)).tolist() if count else []


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
        The settings with learned values filled in; pass them to `detect` together with the model.

    Raises
    ------
    InputError
        If a frame is not 3-dimensional or holds no real numbers.
    """
    from .model import learn
    from .spectrum import Transform

    model, how = None, Transform(workers)
    if count:
        numbers = sample_numbers(count, frames_of(next(iter(read([0]))).size))
        model, settings = learn(list(read(numbers)), settings, how)
    for number in range(count if model is None else 0):
        model, settings = learn(list(read([number])), settings, how)
        if model is not None:
            break
    return model, settings


def preview_numbers(count: int) -> list[int]:
    """Numbers of the frames that a preview shows: the first, the middle and the last."""
    return sorted({0, count // 2, max(count - 1, 0)})


def expected_noise(found: Detections) -> float:
    """Expected number of detections that are noise: the sum of 1 - ``probability``."""
    return float((1 - found.features["probability"]).sum())


def null_of(settings: DetectionSettings) -> str:
    """Against what the spots of `detect` stand out, by the settings that it returned, as a sentence."""
    if settings.bodies:
        return "Null: the filter's minima, for bodies have no profile in common."
    how = "measured" if settings.gain is None else "given"
    return f"Null: the spectrum of all that is no spot; the camera's noise is {how}."


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
    >>> seen, used = detect([spot, spot], DetectionSettings(radius=3.46))
    >>> seen.frame.tolist(), seen.position[0].round(1).tolist()
    ([0, 1], [4.0, 10.3, 20.0])
    """
    from .model import learn
    from .sign import OTHER_SIGN, other_sign_stands_out
    from .spectrum import Transform

    settings = settings or DetectionSettings()
    everything: list[Found] = []
    how = Transform(workers)
    if model is None and isinstance(frames, Sequence | np.ndarray):
        model, settings = learn_from(partial(_some, frames), len(frames), settings, workers=workers)
    for frame, image in enumerate(frames):
        if frame == 0:
            device = device_for(settings.device, image.size * count, _WORTH_A_GPU)
            settings = replace(settings, device=device)
            if other_sign_stands_out(checked(image, frame), settings):
                _LOG.warning(OTHER_SIGN[settings.dark])
        if model is None:
            model, settings = learn([checked(image, frame)], settings, how)
        here, settings = _found(image, frame, model, settings, how)
        everything.append(here)
        if progress is not None:
            progress(frame + 1, count)
    return _as_detections(everything, unit), settings


def _some(frames: Sequence[NDArray] | NDArray, numbers: Sequence[int]) -> Iterator[NDArray]:
    return (frames[number] for number in numbers)


def _found(
    image: NDArray, frame: int, model: SpotModel | None, settings: DetectionSettings, how: Transform
) -> tuple[Found, DetectionSettings]:
    """The spots of a frame, and the settings, which switch to the CPU if GPU memory is too small."""
    from .found import empty, find_in

    if model is None:  # nothing stands out of the noise so far
        return empty(), settings
    if settings.device == "gpu":
        try:
            return _kept(find_in(image, frame, model, settings, replace(how, on_gpu=True))), settings
        except MemoryError:
            release_device_memory()
            _LOG.warning("frame %d does not fit the GPU's memory: the CPU goes on from here", frame)
            settings = replace(settings, device="cpu")
    return _kept(find_in(image, frame, model, settings, how)), settings


def _kept(found: Found) -> Found:
    """The accepted candidates, sorted by position: the order by quality depends on rounding."""
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
