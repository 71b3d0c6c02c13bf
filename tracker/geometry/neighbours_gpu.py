"""Launches the GPU kernels of neighbour search; same names and arguments as neighbours_cpu.py.

One grid of cells serves all frames. Cells at its border also hold all points beyond it, as on the CPU.
"""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ..compute.arrays import array_module, to_device, to_host
from ..compute.cuda import cuda_function, launch

_SOURCE = "geometry/neighbours.cu"
_A_CELL = 12.0
"""Neighbours asked for each point in a cell."""
_LOOKED, _STRAY = 4096, 32
"""So many points show where all are, but one in so many."""


def nearest_of_rows(first, last, rows, frame_start, position, offset, within, near, distance2):
    """Neighbours of the points rows[first:last]; see neighbours_cpu.nearest_of_rows."""
    (points, axes), count, xp = position.shape, near.shape[1], array_module(position)
    frames = int(np.count_nonzero(np.diff(frame_start)))
    grid = _grid(to_host(position[:: 1 + points // _LOOKED]), points / max(frames, 1), 1 + count / _A_CELL)
    cells = int(grid[4:].prod())
    start, grid = to_device(np.asarray(frame_start)), to_device(grid)
    frame = (xp.searchsorted(start, xp.arange(points), side="right") - 1).astype(np.int32)
    position, key = xp.ascontiguousarray(position), xp.empty(points, np.int64)
    options = (f"-DAXES={axes}", f"-DCOUNT={count}")
    given = (np.int64(points), position, frame, grid, key)
    launch(cuda_function(_SOURCE, "cells_of", options=options), points, given)
    order = xp.argsort(key)
    begin = xp.searchsorted(key[order], xp.arange((len(frame_start) - 1) * cells + 1))
    listed = begin, order.astype(np.int32), position[order]
    given = (rows, position, frame, np.int32(offset), np.float64(within), grid, *listed, near, distance2)
    search = cuda_function(_SOURCE, "nearest_of_rows", options=options)
    launch(search, last - first, (np.int64(first), np.int64(last), *given), block=128)


def _grid(some, a_frame, a_cell):
    """Origin (3), edge and numbers of cells (3) of a grid with about a_cell points each, as f8."""
    low, extent = np.zeros(3), np.zeros(3)
    for axis, values in enumerate(np.sort(some, axis=0).T):
        inner, outer = values[len(values) // _STRAY], values[-1 - len(values) // _STRAY]
        high, low[axis] = values[-1], values[0]
        if outer > inner:
            high, low[axis] = min(high, 2 * outer - inner), max(low[axis], 2 * inner - outer)
        extent[axis] = high - low[axis]
    edge = float(extent.max()) or 1.0
    while extent.max() > 0 and np.prod(np.floor(extent / (0.8 * edge)) + 1) <= a_frame / a_cell:
        edge *= 0.8
    return np.concatenate([low, [edge], np.floor(extent / edge) + 1])
