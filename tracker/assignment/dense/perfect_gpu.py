"""Perfect matchings of square sparse problems on the GPU; same names and arguments as perfect_cpu.py.

Rows bid and search at once, where the CPU goes row after row: the cost is the same, duals and the choice
among equal optima may differ. Neither depends on the order of threads nor on the launch geometry.
"""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module, to_host
from ...compute.cuda import cuda_function, launch, processors

PATIENCE, PATIENCE_WITH_POINTS = 4, 20
"""Passes without a perfect matching among candidates, before a search of all pairs is the quicker way."""
FAR = 3
"""Far candidates of every row of points. Rounds of bids by few rows are quick here, and far pairs let them
make prices right over long distances; without, many paths must be found one after the other."""
_BID, _AUGMENT = "assignment/dense/perfect_bid.cu", "assignment/dense/perfect.cu"
_BLOCK = 1024
_ROWS_A_BLOCK = 32
_ROUNDS_A_LAUNCH = 20_000
"""Rounds of a search before the host may cancel: some tenths of a second."""


def merged(of_rows, row_count, of_cols, col_count):
    """Candidates of rows and of columns as CSR, each pair once: indptr, rows, indices."""
    rows, cols = _listed(of_rows, row_count)
    more_cols, more_rows = _listed(of_cols, col_count)
    return _united(len(row_count), (rows, cols), (more_rows, more_cols))[:3]


def added(nearest, count, indptr, rows, indices, edge):  # noqa: ARG001
    """The candidates with new ones; written: edge, pairs that move."""
    held = array_module(edge).nonzero(edge >= 0)[0]
    held_keys = rows[edge[held]] * len(edge) + indices[edge[held]]
    *united, keys = _united(len(edge), (rows, indices), _listed(nearest, count))
    edge[held] = array_module(edge).searchsorted(keys, held_keys)
    return united


def _listed(nearest, count):
    """(row, nearest) of every place that is filled."""
    xp = array_module(count)
    filled = xp.arange(nearest.shape[1]) < count[:, None]
    return xp.nonzero(filled)[0], nearest[filled]


def _united(size, *pairs):
    xp = array_module(pairs[0][0])
    keys = xp.sort(xp.concatenate([rows.astype(np.int64) * size + cols for rows, cols in pairs]))
    is_new = xp.ones(len(keys), bool)
    is_new[1:] = keys[1:] != keys[:-1]
    keys = keys[is_new]
    rows = keys // size
    indptr = xp.searchsorted(rows, xp.arange(size + 1)).astype(np.int64)
    return indptr, rows, (keys - rows * size).astype(np.int32), keys


def lower_to_slack(indptr, indices, values, v, u):
    """u_i := min(u_i, min_j (c_ij - v_j)); written: u (R,)."""
    launch(
        _function(_AUGMENT, "lower_to_slack", values, v),
        len(u),
        (indptr, indices, values, v, u, np.int64(len(u))),
    )


def bid(indptr, indices, values, v, owner, edge, bound, epsilon, rounds, few):
    """Rounds of bids until few rows are free; see perfect_cpu.bid."""
    xp, size = array_module(v), len(v)
    rows, live = xp.empty((2, size), np.int32), xp.zeros(rounds + 1, np.int32)
    free = xp.nonzero(edge < 0)[0]
    rows[0, : len(free)] = free
    live[0] = len(free)
    arguments = (
        *(indptr, indices, values, v, owner, edge, bound, np.asarray(epsilon, v.dtype)[()]),
        *(np.int32(rounds), np.int32(few), np.int64(size), rows, xp.empty(size, np.int32)),
        *(xp.empty(size, v.dtype), xp.empty(size, np.int64), xp.full(size, -1, np.int64).view(np.uint64)),
        *(xp.full(size, -1, np.int32), live, xp.zeros(1, np.uint32)),
    )
    _function(_BID, "bid_rounds", values, v, cooperative=True)(_grid(size), (_BLOCK,), arguments)
    return int(live.sum())


def augment(indptr, indices, values, v, owner, edge, jump):
    """Shortest augmenting paths from all free rows at once; see perfect_cpu.augment."""
    xp, size = array_module(v), len(v)
    progress = xp.zeros(6, np.int32)  # free, stuck, phases, rounds, scanned in two halves
    scratch = (
        *(xp.empty(len(indices), v.dtype), xp.empty((2, size), np.uint64), xp.empty(size, np.int32)),
        *(xp.empty(size, np.uint64), xp.empty(size, np.int32), xp.empty((2, size, 2), np.int32)),
        *(xp.empty(size, np.int32), xp.zeros(4, np.int32), xp.empty(size, np.uint64)),
        *(xp.empty(size, np.int32), xp.zeros(3, np.uint64), progress),
    )
    grow = _function(_AUGMENT, "grow_and_augment", values, v, cooperative=True)
    given = (indptr, indices, values, v, owner, edge, np.asarray(jump, v.dtype)[()])
    free, stuck = size, -1
    while free and stuck < 0:
        scratch[7][:] = 0
        counts = (np.int32(_ROUNDS_A_LAUNCH), np.int64(size))
        grow(_grid(size), (_BLOCK,), (*given, *counts, *scratch, xp.zeros(1, np.uint32)))
        free, stuck = to_host(progress)[:2].tolist()
    state = to_host(progress)
    stats = {"phases": int(state[2]), "rounds": int(state[3]), "scanned": int(state[4:].view(np.uint64)[0])}
    return stats, -1 if stuck < 0 else int(xp.argmin(edge))


def _grid(size):
    return (max(1, min(processors(), -(-size // _ROWS_A_BLOCK))),)


def _function(source, name, values, v, *, cooperative=False):
    types = (f"-DVALUE={values.dtype.str[1:]}", f"-DKEY={v.dtype.str[1:]}")
    return cuda_function(source, name, cooperative=cooperative, options=types)
