"""The background of a frame: local linear regression, plane by plane.

Each image plane is summed over blocks of half a window, and a linear function is fitted around each block
with a Gaussian window of width w. Then the residual is fitted again, relative to the local variance, which is
proportional to the light. The result is exact for linear slopes and exponentials, also at the borders. Planes
along z are not combined, because out-of-focus light changes from plane to plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .background_cpu import block_sums, spread
from .joint_cpu import Noise
from .response import bell, correlate

_RIDGE = 0.004  # of the squared window: keeps a slope from what few voxels say; 0.05 bent a ramp visibly
_REACH = 2.5  # windows
_BLOCKS = 16  # along an axis at least: with 7, steep slopes had false spots at walls
_TOGETHER = 1 << 16  # blocks of the planes that are fitted together
_ALONE = np.ones(1)

Grid = NDArray[np.float32]
Weights = tuple[Grid, list[tuple[Grid, Grid] | None]]


@dataclass(frozen=True, eq=False)
class Smoother:
    """Local linear regression on blocks.

    Parameters
    ----------
    shape : tuple of 3 int
        Shape of the frame.
    wide : tuple of 2 float
        Standard deviation of the window along y and x, in voxels.
    """

    shape: tuple[int, int, int]
    wide: tuple[float, float]

    @cached_property
    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first row, column of each block, and the end: blocks of half a window at most, nearly even."""
        y, x = (
            np.linspace(0, size, max(-(-size // max(1, int(width / 2))), min(size, _BLOCKS)) + 1)
            for size, width in zip(self.shape[1:], self.wide, strict=True)
        )
        return y.astype(np.int64), x.astype(np.int64)

    def centres(self, axis: int) -> NDArray[np.float64]:
        """Centres of the blocks along y (0) or x (1), in voxels."""
        return (self.edges[axis][:-1] + self.edges[axis][1:] - 1) / 2

    @cached_property
    def shares(self) -> tuple[tuple[NDArray[np.int64], Grid], ...]:
        """For each row, column: the block before it, and the fractional distance from its centre."""
        made = []
        for axis in (0, 1):
            centres, voxel = self.centres(axis), np.arange(self.shape[1 + axis])
            before = np.clip(np.searchsorted(centres, voxel) - 1, 0, max(len(centres) - 2, 0))
            after = np.minimum(before + 1, len(centres) - 1)
            share = (voxel - centres[before]) / np.maximum(centres[after] - centres[before], 1.0)
            made.append((before, share.astype(np.float32)))
        return tuple(made)

    def zeros(self, *more: int) -> Grid:
        """(…, Z, b, c): values for each block."""
        return np.zeros((*more, self.shape[0], *(len(edges) - 1 for edges in self.edges)), np.float32)

    def add_up(self, values: Grid, gauge: Grid, most: float, start: int, sums: Grid) -> None:
        """Write the sums (4, Z, b, c) over blocks of the rows from `start` on; see `block_sums`."""
        y, x = self.edges
        first, last = np.searchsorted(y, [start, start + values.shape[1]])
        block_sums(values, gauge, np.float32(most), y[first : last + 1] - start, x, sums[:, :, first:last])

    def fit(self, sums: Grid, noise: Noise, each: Callable[..., Iterable[object]] = map) -> Ground:
        """The background of values with these sums over blocks; `each` applies a function to parts."""
        grid = self.zeros()
        step = max(1, _TOGETHER // max(grid[0].size, 1))

        def work(first: int) -> None:
            planes = slice(first, first + step)
            grid[planes] = self._fitted(sums[:, planes], noise)

        list(each(work, range(0, len(grid), step)))
        return Ground(self, grid)

    def _fitted(self, sums: Grid, noise: Noise) -> Grid:
        """The background of some planes."""
        count, total, *away = sums
        weights = self._weights(count)
        line = self._line(weights, total)
        smooth = line * count
        for axis, offset in enumerate(away):
            if line.shape[1 + axis] < 3:
                continue
            smooth += np.gradient(line, self.centres(axis), axis=1 + axis).astype(np.float32) * offset
            # The mean over a block of what is interpolated between the centres of blocks.
            steps = [-1 if other == axis else 1 for other in (-1, 0, 1)]
            slope = np.diff(line, axis=1 + axis) / np.diff(self.centres(axis)).reshape(steps)
            bend = np.diff(slope, axis=1 + axis) * np.diff(self.edges[axis])[1:-1].reshape(steps) / 8
            inner = tuple(slice(1, -1) if other == axis else slice(None) for other in (-1, 0, 1))
            smooth[inner] += count[inner] * bend.astype(np.float32)
        scale: Grid = variance(line, noise)
        return line + scale * self._line(weights, (total - smooth) / scale)

    def _along(self, values: Grid, axis: int, power: int) -> Grid:
        """Sums over a window along an axis, weighted with a power of the distance in windows."""
        wide, (edges, size) = self.wide[axis], (self.edges[axis], self.shape[1 + axis])
        block = size / (len(edges) - 1)
        taps = bell(wide / block, reach=_REACH)
        taps = taps * ((np.arange(len(taps)) - len(taps) // 2) * block / wide) ** power
        return correlate(values, (_ALONE, taps, _ALONE) if axis == 0 else (_ALONE, _ALONE, taps))

    def _weights(self, count: Grid) -> Weights:
        """Sums of weights, and for each axis the mean offset and its variance with a ridge."""
        y, x = (self._along(count, axis, 0) for axis in (0, 1))
        s0 = self._along(x, 0, 0) + np.float32(1e-6)
        moments: list[tuple[Grid, Grid] | None] = []
        for axis, other in enumerate((x, y)):
            if count.shape[1 + axis] < 3:
                moments.append(None)
                continue
            s1, s2 = (self._along(other, axis, power) / s0 for power in (1, 2))
            moments.append((s1, s2 - s1**2 + np.float32(_RIDGE)))
        return s0, moments

    def _line(self, weights: Weights, total: Grid) -> Grid:
        """The fitted line at the centre of each block."""
        s0, moments = weights
        y, x = (self._along(total, axis, 0) for axis in (0, 1))
        mean = self._along(x, 0, 0) / s0
        out = mean.copy()
        for axis, (other, moment) in enumerate(zip((x, y), moments, strict=True)):
            if moment is not None:
                out -= moment[0] * (self._along(other, axis, 1) / s0 - mean * moment[0]) / moment[1]
        return out


@dataclass(frozen=True, eq=False)
class Ground:
    """A fitted background: its values (Z, b, c) at the centres of the blocks of a smoother."""

    smoother: Smoother
    grid: Grid

    def rows(self, first: int, last: int) -> Grid:
        """(Z, last - first, X): the background of some rows."""
        depth, _, width = self.smoother.shape
        out = np.zeros((depth, last - first, width), np.float32)
        self.add_to(out, first)
        return out

    def add_to(self, values: Grid, first: int) -> None:
        """Add the background to values (Z, y, X) of rows from `first` on."""
        (y, u), (x, v) = self.smoother.shares
        last = first + values.shape[1]
        spread(self.grid, y[first:last], u[first:last], x, v, values)

    def at(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,): the background at places (n, 3) in voxels."""
        voxel = np.clip(np.rint(place).astype(np.int64), 0, np.array(self.smoother.shape) - 1)
        (y, u), (x, v) = (
            (before[voxel[:, 1 + axis]], share[voxel[:, 1 + axis]])
            for axis, (before, share) in enumerate(self.smoother.shares)
        )
        y1, x1 = np.minimum(y + 1, self.grid.shape[1] - 1), np.minimum(x + 1, self.grid.shape[2] - 1)
        z = voxel[:, 0]
        low = self.grid[z, y, x] * (1 - u) + self.grid[z, y1, x] * u
        return low + v * (self.grid[z, y, x1] * (1 - u) + self.grid[z, y1, x1] * u - low)


def variance(mean: NDArray, noise: Noise) -> NDArray:
    """Variance of voxels with these means, in their precision."""
    return np.maximum(
        mean * mean.dtype.type(noise.slope) + mean.dtype.type(noise.base), mean.dtype.type(noise.least)
    )
