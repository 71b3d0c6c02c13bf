"""Estimate the time and memory of linking or detection from a part of the movie."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..formats.images.frames import Images
from ..particles.detections import Detections
from ..settings.detection import DetectionSettings
from ..tracking import TrackingSettings, tracked
from .jobs import DetectJob

_PART = 3000
"""Detections in that part: enough to measure the time of a frame, few enough for a second or two."""
_LEAST_FRAMES = 4
"""Fewest frames in that part: fewer frames do not suffice to learn the motion."""
_PROCESS = 0.3e9
"""Bytes of the process with NumPy, Numba and Arrow loaded: 250 to 300 MB were measured."""


@dataclass(frozen=True)
class Estimate:
    """Estimated time and memory of a run.

    Parameters
    ----------
    detections, frames : int
        Of the movie.
    part : int
        Detections of the first frames, on which time and memory were measured.
    seconds : float
        Time of linking, scaled with the number of detections, without reading and writing.
    memory : float
        Peak memory in bytes, scaled likewise, including the memory of the process itself.
    """

    detections: int
    frames: int
    part: int
    seconds: float
    memory: float

    def __str__(self) -> str:
        return (
            f"{_about(self)} {self.detections:,} detections in {self.frames:,} frames, extrapolated from the "
            f"first {self.part:,}."
        )


@dataclass(frozen=True)
class DetectionEstimate:
    """Estimated time, memory and number of detections of a run of `outbid detect`.

    Parameters
    ----------
    frames : int
    shape : tuple of 3 int
        Voxels of a frame.
    frame : int
        The one that was searched.
    detections : int
        About so many in all, if the others are like that one.
    seconds : float
        Without writing.
    memory : float
        Peak in bytes, the process itself included.
    """

    frames: int
    shape: tuple[int, int, int]
    frame: int
    detections: int
    seconds: float
    memory: float

    def __str__(self) -> str:
        size = " x ".join(map(str, self.shape))
        return (
            f"{_about(self)} {self.frames:,} frames of {size} voxels, and some {self.detections:,} "
            f"detections, extrapolated from frame {self.frame}."
        )


def estimate(detections: Detections, settings: TrackingSettings, workers: int | None = None) -> Estimate:
    """Estimate the time and the memory of `track`, from a run on the first frames.

    Parameters
    ----------
    detections : Detections
    settings : TrackingSettings
    workers : int, optional
        As for `track`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> seen = Detections.from_table(np.repeat(np.arange(50), 9), rng.random((450, 3)))
    >>> run = estimate(seen, TrackingSettings(max_distance=0.1))
    >>> run.detections, run.part, run.memory > 1e8
    (450, 450, True)
    """
    part, threads = _first_frames(detections), workers or os.cpu_count() or 1

    def link() -> None:
        tracked(part, settings, threads, None)

    peak, seconds = _peak_of(link), _seconds_of(link)  # the first compiles, too
    times = len(detections) / max(len(part), 1)
    return Estimate(
        len(detections), detections.frame_count, len(part), seconds * times, peak * times + _PROCESS
    )


def estimate_detection(job: DetectJob, movie: Images) -> tuple[DetectionEstimate, DetectionSettings]:
    """Estimate a run from what is learned of the movie and the middle one of its frames.

    Returns
    -------
    DetectionEstimate
    DetectionSettings
        With the radii that were measured.
    """
    numbers = job.crop.bounds().of(movie).numbers
    frame = numbers[len(numbers) // 2]
    one = replace(job, crop=replace(job.crop, frames=f"{frame}:{frame + 1}"))

    def learn_and_detect() -> None:
        nonlocal one
        model, settings = job.learned(movie)
        one = replace(one, model=model, settings=settings)
        one.detect(movie)

    peak = _peak_of(learn_and_detect)
    learned = _seconds_of(lambda: job.learned(movie))
    begin = time.perf_counter()
    found, used = one.detect(movie)
    seconds = learned + len(numbers) * (time.perf_counter() - begin)
    count = len(numbers) * len(found)
    made = DetectionEstimate(len(numbers), movie.shape, frame, count, seconds, peak + _PROCESS)
    return made, used


def _peak_of(work: Callable[[], object]) -> int:
    """Bytes of Python and NumPy at most while the work is done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _seconds_of(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _about(run: Estimate | DetectionEstimate) -> str:
    """The beginning of both sentences."""
    return f"About {_rounded(run.seconds)} s and {_rounded(run.memory / 1e9)} GB of memory for"


def _first_frames(detections: Detections) -> Detections:
    """The first frames, as many whole ones as hold some thousand detections."""
    if len(detections) <= _PART:
        return detections
    start = detections.frame_start
    frames = max(int(np.searchsorted(start, _PART)), min(_LEAST_FRAMES, len(start) - 1))
    return detections.take(slice(0, int(start[frames])))


def _rounded(value: float) -> str:
    """Round to two significant digits; the estimate is not more precise."""
    return f"{float(f'{value:.2g}'):g}"
