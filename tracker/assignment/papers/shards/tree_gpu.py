"""Launches the kernels of tree.cu, for columns on a GPU; the names, arguments and results of tree_cpu.

A pass is two launches and a copy back. Nothing depends on the order of threads.
"""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ....compute.arrays import array_module, to_device, to_host
from ....compute.cuda import cuda_function, launch
from .classical_device import key_of

_SOURCE = "assignment/papers/shards/tree.cu"
_OPEN, _JOINED = 0, 1
_SCANNERS = 64
"""Threads of a block that scans: few, so that few columns still occupy all multiprocessors."""
_RECORDS = 64
"""Records that come back with their number; more of them come in a second copy."""


def open_columns(columns, never):
    """Forgets what a search found; see tree_cpu."""
    columns.slack.fill(never)
    columns.state.fill(_OPEN)
    columns.found_in.fill(0)


def scan(columns, frontier, number, tie, team):  # noqa: ARG001
    """Algorithm 4 for a frontier; see tree_cpu."""
    c = columns
    rows, width = c.costs.shape
    count = len(frontier[0])
    if not count:
        return
    found = (c.slack, c.state, c.row_before, c.root, c.found_in)
    launch(
        _function("scan", c),
        width,
        (
            *(c.costs, np.int64(rows), np.int64(width), np.int64(c.first), to_device(_packed(*frontier))),
            *(np.int64(count), c.dual, np.int64(number), *found),
        ),
        block=_SCANNERS,
    )


def join(columns, level, never):
    """Own columns whose slack is at most `level`; see tree_cpu. On the host."""
    c, kind = columns, columns.slack.dtype
    width = len(c.slack)
    found = array_module(c.slack).zeros(2 + 3 * width, np.int64)
    given = (np.int64(width), kind.type(level), c.slack, c.state, c.row_before, c.root, found)
    launch(_function("join", c), width, given)
    first = to_host(found[: 2 + 3 * _RECORDS])
    count, order = int(first[0]), int(first[1]) % (1 << 64)
    records = (first if count <= _RECORDS else to_host(found))[2 : 2 + 3 * count].reshape(-1, 3)
    col, both, bits = records[np.argsort(records[:, 0])].T
    slack = (np.ascontiguousarray(bits).view(np.float64) if kind.kind == "f" else bits).astype(kind)
    least = min(never, key_of(order, kind)) if order else never
    return col, slack, (both >> 32).astype(np.int32), (both & 0xFFFFFFFF).astype(np.int32), least


def lower_duals(columns, level, ends):
    """What a search takes from the duals of the columns it covered; see tree_cpu."""
    c, xp = columns, array_module(columns.slack)
    covered = c.state == _JOINED
    covered[xp.asarray(ends)] = False
    c.dual[:] = xp.where(covered, c.dual - (level - c.slack), c.dual)


def _packed(joined, roots, bases):
    """(3, k) int64: one copy to the GPU."""
    wide = bases.astype(np.float64 if bases.dtype.kind == "f" else np.int64)
    return np.stack([joined, roots, wide.view(np.int64)], dtype=np.int64)


def _function(name, columns):
    types = (("COST", columns.costs), ("KEY", columns.slack))
    return cuda_function(_SOURCE, name, options=tuple(f"-D{of}={one.dtype.str[1:]}" for of, one in types))
