"""CPU kernels of exact margins: shortest alternating paths, measured by slack, with Dijkstra's algorithm.

Serial, without the GIL; no result depends on threads. Slacks are the reduced costs for an optimal matching:
at least 0, and 0 for matched pairs.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from ..compute.kernels import kernel


@kernel
def displaced(indptr, indices, slack, held, holder, alone, back, rows, place, least):  # pragma: no cover
    """Rise of the optimal cost if each row must give up its column, including all consequences.

    indptr (R+1,) i8, indices (P,) i4: the pairs; slack (P,); held (R,) i4: column of each row; holder (C,)
    i4: row of each column; -1 for none; alone (R,): slack of staying unmatched; back (C+1,) i8, rows (P,) i4,
    place (P,) i8: the pairs sorted by column, and their indices. Written: least (R,).
    """
    if len(alone) == 0:
        return
    open_rows = [(alone[0], np.int64(0))]  # changes nothing: it shows Numba the type of the list
    for i in range(len(indptr) - 1):
        least[i] = alone[i]
        for p in range(indptr[i], indptr[i + 1]):
            if holder[indices[p]] < 0:
                least[i] = min(least[i], slack[p])
        open_rows.append((least[i], np.int64(i)))
    heapify(open_rows)
    while len(open_rows):
        far, k = heappop(open_rows)
        if far > least[k] or held[k] < 0:
            continue
        for q in range(back[held[k]], back[held[k] + 1]):
            i, rise = rows[q], far + slack[place[q]]
            if i != k and rise < least[i]:
                least[i] = rise
                heappush(open_rows, (rise, np.int64(i)))


@kernel
def shorten_by_cycles(indptr, indices, slack, held, holder, margin):  # pragma: no cover
    """Lower margins to the cost of a cycle: the row displaces another one, …, and the last takes its column.

    Arguments as in `displaced`; margin (R,) of matched rows, lowered here.
    """
    count = len(indptr) - 1
    far_of, seen = np.empty(count, slack.dtype), np.full(count, -1, np.int64)
    for i in range(count):
        if held[i] < 0:
            continue
        best = margin[i]
        far_of[i], seen[i] = slack.dtype.type(0), i
        nearest = [(far_of[i], np.int64(i))]
        while len(nearest):
            far, k = heappop(nearest)
            if far >= best:
                break
            if far > far_of[k]:
                continue
            for p in range(indptr[k], indptr[k + 1]):
                j, rise = indices[p], far + slack[p]
                if j == held[k] or rise >= best:
                    continue
                if j == held[i]:
                    best = rise
                    continue
                h = holder[j]
                if h >= 0 and (seen[h] != i or rise < far_of[h]):
                    far_of[h], seen[h] = rise, i
                    heappush(nearest, (rise, np.int64(h)))
        margin[i] = best
