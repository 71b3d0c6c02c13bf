"""Launches the GPU kernels of the certificate; same names and arguments as certificate_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ..compute.arrays import array_module, to_host
from ..compute.cuda import cuda_function, launch

_SOURCE = "assignment/certificate.cu"
_LANES = 8
_THREADS = 1 << 18


def first_repeated_pair(indptr, indices, cols):
    """First row that holds a column twice, or -1."""
    xp = array_module(indices)
    row = xp.searchsorted(indptr, xp.arange(len(indices)), side="right") - 1
    pair = xp.sort(row.astype(np.int64) * cols + indices)
    repeated = xp.nonzero(pair[1:] == pair[:-1])[0]
    return int(pair[repeated[0]]) // cols if len(repeated) else -1


def lower_to_slack(indptr, indices, values, v, u):
    """u_i := min(u_i, min_j (c_ij - v_j)); written: u (R,)."""
    _launch("lower_to_slack", u, (indptr, indices, values), v, u)


def look_up_pairs(indptr, indices, values, col_of_row, cost, times):
    """(2,) i4: pairs that are not there, and columns that are there twice; written: cost (R,), times (C,)."""
    wrong = array_module(cost).zeros(2, np.int32)
    _launch("look_up_pairs", cost, (indptr, indices, values), col_of_row, cost, times, wrong)
    return wrong


def totals(arrays):
    """Sums of at most four i8 arrays."""
    given = [*arrays, *[arrays[0][:0]] * (4 - len(arrays))]
    sums = array_module(arrays[0]).zeros(4, np.int64)
    lengths = [np.int64(len(array)) for array in given]
    launch(cuda_function(_SOURCE, "add_up"), min(max(lengths), _THREADS), (*given, *lengths, sums))
    return to_host(sums)[: len(arrays)].tolist()


def margins(indptr, indices, values, col_of_row, row_unmatched, u, v, col_slack, margin):
    """Least slack of each pair's row plus that of its column; written: col_slack (C,), margin (R,)."""
    row_slack = array_module(u).empty(len(u), u.dtype)
    duals = (row_unmatched, u, v, col_slack, row_slack)
    _launch("slacks", u, (indptr, indices, values), col_of_row, *duals)
    kernel = cuda_function(_SOURCE, "add_slacks", options=_kind(values, u))
    launch(kernel, len(u), (col_of_row, col_slack, row_slack, margin, np.int64(len(u))))


def _launch(name, result, pairs, *given):
    """Some threads a row; the type of a result is that of the duals."""
    kernel = cuda_function(_SOURCE, name, options=_kind(pairs[2], result))
    launch(kernel, _LANES * len(result), (*pairs, *given, np.int64(len(result))))


def _kind(values, dual):
    return f"-DCOST={values.dtype.str[1:]}", f"-DKEY={dual.dtype.str[1:]}"
