"""CPU kernels of `bid_and_augment`.

Serial and without the GIL; the result does not depend on threads. If a problem consists of separate blocks,
each block gets the same answer as if it were solved alone.

Shapes: indptr (R+1,) i8, indices (P,) i4, values (P,) i4, i8 or f8; row_unmatched (R,) and v (C,)
are i8 for integer values and f8 for real ones; never: unmatched cost of a row that must be matched; owner
(C,) i4: row of each column or -1; edge (R,) i8: pair of each row or -1.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..compute.kernels import inner_kernel, kernel
from ..compute.timing import lap


def solve(indptr, indices, values, row_unmatched, col_unmatched, never, budget):
    """Bids, then shortest augmenting paths.

    row_unmatched (R,), col_unmatched (C,) have the dtype of the duals; budget: bids in a chain. Returns the
    first row that could not be matched, or -1, and the content of an Answer.
    """
    v = col_unmatched.copy()
    owner, edge = np.full(len(v), -1, np.int32), np.full(len(row_unmatched), -1, np.int64)
    free = np.empty(len(edge), np.int32)
    pairs = (indptr, indices, values, row_unmatched, never)
    left_over, bids = bid(*pairs, v, owner, edge, budget, free)
    lap("bids")
    # Rows are in spatial order, so each search finds data of the previous one in the cache.
    scanned, stuck = augment(*pairs, v, owner, edge, np.sort(free[:left_over]))
    lap("paths")
    return stuck, columns_of(edge, indices), v, {"bids": bids, "paths": left_over, "scanned": scanned}


def columns_of(edge, indices):
    """(R,) i4 column of each row, from its pair; -1 if it has none."""
    col_of_row = np.full(len(edge), -1, np.int32)
    matched = edge >= 0
    col_of_row[matched] = indices[edge[matched]]
    return col_of_row


@kernel
def bid(indptr, indices, values, row_unmatched, never, v, owner, edge, budget, free):  # pragma: no cover
    """Bids without epsilon, row by row; a row that is outbid bids next, up to `budget` bids per chain.

    A bid lowers the column's dual v (raises its price) by the difference between the second-best and best
    choice of the row, where staying unmatched is one choice. So matched pairs are always exactly tight.
    Written: v, owner, edge, and free (R,) i4 with the rows left for `augment`. Returns their number and the
    number of bids.
    """
    left_over, bids = 0, 0
    for first in range(len(indptr) - 1):
        i = first
        for turn in range(budget + 1):
            best, second = row_unmatched[i], row_unmatched[i]
            best_pair, second_pair = np.int64(-1), np.int64(-1)
            for p in range(indptr[i], indptr[i + 1]):
                reduced = values[p] - v[indices[p]]
                if reduced < best:
                    second, second_pair = best, best_pair
                    best, best_pair = reduced, p
                elif reduced < second:
                    second, second_pair = reduced, p
            if best_pair < 0 and best < never:
                break  # staying unmatched is best and remains so, because prices only rise
            # Without a second choice the bid has no limit; leave the row to an augmenting path.
            if turn == budget or second >= never:
                free[left_over] = i
                left_over += 1
                break
            j = indices[best_pair]
            if best == second and owner[j] >= 0:
                j = indices[second_pair]
                best_pair = second_pair
                if owner[j] >= 0:  # a tie, which raises no price, could cycle forever
                    free[left_over] = i
                    left_over += 1
                    break
            bids += 1
            v[j] -= second - best
            outbid = owner[j]
            owner[j] = i
            edge[i] = best_pair
            if outbid < 0:
                break
            edge[outbid] = -1
            i = outbid
    return left_over, bids


@inner_kernel
def _push(heap_dist, heap_col, count, dist, col):  # pragma: no cover
    """Add an entry to a binary heap of `count` entries."""
    child = count
    while child > 0:
        parent = (child - 1) >> 1
        if heap_dist[parent] <= dist:
            break
        heap_dist[child] = heap_dist[parent]
        heap_col[child] = heap_col[parent]
        child = parent
    heap_dist[child] = dist
    heap_col[child] = col


@inner_kernel
def _remove_first(heap_dist, heap_col, count):  # pragma: no cover
    """Remove the least entry from a binary heap of `count` entries."""
    last = count - 1
    dist, col = heap_dist[last], heap_col[last]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= last:
            break
        if child + 1 < last and heap_dist[child + 1] < heap_dist[child]:
            child += 1
        if heap_dist[child] >= dist:
            break
        heap_dist[parent] = heap_dist[child]
        heap_col[parent] = heap_col[child]
        parent = child
    heap_dist[parent] = dist
    heap_col[parent] = col


@inner_kernel
def _doubled(array, used, needed):  # pragma: no cover
    """The array with space for `needed` entries; the first `used` are kept."""
    larger = np.empty(max(2 * len(array), needed), array.dtype)
    for k in range(used):  # an array that is assigned to a slice takes seconds to compile
        larger[k] = array[k]
    return larger


@kernel
def augment(indptr, indices, values, row_unmatched, never, v, owner, edge, free):  # pragma: no cover
    """Shortest augmenting path from every free row in turn (Dijkstra on reduced costs).

    A path may end at a free column, or at a row that becomes unmatched. The best `end` so far bounds the
    search. free (F,) i4. Written: v, owner, edge. Returns the number of columns scanned and the first row
    that could not be matched, or -1.
    """
    cols = len(v)
    dist = np.empty(cols, v.dtype)
    # Marks: 2f means reached in search f, 2f + 1 scanned in search f; smaller marks are outdated.
    mark = np.full(cols, -1, np.int64)
    from_pair = np.empty(cols, np.int64)
    from_row = np.empty(cols, np.int32)
    heap_dist, heap_col = np.empty(1024, v.dtype), np.empty(1024, np.int32)
    scanned = np.empty(1024, np.int32)
    total = 0
    # A literal is a type of its own, for which helpers would be compiled again.
    for f in range(len(free)):
        open_mark, closed_mark = 2 * f, 2 * f + 1
        start = free[f]
        end_dist = row_unmatched[start]
        end_col, end_is_row = np.int32(-1), np.bool_(True)
        i, base = start, v.dtype.type(0)
        in_heap, in_tree = np.int64(0), np.int64(0)
        while True:
            if in_heap + indptr[i + 1] - indptr[i] > len(heap_dist):
                heap_col = _doubled(heap_col, in_heap, in_heap + indptr[i + 1] - indptr[i])
                heap_dist = _doubled(heap_dist, in_heap, in_heap + indptr[i + 1] - indptr[i])
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                d = base + values[p] - v[j]
                if d < end_dist and (mark[j] < open_mark or (mark[j] == open_mark and d < dist[j])):
                    mark[j], dist[j] = open_mark, d
                    from_pair[j], from_row[j] = p, i
                    if owner[j] < 0:
                        end_dist, end_col, end_is_row = d, j, np.bool_(False)
                    else:
                        _push(heap_dist, heap_col, in_heap, d, j)
                        in_heap += 1
            j = np.int32(-1)
            while in_heap > 0 and j < 0:
                d, nearest = heap_dist[0], heap_col[0]
                _remove_first(heap_dist, heap_col, in_heap)
                in_heap -= 1
                if mark[nearest] == open_mark and d == dist[nearest]:
                    j = nearest
            if j < 0 or dist[j] >= end_dist:
                break
            mark[j] = closed_mark
            if in_tree == len(scanned):
                scanned = _doubled(scanned, in_tree, in_tree + 1)
            scanned[in_tree] = j
            in_tree += 1
            i = owner[j]
            base = dist[j] - (values[edge[i]] - v[j])
            if row_unmatched[i] < never and base + row_unmatched[i] < end_dist:
                end_dist, end_col, end_is_row = base + row_unmatched[i], j, np.bool_(True)
        if end_col < 0 and end_dist >= never:
            return total, start
        total += in_tree
        for k in range(in_tree):
            v[scanned[k]] += dist[scanned[k]] - end_dist
        _flip(indices, owner, edge, from_pair, from_row, start, end_col, end_is_row)
    return total, -1


@inner_kernel
def _flip(indices, owner, edge, from_pair, from_row, start, end_col, end_is_row):  # pragma: no cover
    """Swap matched and unmatched pairs along the path that ends at end_col, or at its owner."""
    if end_col < 0:
        return
    if end_is_row:
        edge[owner[end_col]] = -1
    j = end_col
    while True:
        i = from_row[j]
        given_up = edge[i]
        edge[i], owner[j] = from_pair[j], i
        if i == start:
            return
        j = indices[given_up]
