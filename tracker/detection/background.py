"""The background of a frame: local linear regression, plane by plane.

Each image plane is summed over blocks of half a window, and a linear function is fitted around each block
with a Gaussian window of width w. Then the residual is fitted again, relative to the local variance, which is
proportional to the light. The result is exact for linear slopes and exponentials, also at the borders. Planes
along z are not combined, because out-of-focus light changes from plane to plane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .background_cpu import block_sums, spread
from .joint_cpu import Noise
from .response import Slab, bell, correlate

_RIDGE = 0.004  # of the squared window: keeps a slope from what few voxels say; 0.05 bent a ramp visibly
_REACH = 2.5  # windows

Part = Callable[[Slab], tuple[NDArray[np.float32], NDArray[np.bool_]]]
"""The values of a slab that are smoothed, and which of its voxels count."""


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

    @property
    def block(self) -> tuple[int, int]:
        """Voxels of a block along y and x."""
        y, x = (max(1, int(width / 2)) for width in self.wide)
        return y, x

    def centres(self, axis: int) -> NDArray[np.float64]:
        """Centres of the blocks along y (0) or x (1), in voxels."""
        size, block = self.shape[1 + axis], self.block[axis]
        starts = np.arange(0, size, block)
        return (starts + np.minimum(starts + block, size) - 1) / 2

    def shares(self, axis: int, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """For voxels first to last: the block before each, and the fractional distance from its centre."""
        centres, voxel = self.centres(axis), np.arange(first, last)
        before = np.clip(np.searchsorted(centres, voxel) - 1, 0, max(len(centres) - 2, 0))
        after = np.minimum(before + 1, len(centres) - 1)
        return before, (voxel - centres[before]) / np.maximum(centres[after] - centres[before], 1.0)

    def fit(self, parts: list[Slab], part: Part, noise: Noise) -> Ground:
        """The background of the values that `part` returns for each slab."""
        line = self._line(*self._sums(parts, part))
        first = Ground(self, line)

        def rest(slab: Slab) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
            values, keep = part(slab)
            smooth = first.rows(slab.start, slab.stop)
            return (values - smooth) / variance(smooth, noise), keep

        return Ground(self, line + variance(line, noise) * self._line(*self._sums(parts, rest)))

    def _sums(self, parts: list[Slab], part: Part) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Counts and sums of all blocks; slabs consist of whole blocks."""
        size = self.shape[0], len(self.centres(0)), len(self.centres(1))
        weight, total = np.zeros(size), np.zeros(size)
        for slab in parts:
            here = slice(slab.start // self.block[0], -(-slab.stop // self.block[0]))
            values, keep = part(slab)
            block_sums(values, keep, self.block, weight[:, here], total[:, here])
        return weight, total

    def _line(self, weight: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
        """The fitted line at the centre of each block."""
        y, x = (bell(w / b, reach=_REACH) for w, b in zip(self.wide, self.block, strict=True))
        taps = np.ones(1), y, x
        s0, t0 = correlate(weight, taps) + 1e-6, correlate(total, taps)
        out = t0 / s0
        for axis in (0, 1):
            if weight.shape[1 + axis] < 3:
                continue
            u = (
                (self.centres(axis) / self.wide[axis])[:, None]
                if axis == 0
                else self.centres(axis) / self.wide[axis]
            )
            s1 = correlate(weight * u, taps) - u * s0
            s2 = correlate(weight * u**2, taps) - 2 * u * (s1 + u * s0) + u**2 * s0
            t1 = correlate(total * u, taps) - u * t0
            slope = (t1 - t0 * s1 / s0) / (s2 - s1**2 / s0 + _RIDGE * s0)
            out = out - slope * s1 / s0
        return out


@dataclass(frozen=True, eq=False)
class Ground:
    """A fitted background: its values (Z, b, c) at the centres of the blocks of a smoother."""

    smoother: Smoother
    grid: NDArray[np.float64]

    def rows(self, first: int, last: int) -> NDArray[np.float32]:
        """(Z, last - first, X): the background of some rows."""
        depth, _, width = self.smoother.shape
        out = np.empty((depth, last - first, width), np.float32)
        spread(self.grid, *self.smoother.shares(0, first, last), *self.smoother.shares(1, 0, width), out)
        return out

    def at(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,): the background at places (n, 3) in voxels."""
        voxel = np.clip(np.rint(place).astype(np.int64), 0, np.array(self.smoother.shape) - 1)
        (y, u), (x, v) = (self._before(axis, voxel[:, 1 + axis]) for axis in (0, 1))
        y1, x1 = np.minimum(y + 1, self.grid.shape[1] - 1), np.minimum(x + 1, self.grid.shape[2] - 1)
        z = voxel[:, 0]
        low = self.grid[z, y, x] * (1 - u) + self.grid[z, y1, x] * u
        return low + v * (self.grid[z, y, x1] * (1 - u) + self.grid[z, y1, x1] * u - low)

    def _before(self, axis: int, voxel: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        before, share = self.smoother.shares(axis, 0, self.smoother.shape[1 + axis])
        return before[voxel], share[voxel]


def variance(mean: NDArray, noise: Noise) -> NDArray:
    """Variance of voxels with these means."""
    return np.maximum(noise.base + noise.slope * mean, noise.least)


def whole(shape: tuple[int, ...]) -> list[Slab]:
    """One slab: the whole frame."""
    return [Slab(0, shape[1], 0, shape[1])]
