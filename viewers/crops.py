"""Parts of a movie around links: the frame where a link starts in red, that where it ends in green."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outbid.formats.images.frames import Images
from outbid.particles.calibration import Calibration
from outbid.particles.detections import Detections

from .scene import grid_of, on_grid


@dataclass(frozen=True, eq=False)
class Crops:
    """A movie, and the size of its voxels in the unit of a plot."""

    movie: Images
    size: NDArray[np.float64]  # (3,) along z, y, x
    first: NDArray[np.float64]  # (3,) place of the first voxel in the plot

    @classmethod
    def of(cls, movie: Images, seen: Detections, drawn: Calibration) -> Crops:
        """For a plot of positions in this calibration; raises SettingsError if units do not fit together.

        >>> from outbid.formats.images.opening import open_images
        >>> movie = open_images(np.eye(4)[None].repeat(2, 0), axes="TYX")
        >>> drawn = Calibration(spacing=(1, 0.5, 0.5))
        >>> crops = Crops.of(movie, Detections.from_table([0], [[0, 1, 1]]), drawn)
        >>> picture, extent = crops.around((0, 1), np.array([0, 0.5, 0.5]), 0.5)
        >>> picture[..., 0].tolist(), extent
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], (-0.25, 1.25, 1.25, -0.25))
        """
        two = Detections.from_table([0, 0], [[0, 0, 0], [1, 1, 1]], calibration=seen.calibration)
        zero, one = on_grid(two, grid_of(movie, [seen])).position
        size = drawn.spacing / (one - zero)
        return cls(movie, size, -zero * size)

    def around(
        self, frames: Sequence[int], middle: NDArray[np.float64], half: float
    ) -> tuple[NDArray[np.float64], tuple[float, float, float, float]] | None:
        """Picture (n, m, 3) of two frames, the largest values along z; and its left, right, bottom, top.

        None where the movie has no such frames or no such position.
        """
        middle = middle - self.first
        low = np.clip(np.floor((middle - half) / self.size + 0.5).astype(int), 0, self.movie.shape)
        high = np.clip(np.ceil((middle + half) / self.size + 0.5).astype(int), 0, self.movie.shape)
        if (high <= low).any() or max(frames) >= self.movie.frame_count or min(frames) < 0:
            return None
        z, y, x = (slice(start, stop) for start, stop in zip(low.tolist(), high.tolist(), strict=True))
        flat = [part.max(axis=0).astype(np.float64) for part in self.movie.frames(frames, (z, y, x))]
        dark, bright = np.min(flat), np.max(flat)
        red, green = ((part - dark) / ((bright - dark) or 1.0) for part in flat)
        ends = [self.first + (end - 0.5) * self.size for end in (low, high)]
        top, left, bottom, right = np.concatenate(ends)[[1, 2, 4, 5]].tolist()
        return np.dstack([red, green, np.zeros_like(red)]), (left, right, bottom, top)
