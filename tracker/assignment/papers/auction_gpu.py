"""Launches the GPU kernels of `auction`; same names, arguments and results as auction_cpu.py, to the bit.

All rounds of a call run in one cooperative kernel: the host waits once a call, not once a round.
"""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module, to_device, to_host
from ...compute.cuda import cuda_function, processors

_SOURCE = "assignment/papers/auction.cu"
_BLOCK = 1024
_BLOCKS_A_PROCESSOR = 1
_ROWS_A_THREAD = 8
"""Short rows a thread looks at when all bid. In most rounds few do, and few blocks wait less for all."""
_LONG = 64
"""Pairs a row from which on more than eight threads look at it together."""


def dense_rounds(costs, low, scale, v, col_of_row, owner, epsilon, never, lone, rounds):
    """Rounds until every row holds a column within epsilon of its best, or `rounds` are over."""
    size = np.int32(costs.shape[0]), np.int32(costs.shape[1])
    state = (low, scale, v, col_of_row, owner, epsilon, never, lone)
    return _rounds("dense", costs, (costs, *size), state, rounds, 32)


def sparse_rounds(indptr, indices, values, low, scale, v, col_of_row, owner, epsilon, never, lone, rounds):
    """`dense_rounds` for pairs that are stored row by row."""
    state = (low, scale, v, col_of_row, owner, epsilon, never, lone)
    pairs = (indptr, indices, values, np.int32(len(col_of_row)))
    lanes = 32 if len(values) > _LONG * len(col_of_row) else 8
    return _rounds("sparse", values, pairs, state, rounds, lanes)


def _rounds(kind, values, costs, state, rounds, lanes):
    """One launch; returns the number of free rows and of rounds and bids done."""
    xp = array_module(values)
    _, _, v, col_of_row = state[:4]
    n, m = len(col_of_row), len(v)
    rows = xp.nonzero(col_of_row < 0)[0].astype(np.int32)
    free = xp.empty((2, n), np.int32)
    free[0, : len(rows)] = rows
    bids = (xp.empty(n, np.int32), xp.empty(n, v.dtype), xp.empty(n, np.uint64), xp.zeros(m, np.uint64))
    live = to_device(np.array([len(rows), 0, 0], np.int32))
    blocks = _BLOCKS_A_PROCESSOR * processors()
    if lanes < 32:
        blocks = max(1, min(blocks, -(-n * lanes // (_BLOCK * _ROWS_A_THREAD))))
    part, report = xp.empty(3 * blocks, v.dtype), xp.empty(3, np.int64)
    cuda_function(_SOURCE, f"{kind}_rounds_{values.dtype.str[1:]}", cooperative=True)(
        (blocks,),
        (_BLOCK,),
        (
            *(*costs, *state, np.int32(rounds), np.int32(lanes), np.int64(n)),
            *(free, *bids, live, part, xp.zeros(1, np.uint32), report),
        ),
    )
    return tuple(to_host(report).tolist())
