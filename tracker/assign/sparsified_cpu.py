"""CPU kernels of `sparsified`; serial, so that no result depends on an order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def merge(of_rows, row_count, of_cols, col_count, indptr, indices):  # pragma: no cover
    """Candidates of rows and of columns as one CSR matrix, each pair once.

    of_rows (R,k), of_cols (C,l) i4; row_count (R,), col_count (C,) i4. Written: indptr (R+1,) i8, and
    indices i4, for which there must be room.
    """
    rows, cols = len(row_count), len(col_count)
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
            indices[indptr[i] + p] = of_rows[i, p]
    place = indptr[:-1] + row_count
    for j in range(cols):
        for slot in range(col_count[j]):
            if is_new[j, slot]:
                i = of_cols[j, slot]
                indices[place[i]] = j
                place[i] += 1


@njit(nogil=True, cache=True)
def add(nearest, count, indptr, indices, edge, new_indptr, new_indices):  # pragma: no cover
    """The CSR matrix with new pairs at the end of each row.

    nearest (R,k) i4 new columns, the first count (R,) i4 of each row; indptr (R+1,) i8, indices i4. Written:
    new_indptr (R+1,) i8, new_indices, and edge (R,) i8, pairs that move.
    """
    new_indptr[0] = 0
    for i in range(len(count)):
        first, size, start = indptr[i], indptr[i + 1] - indptr[i], new_indptr[i]
        new_indices[start : start + size] = indices[first : first + size]
        new_indices[start + size : start + size + count[i]] = nearest[i, : count[i]]
        if edge[i] >= 0:
            edge[i] += start - first
        new_indptr[i + 1] = start + size + count[i]
