"""Launches the GPU kernels of gating; same names and arguments as gating_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ..compute.arrays import array_module, to_device
from ..compute.cuda import cuda_function, launch

_SOURCE = "geometry/gating.cu"
_BUCKETS_A_POINT = 2
_GRID_BYTES = 96
_MOST_BLOCKS = 512


def sort_by_cell(rows, cols, row_start, col_start, least_edge, most, workers):  # noqa: ARG001
    """Both clouds sorted by cell and the grid; see gating_cpu.sort_by_cell. No host waits."""
    xp = array_module(rows)
    count, points, frames = len(rows), len(rows) + len(cols), len(row_start) - 1
    room = _BUCKETS_A_POINT * points + 1024
    grid, counted = xp.empty(_GRID_BYTES, np.uint8), xp.zeros(2 * room + 1, np.int32)
    rows, cols = xp.ascontiguousarray(rows), xp.ascontiguousarray(cols)
    both = (rows, np.int64(count), cols, np.int64(points))
    blocks = min(_MOST_BLOCKS, -(-points // 256) or 1)
    sizes = (np.float64(least_edge), np.int64(most), np.int64(frames), np.int64(room))
    launch(
        cuda_function(_SOURCE, "make_grid"),
        256 * blocks,
        (*both, *sizes, xp.empty((blocks, 6)), counted[-1:], grid),
    )
    key, place, member = xp.empty(points, np.int64), xp.empty(points, np.int32), xp.empty(points, np.int32)
    # Where there is but one block nobody reads where it starts.
    starts = (counted, counted) if frames == 1 else (to_device(row_start), to_device(col_start))
    where = (grid, np.int64(room))
    launch(
        cuda_function(_SOURCE, "count_points"),
        points,
        (*both, *starts, np.int32(frames), *where, key, place, counted),
    )
    start = xp.cumsum(counted, dtype=np.int32)
    launch(
        cuda_function(_SOURCE, "fill_buckets"),
        points,
        (key, place, *both[1::2], *where, start, member),
    )
    clouds = [
        (xp.empty(n, np.int32), xp.empty(n, np.int64), xp.empty((3, n))) for n in (count, points - count)
    ]
    launch(
        cuda_function(_SOURCE, "sort_points"),
        points,
        (*both, key, *where, start, member, *clouds[0], *clouds[1]),
    )
    return *clouds, (grid, start[room:])


def count_pairs(rows, cols, cells, offsets, radius2, workers):  # noqa: ARG001
    """Where each row's pairs start, (R + 1,) i8, falling if some coordinate is no finite number.

    rows, cols are gating.Cloud.
    """
    xp = array_module(rows.key)
    count = xp.zeros(1, np.int64) if len(rows) == 0 else xp.empty(len(rows) + 1, np.int64)
    launch(
        cuda_function(_SOURCE, "count_pairs"),
        len(rows),
        (*_reach(rows, cols, cells, offsets, radius2), count),
    )
    return xp.cumsum(count)


def fill_pairs(rows, cols, cells, offsets, radius2, workers, indptr, pairs):  # noqa: ARG001
    """Indices (P,) i4 and squared distances (P,) f8 of the pairs counted, indptr (R+1,) i8."""
    xp = array_module(rows.key)
    indices, distance2 = xp.empty(pairs, np.int32), xp.empty(pairs)
    reach = _reach(rows, cols, cells, offsets, radius2)
    # What few pairs gain by writing together they lose by waiting for each other.
    team = 8 if pairs > 8 * len(rows) else 1
    kernel = cuda_function(_SOURCE, f"fill_pairs_{team}")
    launch(kernel, team * len(rows), (*reach, indptr, indices, distance2))
    return indices, distance2


def _reach(rows, cols, cells, offsets, radius2):
    """What both kernels are given."""
    grid, start = cells
    return (
        *(rows.point, rows.key, np.int64(len(rows)), cols.point, cols.key, np.int64(len(cols))),
        *(start, grid, np.int32(len(rows.block_start) - 1), *map(np.int32, offsets), np.float64(radius2)),
    )
