"""Estimate the time and memory of a run by running a part of the movie."""

from __future__ import annotations

import os
import time
import tracemalloc
from dataclasses import dataclass

import numpy as np

from ..particles.detections import Detections
from ..tracking import TrackingSettings, tracked

_PART = 3000
"""Detections in that part: enough to measure the time of a frame, few enough for a second or two."""
_LEAST_FRAMES = 4
"""Fewest frames in that part: fewer frames do not suffice to learn the motion."""
PROCESS = 0.3e9
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
            f"About {rounded(self.seconds)} s and {rounded(self.memory / 1e9)} GB of memory for "
            f"{self.detections:,} detections in {self.frames:,} frames, extrapolated from the first "
            f"{self.part:,}."
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
    >>> said = estimate(seen, TrackingSettings(max_distance=0.1))
    >>> said.detections, said.part, said.memory > 1e8
    (450, 450, True)
    """
    part, threads = _first_frames(detections), workers or os.cpu_count() or 1
    tracemalloc.start()
    try:
        tracked(part, settings, threads, None)  # compiles, too
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    begin = time.perf_counter()
    tracked(part, settings, threads, None)
    seconds = time.perf_counter() - begin
    times = len(detections) / max(len(part), 1)
    return Estimate(
        len(detections), detections.frame_count, len(part), seconds * times, peak * times + PROCESS
    )


def _first_frames(detections: Detections) -> Detections:
    """The first frames, as many whole ones as hold some thousand detections."""
    if len(detections) <= _PART:
        return detections
    start = detections.frame_start
    frames = max(int(np.searchsorted(start, _PART)), min(_LEAST_FRAMES, len(start) - 1))
    return detections.take(slice(0, int(start[frames])))


def rounded(value: float) -> str:
    """Round to two significant digits; the estimate is not more precise."""
    return f"{float(f'{value:.2g}'):g}"
