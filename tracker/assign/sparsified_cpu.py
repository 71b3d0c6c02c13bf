"""CPU kernels of `sparsified`; serial, so that no result depends on an order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def merge(costs, of_rows, row_count, of_cols, col_count, indptr, indices, values):  # pragma: no cover
    """Candidates of rows and of columns as one CSR matrix, each pair once.

    costs (R,C); of_rows (R,k), of_cols (C,l) i4; row_count (R,), col_count (C,) i4. Written: indptr (R+1,)
    i8, and indices i4 and values, for which there must be room.
    """
    rows, cols = costs.shape
    is_new = np.zeros(of_cols.shape, np.bool_)
    new_of_row = np.zeros(rows, np.int64)
    for j in range(cols):
        for slot in range(col_count[j]):
            i = of_cols[j, slot]
            known = False
            for p in range(row_count[i]):
                known |= of_rows[i, p] == j
            is_new[j, slot] = not known
            new_of_row[i] += not known
    indptr[0] = 0
    for i in range(rows):
        indptr[i + 1] = indptr[i] + row_count[i] + new_of_row[i]
        for p in range(row_count[i]):
            j = of_rows[i, p]
            indices[indptr[i] + p], values[indptr[i] + p] = j, costs[i, j]
    place = indptr[:-1] + row_count
    for j in range(cols):
        for slot in range(col_count[j]):
            if is_new[j, slot]:
                i = of_cols[j, slot]
                indices[place[i]], values[place[i]] = j, costs[i, j]
                place[i] += 1


@njit(nogil=True, cache=True)
def add(
    costs, nearest, count, indptr, indices, values, edge, new_indptr, new_indices, new_values
):  # pragma: no cover
    """The CSR matrix with new pairs at the end of each row.

    costs (R,C); nearest (R,k) i4 new columns, the first count (R,) i4 of each row; indptr (R+1,) i8, indices,
    values. Written: new_indptr (R+1,) i8, new_indices, new_values, and edge (R,) i8, pairs that move.
    """
    new_indptr[0] = 0
    for i in range(len(count)):
        first, size, start = indptr[i], indptr[i + 1] - indptr[i], new_indptr[i]
        new_indices[start : start + size] = indices[first : first + size]
        new_values[start : start + size] = values[first : first + size]
        if edge[i] >= 0:
            edge[i] += start - first
        for p in range(count[i]):
            j = nearest[i, p]
            new_indices[start + size + p], new_values[start + size + p] = j, costs[i, j]
        new_indptr[i + 1] = start + size + count[i]
