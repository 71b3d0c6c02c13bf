"""Estimate the time and the memory of detection, from one frame of the movie."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import dataclass, replace

from ..formats.images.frames import Images
from ..settings.detection import DetectionSettings
from .estimate import PROCESS, rounded
from .jobs import DetectJob


@dataclass(frozen=True)
class DetectionEstimate:
    """Estimated time, memory and number of detections of a run of `outbid detect`.

    Parameters
    ----------
    frames : int
    shape : tuple of 3 int
        Voxels of a frame.
    frame : int
        The one that was looked at.
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
            f"About {rounded(self.seconds)} s and {rounded(self.memory / 1e9)} GB of memory for "
            f"{self.frames:,} frames of {size} voxels, and some {self.detections:,} detections, "
            f"extrapolated from frame {self.frame}."
        )


def estimate_detection(job: DetectJob, movie: Images) -> tuple[DetectionEstimate, DetectionSettings]:
    """Estimate a run from what is learned of the movie and the middle one of its frames.

    Returns
    -------
    DetectionEstimate
    DetectionSettings
        With the radii that were measured.
    """
    numbers = job.part.extent().of(movie).numbers
    frame = numbers[len(numbers) // 2]
    one = replace(job, part=replace(job.part, frames=f"{frame}:{frame + 1}"))
    tracemalloc.start()
    try:
        model, settings = job.learned(movie)
        one = replace(one, model=model, settings=settings)
        one.detect(movie)  # compiles, too
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    begin = time.perf_counter()
    job.learned(movie)
    learned = time.perf_counter()
    found, used = one.detect(movie)
    seconds = learned - begin + len(numbers) * (time.perf_counter() - learned)
    memory = peak + PROCESS
    return DetectionEstimate(
        len(numbers), movie.shape, frame, len(numbers) * len(found), seconds, memory
    ), used
