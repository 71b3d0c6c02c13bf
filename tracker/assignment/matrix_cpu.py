"""CPU kernels of `matrix`.

Each call works on a block of rows or columns, so several calls may run in threads. No result depends on the
order of threads or on the division into blocks.

Shapes: costs (R,C) of i4, i8, f4 or f8, C-contiguous; duals of one type that holds every c_ij - v_j:
i4 or i8 for integer costs, f8 for real ones.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..compute.kernels import inner_kernel, kernel

STRIDE = 64
"""Number of entries compared at once without a branch; few such strides contain a relevant entry."""


@inner_kernel(fastmath=frozenset({"nnan", "nsz"}))
def least_above(row, shift):  # pragma: no cover
    """min_j (row_j - shift_j): a loop that the compiler can vectorise."""
    least = shift.dtype.type(row[0] - shift[0])
    for j in range(len(row)):
        reduced = shift.dtype.type(row[j] - shift[j])
        least = reduced if reduced < least else least  # noqa: FURB136  (min() is slower)
    return least


@kernel
def extremes(costs, low, high, first, last):  # pragma: no cover
    """Least and largest cost of each row in a block of integers. Written: low, high (R,)."""
    for i in range(first, last):
        row = costs[i]
        least, most = row[0], row[0]
        for j in range(len(row)):
            least = min(least, row[j])
            most = max(most, row[j])
        low[i], high[i] = least, most


@kernel
def lower_to_slack(costs, v, u, first, last):  # pragma: no cover
    """u_i := min(u_i, min_j (c_ij - v_j)) for the rows of a block. v (C,); written: u (R,)."""
    for i in range(first, last):
        u[i] = min(u[i], least_above(costs[i], v))


@inner_kernel
def _insert(keys, places, count, key, place):  # pragma: no cover
    """Insert an entry into a sorted list of `count` entries; a full list loses its last entry."""
    at = min(count, len(keys) - 1)
    while at > 0 and keys[at - 1] > key:
        keys[at], places[at] = keys[at - 1], places[at - 1]
        at -= 1
    keys[at], places[at] = key, place


@kernel
def nearest_of_rows(costs, v, limit, row, of, nearest, count, first, last):  # pragma: no cover
    """For each row in a block, the columns with the least c_ij - v_j below a limit.

    v (C,); limit (R,); row, of: number of the first row, and number of rows, in the larger matrix. Written:
    nearest (R,k) i4, columns in ascending order of c_ij - v_j; count (R,) i4. Ties go to the columns that
    follow the index of the row, so that rows with equal costs choose different columns.
    """
    cols = costs.shape[1]
    room = nearest.shape[1]
    keys = np.empty(room, v.dtype)
    for i in range(first, last):
        cost, highest, found = costs[i], limit[i], np.int64(0)
        turn = (row + i) * cols // of
        for part in range(2):
            begin, end = (turn, cols) if part == 0 else (0, turn)
            for start in range(begin, end, STRIDE):
                stop = min(start + STRIDE, end)
                if least_above(cost[start:stop], v[start:stop]) < highest:
                    for j in range(start, stop):
                        key = v.dtype.type(cost[j] - v[j])
                        if key < highest:
                            _insert(keys, nearest[i], found, key, j)
                            found = min(found + 1, room)
                            if found == room:
                                highest = keys[room - 1]
        count[i] = found


@kernel
def nearest_of_cols(costs, u, limit, keys, nearest, count, row, first, last):  # pragma: no cover
    """For each column in a block, the rows with the least c_ij - u_i below a limit.

    u (R,); limit (C,), lowered here to the largest key of a full list; row: number of the first row. Written:
    keys (C,k), the values c_ij - u_i in ascending order; nearest (C,k) i4, their rows; count (C,) i4, zero
    before the first block of rows.
    """
    room = nearest.shape[1]
    for i in range(costs.shape[0]):
        cost, base = costs[i], u[i]
        for start in range(first, last, STRIDE):
            stop = min(start + STRIDE, last)
            if least_above(cost[start:stop], limit[start:stop]) < base:
                for j in range(start, stop):
                    key = u.dtype.type(cost[j] - base)
                    if key < limit[j]:
                        _insert(keys[j], nearest[j], np.int64(count[j]), key, row + i)
                        count[j] = min(count[j] + 1, room)
                        if count[j] == room:
                            limit[j] = keys[j, room - 1]


@kernel
def augment(costs, never, v, owner, col_of_row, free):  # pragma: no cover
    """Shortest augmenting path over all pairs from each free row in turn (Dijkstra's algorithm).

    All rows must be matched, and matched pairs must be tight. free (F,) i4. Written: v (C,), owner (C,) i4,
    col_of_row (R,) i4. Returns the number of columns scanned and the first row without a path, or -1.
    """
    cols = len(v)
    dist, from_row = np.empty(cols, v.dtype), np.empty(cols, np.int32)
    # Columns that are not scanned yet are at the start of `order`.
    order = np.arange(cols)
    total = 0
    for start in free:
        dist[:] = never
        i, base, left, end = start, v.dtype.type(0), cols, -1
        while end < 0:
            nearest, at = never, -1
            for k in range(left):
                j = order[k]
                d = base + costs[i, j] - v[j]
                if d < dist[j]:
                    dist[j], from_row[j] = d, i
                # The path ends at a free column if one is among the nearest.
                if dist[j] < nearest or (dist[j] == nearest and at >= 0 and owner[j] < 0):
                    nearest, at = dist[j], k
            if at < 0:
                return total, start
            j = order[at]
            if owner[j] < 0:
                end = j
                break
            left -= 1
            order[at], order[left] = order[left], j
            i = owner[j]
            base = nearest - (costs[i, j] - v[j])
        for k in range(left, cols):
            v[order[k]] += dist[order[k]] - dist[end]
        total += cols - left
        i = -1
        while i != start:
            i = from_row[end]
            owner[end] = i
            col_of_row[i], end = end, col_of_row[i]
    return total, -1
