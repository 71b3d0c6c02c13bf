"""Sums by index on the GPU, without atomics of numbers; same names and arguments as segments_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module
from ...compute.cuda import cuda_function, launch

_SOURCE = "learned/model/segments.cu"
_FEW = 1024
"""Guard: sums that each thread makes for itself; of more, rows are sorted."""
THREADS = 4096
"""Guard: threads that each sum their own rows."""


def summed(index, weight, count):
    """(count,) sums of the weights (E,) of each index (E,)."""
    xp = array_module(index)
    index, weight = xp.ascontiguousarray(index, np.int32), xp.ascontiguousarray(weight, np.float64)
    if count <= _FEW:
        table = xp.zeros((THREADS, count))
        given = (np.int64(len(index)), np.int32(count), index, weight, np.int32(THREADS), table)
        launch(cuda_function(_SOURCE, "sum_few"), THREADS, given)
        return table.sum(axis=0)
    order = xp.argsort(index)
    start = xp.searchsorted(index[order], xp.arange(count + 1, dtype=np.int32))
    return of_segments(index, start, order.astype(np.int32), weight)


def of_segments(index, start, link, values):  # noqa: ARG001
    """(N,) sums of values (E,) by index (E,); link[start[i]:start[i + 1]] are the places of index i."""
    xp, count = array_module(values), len(start) - 1
    sums = xp.empty(count)
    given = (np.int64(count), start, link, xp.ascontiguousarray(values, np.float64), sums)
    launch(cuda_function(_SOURCE, "sum_segments"), count, given)
    return sums
