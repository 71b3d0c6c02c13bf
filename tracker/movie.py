"""Movies as the kernels want them, and the part of one that calibration looks at first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .detections import Detections
from .gating import pairs_within

_PART = 12_000
"""Detections that tell enough of how particles move."""
_LEAST_FRAMES = 8
"""And the frames that it takes."""


@dataclass(frozen=True, eq=False)
class Movie:
    """Detections as the kernels want them: near in space is near in memory, and flat axes are gone.

    Parameters
    ----------
    frame : (N,) int64 array
        Non-decreasing.
    position : (N, axes) float64 array
    order : (N,) int64 array
        Row of each among the detections as they were given.
    frame_start : (F + 1,) int64 array
        As in `Detections`.
    names : str
        Which of z, y, x the axes are.
    """

    frame: NDArray[np.int64]
    position: NDArray[np.float64]
    order: NDArray[np.int64]
    frame_start: NDArray[np.int64]
    names: str

    @property
    def axes(self) -> int:
        """How many axes are not flat."""
        return self.position.shape[1]

    def part(self) -> Movie:
        """Consecutive frames from the middle that tell enough of the movie, or itself if it is short."""
        start = self.frame_start
        frames = len(start) - 1
        if len(self.frame) < _PART:
            return self
        middle = int(np.searchsorted(start, len(self.frame) // 2, side="right")) - 1
        first, last = middle, middle + 1
        while last - first < frames and (start[last] - start[first] < _PART or last - first < _LEAST_FRAMES):
            first, last = max(first - 1, 0), min(last + 1, frames)
        rows = slice(start[first], start[last])
        if start[last] - start[first] > len(self.frame) / 2:
            return self
        return Movie(
            self.frame[rows], self.position[rows], self.order[rows],
            start[first : last + 1] - start[first], self.names,
        )  # fmt: skip


def movie_of(detections: Detections, spacing: tuple[float, float, float]) -> Movie:
    """The detections sorted by place in every frame, without the axes along which nothing varies."""
    point, start = detections.position * np.asarray(spacing), detections.frame_start
    extent = np.ptp(point, axis=0) if len(point) else np.zeros(3)
    wide = extent > 0
    # Cells that hold a few points each; what is near then stands together, which is all that matters.
    most = max(np.diff(start).max(initial=1), 1)
    cell = float(extent.max()) * (4 / most) ** (1 / max(wide.sum(), 1))
    order = pairs_within(point, point[:0], cell, start, np.zeros_like(start)).rows.order.astype(np.int64)
    axes = np.nonzero(wide)[0] if wide.any() else np.array([0])
    frame, position = detections.frame[order].astype(np.int64), np.ascontiguousarray(point[order][:, axes])
    return Movie(frame, position, order, start, "".join("zyx"[axis] for axis in axes))
