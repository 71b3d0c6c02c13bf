"""CPU kernels of `auction`: in each round all free rows bid, then columns are awarded.

Serial. All bids of a round are computed from the same duals. The highest bid (to 21 bits) wins, and among
equal bids that of the lowest row. So the result does not depend on the order of the rows.

Shapes: n rows bid for m columns; costs (n,m), or indptr (n+1,) i8, indices (P,) i4, values (P,), of i4 or i8
with duals of i8, of f4 or f8 with duals of f8; low, scale: duals are in units of (cost - low) * scale; v (m,)
duals of columns, the negative of prices; col_of_row (n,), owner (m,) i4, -1 where free; epsilon, never and
lone numbers of the type of v.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ...compute.kernels import inner_kernel, kernel


@inner_kernel
def _word(increment, row):  # pragma: no cover
    """Rank of a bid: larger for a higher bid (to 21 bits), and among equal bids for a lower row."""
    high = np.uint64(np.float64(increment).view(np.int64)) >> np.uint64(31)
    return (high << np.uint64(32)) | np.uint64(0xFFFFFFFF - row)


@inner_kernel
def _award(free, count, target, offer, word, v, col_of_row, owner, best):  # pragma: no cover
    """The assignment kernel: each column goes to its highest bidder and gets the dual of this bid.

    The first `count` rows of free (n,) i4 have bid: target (n,) i4 is the column, offer (n,) the new dual and
    word (n,) u8 the rank of each bid. best (m,) i4 is -1 everywhere, before and after. Written: v,
    col_of_row, owner, and free with the rows of the next round. Returns their number.
    """
    for k in range(count):
        i = free[k]
        rival = best[target[i]]
        if rival < 0 or word[i] > word[rival]:
            best[target[i]] = i
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


@inner_kernel
def _look(row, low, scale, v, begin, end, first, second, at):  # pragma: no cover
    """Least and second least reduced cost of a row from `begin` to `end`, and the position of the least."""
    for j in range(begin, end):
        reduced = (v.dtype.type(row[j]) - low) * scale - v[j]
        if reduced < second:
            if reduced < first:
                second, first, at = first, reduced, j
            else:
                second = reduced
    return first, second, at


@kernel
def dense_rounds(costs, low, scale, v, col_of_row, owner, epsilon, never, lone, rounds):  # pragma: no cover
    """Rounds of bids until each row has a column within epsilon of its best, or for at most `rounds`.

    lone: the increment of a bid by a row with a single column. Each row starts its search at the column of
    its own index, so that equal rows bid on different columns. Written: v, col_of_row, owner. Returns the
    numbers of free rows, rounds and bids.
    """
    n, m = costs.shape
    free, count = _free(col_of_row)
    target, offer, word = np.empty(n, np.int32), np.empty(n, v.dtype), np.empty(n, np.uint64)
    best = np.full(m, -1, np.int32)
    done, bids = 0, 0
    while count > 0 and done < rounds:
        for k in range(count):
            i = free[k]
            begin = i * m // n
            first, second, at = _look(costs[i], low, scale, v, begin, m, never, never, 0)
            first, second, at = _look(costs[i], low, scale, v, 0, begin, first, second, at)
            increment = ((second - first) if second < never else lone) + epsilon
            target[i], offer[i], word[i] = at, v[at] - increment, _word(increment, i)
        bids += count
        done += 1
        count = _award(free, count, target, offer, word, v, col_of_row, owner, best)
    return count, done, bids


@inner_kernel
def _free(col_of_row):  # pragma: no cover
    """(n,) i4 rows, starting with the free ones, and the number of free rows."""
    free, count = np.empty(len(col_of_row), np.int32), 0
    for i in range(len(col_of_row)):
        if col_of_row[i] < 0:
            free[count] = i
            count += 1
    return free, count


@kernel
def sparse_rounds(
    indptr, indices, values, low, scale, v, col_of_row, owner, epsilon, never, lone, rounds
):  # pragma: no cover
    """`dense_rounds` for pairs that are stored row by row."""
    n, m = len(col_of_row), len(v)
    free, count = _free(col_of_row)
    target, offer, word = np.empty(n, np.int32), np.empty(n, v.dtype), np.empty(n, np.uint64)
    best = np.full(m, -1, np.int32)
    done, bids = 0, 0
    while count > 0 and done < rounds:
        for k in range(count):
            i = free[k]
            start, stop = indptr[i], indptr[i + 1]
            begin = start + i * (stop - start) // n
            first, second, at = never, never, 0
            for part in range(2):
                for p in range(begin if part == 0 else start, stop if part == 0 else begin):
                    reduced = (v.dtype.type(values[p]) - low) * scale - v[indices[p]]
                    if reduced < second:
                        if reduced < first:
                            second, first, at = first, reduced, indices[p]
                        else:
                            second = reduced
            increment = ((second - first) if second < never else lone) + epsilon
            target[i], offer[i], word[i] = at, v[at] - increment, _word(increment, i)
        bids += count
        done += 1
        count = _award(free, count, target, offer, word, v, col_of_row, owner, best)
    return count, done, bids
