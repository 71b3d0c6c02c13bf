"""`least_uncovered` of hungarian_cpu for rows on a GPU, with the kernel in hungarian.cu."""

# mypy: ignore-errors
# Only compute/arrays.py imports CuPy, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ....compute.arrays import to_device, to_host
from ....compute.cuda import cuda_function

_SOURCE = "assignment/papers/hungarian.cu"
_BLOCK, _ROWS = 256, 8
"""Threads per block, and rows per block, as in hungarian.cu."""
_WORDS, _SCANNED, _LEAST = 3104, 5, 8
"""Length of the words, and indices of the number of rows and the least slack, as in hungarian.cuh."""
_SIGN = 1 << 63


def least_uncovered(costs, duals, covered, joined, never):
    """Algorithm 7; on the host, `never` if there is no uncovered column."""
    words = np.zeros(_WORDS, np.int64)
    words[_SCANNED] = len(joined)
    row_dual, col_dual, covered, joined, words = map(to_device, (*duals, covered, joined, words))
    options = tuple(f"-D{name}={array.dtype.str[1:]}" for name, array in (("COST", costs), ("KEY", row_dual)))
    cols = np.int64(costs.shape[1])
    cuda_function(_SOURCE, "least_slack", options=options)(
        (-(-len(joined) // _ROWS),), (_BLOCK,), (costs, cols, row_dual, col_dual, covered, joined, words)
    )
    order = int(to_host(words)[_LEAST]) % (1 << 64)
    return never if order == 0 else min(never, key_of(order, row_dual.dtype))


def key_of(order, dtype):
    """Decode a slack from the unsigned number of the kernel, which is larger for a smaller slack.

    Examples
    --------
    >>> int(key_of(~(5 ^ (1 << 63)) % (1 << 64), np.dtype(np.int32)))
    5
    """
    bits = np.uint64((~order ^ _SIGN) % (1 << 64)).astype(np.int64)
    if dtype.kind != "f":
        return dtype.type(bits)
    ordered = bits ^ (bits >> np.int64(63) & np.int64(0x7FFFFFFFFFFFFFFF))
    return np.array(ordered).view(np.float64)[()]
