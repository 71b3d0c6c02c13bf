"""Perfect matchings of square sparse problems on the CPU: candidates, bids, shortest augmenting paths.

Serial, so no result depends on threads.

Shapes: indptr (R+1,) i8, indices (P,) i4, values (P,) i4, i8 or f8; v (R,) i8 for integer values and f8 for
real ones; owner (R,) i4: row of each column or -1; edge (R,) i8: pair of each row or -1.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ...compute.kernels import kernel
from .. import bid_and_augment_cpu
from ..certificate_cpu import lower_to_slack
from ..problem import forbidden

__all__ = ["FAR", "PATIENCE", "PATIENCE_WITH_POINTS", "added", "augment", "bid", "lower_to_slack", "merged"]

PATIENCE = PATIENCE_WITH_POINTS = 0
"""Number of passes without a perfect matching of candidates after which a search of all pairs is faster."""
FAR = 0
"""Number of far candidates per row, for points."""


def merged(of_rows, row_count, of_cols, col_count):
    """Merge candidates of rows and of columns into CSR without duplicates: indptr, rows, indices."""
    indices = np.empty(int(row_count.sum()) + int(col_count.sum()), np.int32)
    indptr = np.empty(len(row_count) + 1, np.int64)
    _merge(of_rows, row_count, of_cols, col_count, indptr, indices)
    return indptr, _rows(indptr), indices[: indptr[-1]]


def added(nearest, count, indptr, rows, indices, edge):  # noqa: ARG001
    """Add new candidates; written: edge, because pair numbers change."""
    larger = np.empty_like(indptr), np.empty(len(indices) + int(count.sum()), np.int32)
    _add(nearest, count, indptr, indices, edge, *larger)
    return larger[0], _rows(larger[0]), larger[1][: larger[0][-1]]


def _rows(indptr):
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


@kernel
def _merge(of_rows, row_count, of_cols, col_count, indptr, indices):  # pragma: no cover
    """Merge candidates of rows and of columns into one CSR matrix without duplicates.

    of_rows (R,k), of_cols (C,l) i4; row_count (R,), col_count (C,) i4. Written: indptr (R+1,) i8, and indices
    i4, which must be large enough.
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


@kernel
def _add(nearest, count, indptr, indices, edge, new_indptr, new_indices):  # pragma: no cover
    """Append new pairs to each row of a CSR matrix; existing pairs are not duplicated.

    nearest (R,k) i4: columns, of which the first count (R,) i4 in each row are valid; indptr (R+1,) i8,
    indices i4. Written: new_indptr (R+1,) i8, new_indices, and edge (R,) i8, because pair numbers change.
    """
    new_indptr[0] = 0
    for i in range(len(count)):
        first, stop, start = indptr[i], indptr[i + 1], new_indptr[i]
        end = start + stop - first
        for p in range(stop - first):  # an array that is assigned to a slice takes seconds to compile
            new_indices[start + p] = indices[first + p]
        for k in range(count[i]):
            known = False
            for p in range(first, stop):
                known |= indices[p] == nearest[i, k]
            if not known:
                new_indices[end] = nearest[i, k]
                end += 1
        if edge[i] >= 0:
            edge[i] += start - first
        new_indptr[i + 1] = end


@kernel
def bid(indptr, indices, values, v, owner, edge, bound, epsilon, rounds, few):  # pragma: no cover
    """Rounds of bids until at most `few` rows are free; returns the number of bids.

    Each free row bids on its best column so much that this becomes epsilon worse than the second-best column.
    A row that is outbid bids in the next round. A row stops bidding if its best column costs more than bound
    (R,), because better pairs may be missing; if it has a single pair; or, without epsilon, if its two best
    columns tie. Written: v, owner, edge.
    """
    free = np.nonzero(edge < 0)[0]
    left, bids = len(free), 0
    for _ in range(rounds):
        if left <= few:
            break
        count, left = left, 0
        for s in range(count):
            i = free[s]
            best, second = v.dtype.type(0), v.dtype.type(0)
            best_pair, second_pair = np.int64(-1), np.int64(-1)
            for p in range(indptr[i], indptr[i + 1]):
                reduced = values[p] - v[indices[p]]
                if best_pair < 0 or reduced < best:
                    second, second_pair = best, best_pair
                    best, best_pair = reduced, p
                elif second_pair < 0 or reduced < second:
                    second, second_pair = reduced, p
            if second_pair < 0 or best > bound[i]:
                continue
            j = indices[best_pair]
            if epsilon == 0 and best == second and owner[j] >= 0:
                best_pair = second_pair
                j = indices[best_pair]
                if owner[j] >= 0:
                    continue
            bids += 1
            v[j] -= second - best + epsilon
            outbid = owner[j]
            owner[j] = i
            edge[i] = best_pair
            if outbid >= 0:
                edge[outbid] = -1
                free[left] = outbid
                left += 1
    return bids


def augment(indptr, indices, values, v, owner, edge, jump):
    """Shortest augmenting paths from all free rows; returns counters, and a row without a path, or -1.

    If a row has no path, the prices of all columns that it can reach rise by `jump`, so that rows choose
    other columns. With a jump of 0, the search ends at the first such row. Written: v, owner, edge.
    """
    never = forbidden(v.dtype)
    unmatched = np.full(len(v), never)
    free = np.nonzero(edge < 0)[0].astype(np.int32)
    without, scanned = [], 0
    while len(free):
        more, stuck = bid_and_augment_cpu.augment(
            indptr, indices, values, unmatched, never, v, owner, edge, free
        )
        scanned += more
        if stuck < 0:
            break
        without.append(stuck)
        if not jump:
            break
        free = free[np.nonzero(free == stuck)[0][0] + 1 :]
    if without:
        v[_reachable(indptr, indices, owner, np.array(without, np.int32))] -= jump
    return {"scanned": scanned}, without[0] if without else -1


@kernel
def _reachable(indptr, indices, owner, rows):  # pragma: no cover
    """(R,) bool: whether each column is on an alternating path from the given rows."""
    is_reached = np.zeros(len(owner), np.bool_)
    stack = np.empty(len(owner) + len(rows), np.int32)
    for k in range(len(rows)):
        stack[k] = rows[k]
    height = len(rows)
    while height:
        height -= 1
        i = stack[height]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if not is_reached[j]:
                is_reached[j] = True
                if owner[j] >= 0:
                    stack[height] = owner[j]
                    height += 1
    return is_reached
