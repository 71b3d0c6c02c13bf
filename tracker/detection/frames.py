"""The spots of a movie, frame by frame: the model is learned, and each frame searched with it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import release_device_memory
from ..compute.processes import ProcessOfEach
from ..compute.timing import timed_beside
from ..errors import InputError, ResourceError
from ..particles.calibration import Calibration
from ..particles.detections import Detections
from ..settings.detection import DetectionSettings, remark_on_radius
from ..settings.device import GPU_FROM_VOXELS, device_for
from .prepare import sample_numbers

if TYPE_CHECKING:  # kernels are loaded when they are needed
    from .model import SpotModel
    from .spots import FrameSpots

_Job = tuple[int, NDArray, "SpotModel | None"]
"""A frame with its number, and what is known of the movie then."""
_Given = TypeVar("_Given")
_Result = TypeVar("_Result")
_LOG = logging.getLogger("outbid")
_FEW = 3
"""Guard: threads up to which frames are searched by threads: more wait for Python's lock."""
_BATCH = 1 << 26
"""Guard: voxels of frames that a GPU searches together: 256 frames of 512 x 512."""
_AHEAD = 2
"""Guard: batches that are in memory: one is searched while the next is read."""
_ON_CPU = "%d of %d frames were searched on the CPU: bodies, frames of few pixels, or too large for the GPU"
"""The message if the GPU did not search some frames."""
_ENDED = "The process that searched frame {} was ended; the memory may be full. Use fewer: workers=3."
_WORTH = 4_000_000
"""Guard: voxels for each process from which processes pay; sixteen start in six seconds."""


