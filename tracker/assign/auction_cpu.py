"""CPU kernels of `auction`: bids of all free rows at once, then awards, round after round.

Serial; within a round bids are read from the same duals and the highest wins, of equal ones that of the
lowest row, so no result depends on the order in which rows are visited.

Shapes: n rows and n columns; costs (n,n), or indptr (n+1,) i8, indices (P,) i4, values (P,), of i8 or f8;
v (n,) duals of columns, the negative of prices; col_of_row, owner (n,) i4, -1 where free; epsilon and never
numbers of the same type.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _award(free, count, target, offer, v, col_of_row, owner, best):  # pragma: no cover
    """The assignment kernel: each column goes to its highest bidder, who sets its dual.

    free (n,) i4, the first `count` rows bade: target (n,) i4, offer (n,) the dual that each would set; best
    (n,) i4, -1 everywhere and so again at the end. Written: v, col_of_row, owner, and free: the rows of the
    next round. Returns how many these are.
    """
    for k in range(count):
        i = free[k]
        j = target[i]
        rival = best[j]
        if rival < 0 or offer[i] < offer[rival] or (offer[i] == offer[rival] and i < rival):
            best[j] = i
    left = 0
    for k in range(count):
        i = free[k]
        j = target[i]
        if best[j] != i:
            free[left] = i
            left += 1
            continue
        outbid = owner[j]
        best[j] = -1
        owner[j], col_of_row[i], v[j] = i, j, offer[i]
        if outbid >= 0:
            col_of_row[outbid] = -1
            free[left] = outbid
            left += 1
    return left


@njit(nogil=True, cache=True)
def dense_rounds(costs, v, col_of_row, owner, epsilon, never, lone, rounds):  # pragma: no cover
    """Rounds until every row holds a column within epsilon of its best, or `rounds` are over.

    lone: by how much a row with one column outbids. Written: v, col_of_row, owner. Returns the number of free
    rows and of rounds and bids done.
    """
    n = len(v)
    free = np.nonzero(col_of_row < 0)[0].astype(np.int32)
    free = np.append(free, np.full(n - len(free), -1, np.int32))
    count = (col_of_row < 0).sum()
    target, offer = np.empty(n, np.int32), np.empty(n, v.dtype)
    best = np.full(n, -1, np.int32)
    done, bids = 0, 0
    while count > 0 and done < rounds:
        for k in range(count):
            i = free[k]
            row = costs[i]
            first, second, at = never, never, 0
            for j in range(n):
                reduced = row[j] - v[j]
                if reduced < second:
                    if reduced < first:
                        second, first, at = first, reduced, j
                    else:
                        second = reduced
            target[i] = at
            offer[i] = v[at] - ((second - first) if second < never else lone) - epsilon
        bids += count
        done += 1
        count = _award(free, count, target, offer, v, col_of_row, owner, best)
    return count, done, bids


@njit(nogil=True, cache=True)
def sparse_rounds(
    indptr, indices, values, v, col_of_row, owner, epsilon, never, lone, rounds
):  # pragma: no cover
    """`dense_rounds` for pairs that are stored row by row."""
    n = len(v)
    free = np.nonzero(col_of_row < 0)[0].astype(np.int32)
    free = np.append(free, np.full(n - len(free), -1, np.int32))
    count = (col_of_row < 0).sum()
    target, offer = np.empty(n, np.int32), np.empty(n, v.dtype)
    best = np.full(n, -1, np.int32)
    done, bids = 0, 0
    while count > 0 and done < rounds:
        for k in range(count):
            i = free[k]
            first, second, at = never, never, 0
            for p in range(indptr[i], indptr[i + 1]):
                reduced = values[p] - v[indices[p]]
                if reduced < second:
                    if reduced < first:
                        second, first, at = first, reduced, indices[p]
                    else:
                        second = reduced
            target[i] = at
            offer[i] = v[at] - ((second - first) if second < never else lone) - epsilon
        bids += count
        done += 1
        count = _award(free, count, target, offer, v, col_of_row, owner, best)
    return count, done, bids
