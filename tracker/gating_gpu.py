"""Launches the GPU kernels of gating; same names and arguments as gating_cpu.py."""

# mypy: ignore-errors
# CuPy is known to _arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ._arrays import array_module, cuda_function, launch, to_device, to_host

_SOURCE = "gating.cu"
_BUCKETS_A_POINT = 2


def bounds(point):
    """Least and greatest z, y, x of points (N, 3), N > 0, as a host array (2, 3)."""
    blocks = min(1024, -(-len(point) // 256))
    found = array_module(point).empty((blocks, 2, 3))
    launch(cuda_function(_SOURCE, "bounds"), 256 * blocks, (point, np.int64(len(point)), found))
    found = to_host(found)
    return np.stack([found[:, 0].min(axis=0), found[:, 1].max(axis=0)])


def sort_cells(point, block_start, origin, inverse_edge, size):
    """Order (N,) i8, key (N,) i8 and sorted point (3, N) f8 of the points (N, 3) f8 of every block."""
    xp = array_module(point)
    count = len(point)
    key = xp.empty(count, np.int64)
    blocks = (to_device(block_start), np.int32(len(block_start) - 1))
    # Iterating a NumPy array gives the scalars that the kernel takes.
    arguments = (point, np.int64(count), *blocks, *origin, *inverse_edge, *size, key)
    launch(cuda_function(_SOURCE, "cell_keys"), count, arguments)
    order = xp.argsort(key, kind="stable")
    sorted_point = xp.empty((3, count))
    launch(cuda_function(_SOURCE, "gather_points"), count, (point, order, np.int64(count), sorted_point))
    return order, key[order], sorted_point


def count_pairs(rows, cols, size, offsets, radius2, workers):  # noqa: ARG001
    """Columns within the radius of every row, (R,) i8; rows, cols are gating.Cloud."""
    count = array_module(rows.key).zeros(len(rows), np.int64)
    reach = _reach(rows, cols, size, offsets, radius2)
    launch(cuda_function(_SOURCE, "count_pairs"), len(rows), (*reach, count))
    return count


def fill_pairs(rows, cols, size, offsets, radius2, workers, indptr):  # noqa: ARG001
    """Indices (P,) i4 and squared distances (P,) f8 of the pairs counted, indptr (R+1,) i8."""
    xp = array_module(rows.key)
    pairs = int(indptr[-1])
    indices, distance2 = xp.empty(pairs, np.int32), xp.empty(pairs)
    reach = _reach(rows, cols, size, offsets, radius2)
    launch(cuda_function(_SOURCE, "fill_pairs"), len(rows), (*reach, indptr, indices, distance2))
    return indices, distance2


def _reach(rows, cols, size, offsets, radius2):
    """What both kernels are told; columns are found through buckets of 2^shift keys."""
    xp = array_module(rows.key)
    blocks = len(rows.block_start) - 1
    keys = int(np.prod(size)) * blocks
    shift = 0
    while keys >> shift > _BUCKETS_A_POINT * len(cols) + 1024:
        shift += 1
    buckets = (keys >> shift) + 1
    bucket = xp.empty(buckets + 1, np.int32)
    arguments = (cols.key, np.int32(len(cols)), np.int32(shift), np.int64(buckets), bucket)
    launch(cuda_function(_SOURCE, "bucket_starts"), buckets + 1, arguments)
    return (
        *(rows.point, rows.key, np.int64(len(rows))),
        *(cols.point, cols.key, bucket, np.int32(shift), np.int64(len(cols))),
        *(np.prod(size), *size[1:], np.int32(blocks), np.int32(offsets[0]), np.int32(offsets[1])),
        np.float64(radius2),
    )
