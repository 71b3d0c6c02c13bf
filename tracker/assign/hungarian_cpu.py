"""CPU kernels of `hungarian`, by the numbers of Date & Nagi's algorithms; serial, so threads change nothing.

Shapes: costs (n,n) of i8 or f8, `never` where a pair is forbidden; row_dual, col_dual (n,); col_of_row,
row_of_col (n,) i4, -1 where unassigned; row_covered, col_covered (n,) bool; row_before, col_before (n,) i4
predecessors, row_after, col_after (n,) i4 successors, -1 for none; tie: slacks up to it are zero.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def initial_reduction(costs, row_dual, col_dual):  # pragma: no cover
    """Algorithm 1: least cost of each row, then of what is left of each column. Written: the duals."""
    n = len(row_dual)
    for i in range(n):
        row_dual[i] = costs[i].min()
    col_dual[:] = costs[0] - row_dual[0]
    for i in range(1, n):
        for j in range(n):
            col_dual[j] = min(col_dual[j], costs[i, j] - row_dual[i])


@njit(nogil=True, cache=True)
def optimality_check(col_of_row, row_covered, col_covered, before_after):  # pragma: no cover
    """Algorithm 2: covers assigned rows, forgets all trees; returns the number of assigned rows.

    Written: row_covered, col_covered, before_after (4,n) i4: row_before, col_before, row_after, col_after.
    """
    col_covered[:] = False
    before_after[:] = -1
    count = 0
    for i in range(len(col_of_row)):
        row_covered[i] = col_of_row[i] >= 0
        count += row_covered[i]
    return count


@njit(nogil=True, cache=True)
def compress(costs, row_dual, col_dual, never, tie):  # pragma: no cover
    """Pairs without slack as CSR: indptr (n+1,) i8, indices i4."""
    n = len(row_dual)
    indptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        count = 0
        for j in range(n):
            count += costs[i, j] < never and costs[i, j] - row_dual[i] - col_dual[j] <= tie
        indptr[i + 1] = indptr[i] + count
    indices = np.empty(indptr[n], np.int32)
    for i in range(n):
        p = indptr[i]
        if p == indptr[i + 1]:
            continue
        for j in range(n):
            if costs[i, j] < never and costs[i, j] - row_dual[i] - col_dual[j] <= tie:
                indices[p] = j
                p += 1
    return indptr, indices


@njit(nogil=True, cache=True)
def forward_pass(
    indptr, indices, row_of_col, row_covered, col_covered, row_before, col_before, frontier, count, ends
):  # pragma: no cover
    """Algorithm 3: breadth-first search from `count` rows in `frontier` (n,) i4, along pairs without slack.

    Written: covers and predecessors; ends (n,) i4, the unassigned columns reached. Returns their number.
    """
    n = len(row_of_col)
    found = 0
    is_end = np.zeros(n, np.bool_)
    following = np.empty(n, np.int32)
    while count > 0:
        gathered = 0
        for k in range(count):
            i = frontier[k]
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                if col_covered[j] or row_of_col[j] == i:
                    continue
                col_before[j] = i
                new = row_of_col[j]
                if new >= 0:
                    row_before[new] = j
                    row_covered[new], col_covered[j] = False, True
                    following[gathered] = new
                    gathered += 1
                elif not is_end[j]:
                    is_end[j] = True
                    ends[found] = j
                    found += 1
        frontier[:gathered] = following[:gathered]
        count = gathered
    return found


@njit(nogil=True, cache=True)
def forward_pass_tree(
    costs,
    row_dual,
    col_dual,
    row_of_col,
    row_covered,
    col_covered,
    row_before,
    col_before,
    slack,
    frontier,
    count,
    ends,
    never,
    tie,
):  # pragma: no cover
    """Algorithm 4: the same search over the matrix itself; it keeps the least slack (n,) of every column."""
    n = len(row_of_col)
    found = 0
    is_end = np.zeros(n, np.bool_)
    following = np.empty(n, np.int32)
    while count > 0:
        gathered = 0
        for k in range(count):
            i = frontier[k]
            for j in range(n):
                if col_covered[j]:
                    continue
                if costs[i, j] < never and costs[i, j] - row_dual[i] - col_dual[j] < slack[j]:
                    slack[j] = costs[i, j] - row_dual[i] - col_dual[j]
                    col_before[j] = i
                if slack[j] > tie:
                    continue
                new = row_of_col[j]
                if new >= 0:
                    row_before[new] = j
                    row_covered[new], col_covered[j] = False, True
                    following[gathered] = new
                    gathered += 1
                elif not is_end[j]:
                    is_end[j] = True
                    ends[found] = j
                    found += 1
        frontier[:gathered] = following[:gathered]
        count = gathered
    return found


@njit(nogil=True, cache=True)
def reverse_pass(ends, found, row_before, col_before, row_after, col_after, roots):  # pragma: no cover
    """Algorithm 5: from every end back to its root; where two paths of a tree meet, the later one stays.

    Written: successors; roots (n,) i4. Returns their number.
    """
    count = 0
    for k in range(found):
        row, col = np.int32(-1), ends[k]
        while col >= 0:
            col_after[col] = row
            row = col_before[col]
            if row_before[row] < 0 and row_after[row] < 0:
                roots[count] = row
                count += 1
            row_after[row] = col
            col = row_before[row]
    return count


@njit(nogil=True, cache=True)
def augmentation_pass(roots, count, row_after, col_after, col_of_row, row_of_col):  # pragma: no cover
    """Algorithm 6: exchanges assigned and unassigned pairs along the path of every root."""
    for k in range(count):
        row = roots[k]
        while row >= 0:
            col = row_after[row]
            col_of_row[row], row_of_col[col] = col, row
            row = col_after[col]


@njit(nogil=True, cache=True)
def dual_update(costs, row_dual, col_dual, row_covered, col_covered, never):  # pragma: no cover
    """Algorithms 7 and 8: the least uncovered slack, half to each row and column; returned, or never."""
    least = never
    for i in range(len(row_dual)):
        if row_covered[i]:
            continue
        for j in range(len(col_dual)):
            if not col_covered[j] and costs[i, j] < never:
                least = min(least, costs[i, j] - row_dual[i] - col_dual[j])
    if least < never:
        _shift(row_dual, row_covered, least)
        _shift(col_dual, col_covered, least)
    return least


@njit(nogil=True, cache=True)
def _shift(dual, covered, least):  # pragma: no cover
    half = dual.dtype.type(least // 2) if dual.dtype.kind == "i" else dual.dtype.type(least / 2)
    for k in range(len(dual)):
        dual[k] += -half if covered[k] else half


@njit(nogil=True, cache=True)
def dual_update_tree(
    row_dual, col_dual, row_covered, col_covered, slack, col_before, frontier, never, tie
):  # pragma: no cover
    """Algorithm 9: the same from the least slacks. Written: frontier (n,) i4, rows that reach further now.

    Returns the number of these and the least slack, or never.
    """
    least = never
    for j in range(len(slack)):
        if not col_covered[j] and slack[j] > tie:
            least = min(least, slack[j])
    count = 0
    if least == never:
        return count, least
    _shift(row_dual, row_covered, least)
    _shift(col_dual, col_covered, least)
    active = np.zeros(len(slack), np.bool_)
    for j in range(len(slack)):
        if not col_covered[j] and tie < slack[j] < never:
            slack[j] -= least
            i = col_before[j]
            if slack[j] <= tie and not active[i]:
                active[i] = True
                frontier[count] = i
                count += 1
    return count, least
