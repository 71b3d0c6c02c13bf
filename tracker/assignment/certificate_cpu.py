"""CPU kernels of the certificate. All are serial, so no result depends on threads.

All take sparse costs: indptr (R+1,) i8, indices (P,) i4, values (P,) of any real type; duals are
i8 for integer costs and f8 for real ones.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..compute.kernels import kernel


@kernel
def first_repeated_pair(indptr, indices, cols):  # pragma: no cover
    """First row with a duplicate column, or -1."""
    seen_in = np.full(cols, -1, np.int32)
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            if seen_in[indices[p]] == i:
                return i
            seen_in[indices[p]] = i
    return -1


@kernel
def lower_to_slack(indptr, indices, values, v, u):  # pragma: no cover
    """u_i := min(u_i, min_j (c_ij - v_j)). v (C,); written: u (R,)."""
    for i in range(len(indptr) - 1):
        least = u[i]
        for p in range(indptr[i], indptr[i + 1]):
            least = min(least, values[p] - v[indices[p]])
        u[i] = least


@kernel
def look_up_pairs(indptr, indices, values, col_of_row, cost, times):  # pragma: no cover
    """(2,) i8: numbers of pairs that do not exist and of columns that are matched twice.

    col_of_row (R,) i4. Written: cost (R,), where matched; times (C,) i4, initially zero: how often each
    column is matched.
    """
    missing, repeated = 0, 0
    for i in range(len(indptr) - 1):
        if col_of_row[i] < 0:
            continue
        repeated += times[col_of_row[i]] > 0
        times[col_of_row[i]] += 1
        found = False
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] == col_of_row[i]:
                cost[i] = values[p]
                found = True
                break
        missing += not found
    return np.array([missing, repeated])


def totals(arrays):
    """Sums of integer arrays."""
    return [int(array.sum(dtype=np.int64)) for array in arrays]


@kernel
def margins(indptr, indices, values, col_of_row, row_unmatched, u, v, col_slack, margin):  # pragma: no cover
    """Least slack of the row of each pair plus that of its column, both without the pair itself.

    col_of_row (R,) i4; row_unmatched, u (R,); v, col_slack (C,), col_slack starting at
    col_unmatched - v and lowered here; written: margin (R,), zero where unmatched.
    """
    for i in range(len(indptr) - 1):
        row_slack = row_unmatched[i] - u[i]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if j != col_of_row[i]:
                slack = values[p] - u[i] - v[j]
                row_slack = min(row_slack, slack)
                col_slack[j] = min(col_slack[j], slack)
        margin[i] = row_slack
    for i in range(len(indptr) - 1):
        if col_of_row[i] >= 0:
            margin[i] += col_slack[col_of_row[i]]
        else:
            margin[i] = 0
