"""Launches the GPU kernels of belief propagation; same names and arguments as propagation_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module
from ...compute.cuda import cuda_function, launch

_SOURCE = "learned/inference/propagation.cu"


def by_head(head, start, link):
    """Write the links of each head in their order; see propagation_cpu.by_head."""
    xp = array_module(head)
    link[...] = xp.argsort(head)  # which is stable
    start[...] = xp.searchsorted(head[link], xp.arange(len(start), dtype=head.dtype))


def begin(start, link, n, R, moved):
    """Write the competitors of links that are alone; returns the other segments (S,) i4."""
    xp = array_module(start)
    launch(cuda_function(_SOURCE, "begin"), len(n), (np.int64(len(n)), start, link, n, R, moved))
    return xp.flatnonzero(start[1:] - start[:-1] > 1).astype(np.int32)


def compete(first, last, some, start, link, G, n, R, C, omega, moved, seen):
    """One half round over segments some[first:last]; returns whether links moved, (1,) i4 on the GPU."""
    moves = array_module(some).zeros(1, np.int32)
    given = (some, start, link, G, n, R, C, np.float64(omega), moved, seen, moves)
    launch(cuda_function(_SOURCE, "compete"), last - first, (np.int64(first), np.int64(last), *given))
    return moves
