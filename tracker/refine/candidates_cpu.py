"""CPU kernels of candidates: find close pairs, merge them row by row, and select some of them.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit

_ONE, _TWO = np.uint64(1), np.uint64(2)


@njit(nogil=True, cache=True)
def _cell_of(point, i, low, inverse_edge, size):  # pragma: no cover
    """Cell of a point, among size[0] x size[1] x size[2]; points outside belong to cells at the border."""
    cell = 0
    for axis in range(3):
        c = np.int64((point[i, axis] - low[axis]) * inverse_edge[axis])
        # One empty cell at either end, so that every cell has neighbours.
        cell = cell * size[axis] + min(max(c, 0), size[axis] - 3) + 1
    return cell


@njit(nogil=True, cache=True)
def _sort_cells(point, begin, low, inverse_edge, size, stop, cell, order, sorted_point):  # pragma: no cover
    """Sort points by cell; points of one cell keep their order.

    point (N, 3) f8; begin: the first; low, inverse_edge (3,) f8, size (3,) i8 as in list_pairs.
    Written: stop (cells+2,) u4, points of cell c stand at stop[c] to stop[c+1]; order (C,) u4 which point
    each is, sorted_point (C, 3) f8. Room: cell (C,) u4.
    """
    stop[:] = 0
    for n in range(len(cell)):
        cell[n] = _cell_of(point, begin + n, low, inverse_edge, size)
        stop[cell[n] + 2] += 1
    for c in range(len(stop) - 1):
        stop[c + 1] += stop[c]
    for n in range(len(cell)):
        to = stop[cell[n] + 1]
        stop[cell[n] + 1] += 1
        order[to] = begin + n
        for axis in range(3):
            sorted_point[to, axis] = point[begin + n, axis]


@njit(nogil=True, cache=True)
def list_pairs(
    row,
    begun,
    ended,
    row_point,
    row_start,
    col_point,
    col_start,
    ahead,
    low,
    inverse_edge,
    size,
    indptr,
    indices,
):  # pragma: no cover
    """List the pairs at distances up to 1 of rows in blocks begun..ended-1 and columns `ahead` blocks on.

    row: the first that is not listed yet; row_point (R, 3), col_point (C, 3) f8; row_start, col_start (B+1,)
    i8; low, inverse_edge (3,) f8, size (3,) i8: cells at least 1 wide. Written: indptr (R+1,) i8 behind row,
    indices (P,) i4 columns. Returns the row at which the room might end; row_start[ended] if it does not.
    """
    most = 0
    for b in range(max(begun, -ahead), min(ended, len(col_start) - 1 - ahead)):
        most = max(most, col_start[b + ahead + 1] - col_start[b + ahead])
    stop, cell = np.empty(size[0] * size[1] * size[2] + 2, np.uint32), np.empty(most, np.uint32)
    order, point = np.empty(most, np.uint32), np.empty((most, 3))
    for b in range(begun, ended):
        first, last = max(row, row_start[b]), row_start[b + 1]
        t = min(max(b + ahead, 0), len(col_start) - 2)
        count = col_start[t + 1] - col_start[t] if t == b + ahead else 0
        if first >= last or count == 0:
            indptr[first + 1 : last + 1] = indptr[first]
            continue
        _sort_cells(col_point, col_start[t], low, inverse_edge, size, stop, cell[:count], order, point)
        for i in range(first, last):
            to = np.uint64(indptr[i])
            if to + np.uint64(count) >= len(indices):
                return i
            z, y, x = row_point[i, 0], row_point[i, 1], row_point[i, 2]
            middle = _cell_of(row_point, i, low, inverse_edge, size)
            for p in range(-1, 2):
                for q in range(-1, 2):
                    c = np.uint64(middle + (p * size[1] + q) * size[2])
                    for n in range(np.uint64(stop[c - _ONE]), np.uint64(stop[c + _TWO])):
                        dz, dy, dx = point[n, 0] - z, point[n, 1] - y, point[n, 2] - x
                        # Written in any case: what is near, no processor can guess.
                        indices[to] = order[n]
                        to += np.uint64(dz * dz + dy * dy + dx * dx <= 1.0)
            indptr[i + 1] = to
    return row_start[ended]


@njit(nogil=True, cache=True)
def place_rows(rows, cols, indptr, indices, at, placed):  # pragma: no cover
    """Write the pairs of each row at its current output position, and advance this.

    rows (R,) i8 row of each row of the pairs; cols (C,) i8 likewise; indptr (R+1,) i8, indices (P,) i4.
    Written: placed (Q,) i4 and at (N,) i8, where the next pair of each row goes.
    """
    for i in range(len(rows)):
        to = at[rows[i]]
        for e in range(indptr[i], indptr[i + 1]):
            placed[to] = cols[indices[e]]
            to += 1
        at[rows[i]] = to


@njit(nogil=True, cache=True)
def take_above(indptr, indices, gain, least, kept_indptr, col, place, kept_gain):  # pragma: no cover
    """Select the pairs with gain > least: indptr (R+1,) i8, indices (P,) i4, gain (P,) f8.

    Written: kept_indptr (R+1,) i8; of those kept col (P+1,) i4, place (P+1,) i8 among the pairs and
    kept_gain (P+1,) f8, and behind them no matter what.
    """
    to = np.uint64(0)
    kept_indptr[0] = 0
    for i in range(len(indptr) - 1):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            # Written in any case: which pairs are kept, no processor can guess.
            col[to], place[to], kept_gain[to] = indices[e], e, gain[e]
            to += np.uint64(gain[e] > least)
        kept_indptr[i + 1] = to


@njit(nogil=True, cache=True)
def add_up(indptr, indices, weight, sums):  # pragma: no cover
    """Sum the weights of the pairs of each row, and of each column.

    indptr (N+1,) i8, indices (P,) i4; weight (P,) f8. Added to: sums (2, N) f8.
    """
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            sums[0, i] += weight[e]
            sums[1, indices[e]] += weight[e]


@njit(nogil=True, cache=True)
def places(indptr, indices, follower, place):  # pragma: no cover
    """Index of the pair of each row with its follower, -1 for none.

    indptr (R+1,) i8, indices (P,) i4; follower (R,) i8 or -1. Written: place (R,) i8.
    """
    for i in range(len(follower)):
        place[i] = -1
        if follower[i] < 0:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] == follower[i]:
                place[i] = e
                break


@njit(nogil=True, cache=True)
def looked_up(row, col, known_row, known_col, known, found):  # pragma: no cover
    """Look up values of pairs; both lists are sorted alike, and missing pairs get 0.

    row, col (K,) i4; known_row, known_col (Q,) i4; known (Q,) f8 or f4. Written: found (K,) alike.
    """
    begin = 0
    for k in range(len(row)):
        while begin < len(known) and known_row[begin] < row[k]:
            begin += 1
        at = begin
        while at < len(known) and known_row[at] == row[k] and known_col[at] != col[k]:
            at += 1
        there = at < len(known) and known_row[at] == row[k]
        found[k] = known[at] if there else 0.0
        if there:
            begin = at + 1