def checked(image: NDArray, frame: int) -> NDArray:
    """A frame that detection can work on.

    Raises
    ------
    InputError
        If the image does not have three axes, has no voxels, or does not contain real numbers.
    """
    if not hasattr(image, "dtype"):
        raise InputError(f"Frame {frame} is of type {type(image).__name__}; arrays over z, y, x are needed.")
    if image.ndim != 3 or image.dtype.kind not in "biuf" or image.size == 0:
        raise InputError(
            f"Frame {frame} is an array of {image.dtype}, shape {image.shape}; "
            "numbers over z, y, x are needed. A movie in one array: outbid.open_images(array)."
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
    image = checked(next(iter(read([0]))), 0)
    remark_on_radius(settings.radius, image.shape, settings.spacing)
    first = sample_numbers(count, image.size)
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
        Numbered 0, 1, 2, …; Z is 1 in 2D. There are no more of them at hand than threads,
        or on a GPU than two batches.
    settings : DetectionSettings, optional
        By default everything is learned from the images.
    unit : str
        Unit of `settings.spacing`.
    workers : int
        Threads, with a process each if they are many and the movie is long; they do not change the result.
    count : int
        Number of frames, for `progress`, and for the choice of the device and of processes.
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
        If the GPU was asked for and there is none, or a process was ended.

    Examples
    --------
    >>> z, y, x = np.ogrid[:9, :32, :32]
    >>> spot = np.exp(-((z - 4) ** 2 + (y - 10.3) ** 2 + (x - 20) ** 2) / 8)
    >>> found, used = detect_frames([spot, spot], DetectionSettings(radius=3.46))
    >>> found.frame.tolist(), found.position[0].round(1).tolist()
    ([0, 1], [4.0, 10.3, 20.0])
    """
    settings = settings or DetectionSettings()
    if model is None and isinstance(frames, Sequence | np.ndarray):
        model, settings = learn_from(
            lambda numbers: (frames[number] for number in numbers), len(frames), settings, workers=workers
        )
        count = count or len(frames)
    spots: list[FrameSpots] = []
    with ProcessOfEach() as processes:
        search = _Search(settings, model, workers, count, processes)
        for in_frame in search.found(frames):
            spots.append(in_frame)
            if progress is not None:
                progress(len(spots), count)
    return _as_detections(spots, unit), search.settings


def detect_frame(
    image: NDArray, settings: DetectionSettings, model: SpotModel | None, *, unit: str, workers: int
) -> Detections:
    """Find the spots of one frame, numbered 0, with a model and settings of `learn_from`; none without one.

    Raises
    ------
    InputError
        As `detect_frames`.
    """
    from .spots import FrameSpots, spots_of_frame
    from .transform import CosineTransform

    image = checked(image, 0)
    if model is None:
        return _as_detections([FrameSpots.none()], unit)
    return _as_detections([spots_of_frame(image, model, settings, CosineTransform(workers)).accepted()], unit)


def _in_flight(
    work: Callable[[_Given], _Result], jobs: Iterable[_Given], workers: int, ahead: int
) -> Iterator[_Result]:
    """Results in the order of the jobs, by threads; a job is requested when fewer than `ahead` wait."""
    if ahead <= 1:
        yield from map(work, jobs)
        return
    timed, waiting = timed_beside(work), deque[Future[_Result]]()
    with ThreadPoolExecutor(workers) as pool:
        for job in jobs:
            waiting.append(pool.submit(timed, job))
            if len(waiting) == ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@dataclass
class _Search:
    """The frames of a movie, to be searched by several threads.

    Parameters
    ----------
    settings : DetectionSettings
        Changes when the model is learned, and when a frame does not fit the GPU.
    model : SpotModel or None
        None as long as nothing stands out of the noise.
    workers, count : int
    processes : ProcessOfEach
    """

    settings: DetectionSettings
    model: SpotModel | None
    workers: int
    count: int
    processes: ProcessOfEach
    tiled: Lock = field(default_factory=Lock)
    frames: int = 0
    on_cpu: int = 0

    def found(self, frames: Iterable[NDArray]) -> Iterator[FrameSpots]:
        """The spots of each frame, in order."""
        jobs = self.jobs(frames)
        first = list(islice(jobs, 1))  # the first chooses the device
        jobs = chain(first, jobs)
        if self.settings.device != "gpu":
            yield from self._by_threads(jobs)
            return
        for in_batch in _in_flight(self._of_batch, _batches(jobs), 1, _AHEAD):
            yield from in_batch
        if self.on_cpu:
            _LOG.warning(_ON_CPU, self.on_cpu, self.frames)
        if self.on_cpu and self.on_cpu == self.frames:
            self.settings = replace(self.settings, device="cpu")

    def _by_threads(self, jobs: Iterable[_Job]) -> Iterator[FrameSpots]:
        """By the CPU."""
        return _in_flight(self.spots_of, jobs, self.workers, self.workers)

    def _of_batch(self, batch: list[_Job]) -> list[FrameSpots]:
        """The spots of a batch; by the CPU where the GPU cannot search it."""
        from .gpu.search import serves, spots_of_frames

        self.frames += len(batch)
        _, image, model = batch[0]
        if model is not None:  # else nothing stands out of their noise
            if serves(image, self.settings):
                try:
                    return list(spots_of_frames([each for _, each, _ in batch], model, self.settings))
                except MemoryError:
                    release_device_memory()
            self.on_cpu += len(batch)
        return list(self._by_threads(batch))

    def jobs(self, frames: Iterable[NDArray]) -> Iterator[_Job]:
        """Frames, checked, with their numbers and the model as it is known then."""
        from .model import learn
        from .transform import CosineTransform

        for number, given in enumerate(frames):
            image = checked(given, number)
            if number == 0:
                remark_on_radius(self.settings.radius, image.shape, self.settings.spacing)
                self._choose_device(image)
            if self.model is None:
                self.model, self.settings = learn([image], self.settings, CosineTransform(self.workers))
            yield number, image, self.model

    def spots_of(self, job: _Job) -> FrameSpots:
        """The spots of a frame, by the CPU."""
        from .spots import LARGE, FrameSpots, spots_of_frame
        from .transform import CosineTransform

        number, image, model = job
        if model is None:
            return FrameSpots.none()
        if image.size <= LARGE:
            if self.workers <= _FEW or self.count * image.size < self.workers * _WORTH:
                return _searched(image, model, self.settings)
            try:
                return self.processes.call(_searched, image, model, self.settings)
            except ChildProcessError as error:
                raise ResourceError(_ENDED.format(number)) from error
        with self.tiled:  # the threads search its tiles
            return spots_of_frame(image, model, self.settings, CosineTransform(self.workers)).accepted()

    def _choose_device(self, image: NDArray) -> None:
        """State the device that is used; warn if the first frame has spots of the other sign."""
        from .model import OTHER_SIGN, other_sign_stands_out

        device = device_for(self.settings.device, image.size * self.count, GPU_FROM_VOXELS)
        if other_sign_stands_out(image, self.settings):
            _LOG.warning(OTHER_SIGN[self.settings.dark])
        self.settings = replace(self.settings, device=device)


def _batches(jobs: Iterable[_Job]) -> Iterator[list[_Job]]:
    """Frames of one kind and model, as many as a batch holds; what has no model apart."""
    batch: list[_Job] = []
    for job in jobs:
        _, image, model = job
        if batch:
            _, before, known = batch[0]
            alike = (before.shape, before.dtype) == (image.shape, image.dtype) and known is model
            if not alike or (len(batch) + 1) * image.size > _BATCH:
                yield batch
                batch = []
        batch.append(job)
    if batch:
        yield batch


def _searched(image: NDArray, model: SpotModel, settings: DetectionSettings) -> FrameSpots:
    """The spots of a frame by one thread, in this process or another."""
    from .spots import spots_of_frame
    from .transform import CosineTransform

    return spots_of_frame(image, model, settings, CosineTransform()).accepted()


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
