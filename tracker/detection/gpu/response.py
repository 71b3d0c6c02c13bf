"""Noise scales of responses, and maxima that stand out of them; see `joint.NoiseScale`."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np
from scipy.special import ndtr

from ...compute.arrays import cupy_module, to_device
from ...compute.cuda import cuda_function, launch
from ..joint import (
    _BELOW,
    _EVERYWHERE,
    _FLOOR,
    _LEAST,
    _SAMPLED,
    _SAMPLED_PEAK,
    _UNIT_PRIOR,
    WINDOW,
)

SOURCE = "detection/gpu/response.cu"


@dataclass(eq=False)
class NoiseScales:
    """Standard deviation of noise around each position of frames, in blocks.

    Parameters
    ----------
    blocks : (B, z, y, x) float64 array
    size : (3,) int64 array
        Voxels of a block, on the host.
    """

    blocks: object
    size: object

    @staticmethod
    def of(response, sigma, deep):
        """From the negative side of responses; deep: expected minima below `_BELOW`, on the host."""
        xp, size = cupy_module(), np.maximum(1, np.rint(WINDOW / 2 * sigma)).astype(np.int64)
        shape = response.shape[1:]
        grid = [-(-n // int(each)) for n, each in zip(shape, size, strict=True)]
        blocks = xp.empty((len(response), *grid))
        launch(
            cuda_function(SOURCE, "mean_depths"), blocks.size,
            (response, *map(np.int32, (*shape, *size, *grid)), np.int64(blocks.size), blocks),
        )  # fmt: skip
        blocks *= np.sqrt(2 * np.pi)
        everywhere = _everywhere(response, deep)[:, None, None, None]
        smooth = import_module("cupyx.scipy.ndimage").gaussian_filter
        local = smooth(blocks, (0.0, *(WINDOW * sigma / size)), mode="reflect")
        least = xp.maximum(_LEAST * everywhere, _FLOOR)
        return NoiseScales(xp.maximum((local + _EVERYWHERE * everywhere) / (1 + _EVERYWHERE), least), size)

    @property
    def arguments(self):
        """What kernels are given."""
        return self.blocks, *map(np.int32, (*self.blocks.shape[1:], *self.size))

    def at(self, frame, position):
        """(n,): linear between the middles of blocks."""
        out = cupy_module().empty(len(frame))
        launch(
            cuda_function(SOURCE, "scales_at"), len(frame),
            (*self.arguments, frame, position, np.int32(len(frame)), out),
        )  # fmt: skip
        return out

    def maxima(self, response, which, least, sign=1.0):
        """Frames (n,), positions (n, 3) and heights (n,), in units of the noise, of maxima of responses.

        which : (A,) int32 on the host
            Their frames, in order.
        least : (B,) float64 on the host
            Least heights, in units of the noise.
        """
        xp, frames = cupy_module(), len(self.blocks)
        _, depth, height, width = response.shape
        lowest, least = self.blocks.min(axis=(1, 2, 3)), to_device(least)
        low = (_SAMPLED_PEAK * (least * lowest)).astype(np.float32)
        slot = np.zeros(frames, np.int32)
        slot[which] = np.arange(len(which))
        rows = len(which) * depth * height
        count, none = xp.empty(rows, np.int64), np.int64(0)
        shape = tuple(map(np.int32, (depth, height, width)))
        given = (response, to_device(which), np.float32(sign), low, *shape, np.int64(rows))
        find = cuda_function(SOURCE, "maxima_of_rows")
        launch(find, 32 * rows, (*given, count, none, none, none))
        place = xp.cumsum(count)
        n = int(place[-1])
        place -= count
        frame, voxel = xp.empty(n, np.int32), xp.empty((n, 3), np.int32)
        position, high = xp.empty((n, 3)), xp.empty(n)
        if n:
            launch(find, 32 * rows, (*given, none, place, frame, voxel))
            launch(
                cuda_function(SOURCE, "vertices"), n,
                (response, to_device(slot), np.float32(sign), frame, voxel, np.int32(n), *shape,
                 *self.arguments, least, lowest, position, high),
            )  # fmt: skip
        found = high > 0
        return frame[found], position[found], high[found]


def _everywhere(response, deep):
    """(A,): standard deviations of noise of whole frames; see `joint.noise_scale`."""
    xp = cupy_module()
    voxels = int(np.prod(response.shape[1:]))
    step = max(1, voxels // _SAMPLED)
    rank, out = round(float(ndtr(-_BELOW)) * (-(-voxels // step) - 1)), xp.empty(len(response), np.float32)
    cuda_function(SOURCE, "ranked")(
        (len(response),), (512,), (response, np.int64(voxels), np.int64(step), np.int64(rank), out)
    )
    measured = -out.astype(np.float64) / _BELOW
    most = to_device(deep)
    return xp.maximum(xp.sqrt((most * measured**2 + _UNIT_PRIOR) / (most + _UNIT_PRIOR)), 1e-9)
