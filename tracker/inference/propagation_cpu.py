"""CPU kernel of belief propagation: weights of the competitors of a link in its row or column.

Each segment writes only the values of its own links, and reads values that the other side wrote in the
previous half round; so no result depends on the order of threads. Segments in which nothing moved stay.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit

COUNTS = 1e-3  # guard: share of a segment below which a link's change does not count
TOLERANCE = 1e-3  # error level: relative change of a link that counts


@njit(nogil=True, cache=True, error_model="numpy")
def by_head(head, start, link):  # pragma: no cover
    """Write the links of each head in their order: start (N + 1,) i8, link (E,) i4; head (E,) i4."""
    start[:] = 0
    for f in range(len(head)):
        start[head[f] + 1] += 1
    for j in range(len(start) - 1):
        start[j + 1] += start[j]
    for f in range(len(head)):
        link[start[head[f]]] = f
        start[head[f]] += 1
    for j in range(len(start) - 1, 0, -1):
        start[j] = start[j - 1]
    start[0] = 0


@njit(nogil=True, cache=True, error_model="numpy")
def compete(first, last, start, link, ratio, alone, own, other, power, moved, seen):  # pragma: no cover
    """One half round over segments first:last; returns how many links moved.

    start (N + 1,) i8 and link (E,) i4 are the segments; ratio (E,) f8; alone (N,) f8 the weight of no link
    to the power 1 / omega; other (E,) f8 what competes in the segments of the other side; power 1 - omega;
    seen (E,) u1 whether other moved in the last half round. Written: own (E,), and moved (E,) u1 likewise.
    """
    moves, most = 0, 0
    for i in range(first, last):
        most = max(most, start[i + 1] - start[i])
    pull = np.empty(most)
    for i in range(first, last):
        total, begin, end = alone[i], start[i], start[i + 1]
        if end == begin + 1:
            own[link[begin]], moved[link[begin]] = total, 0
            continue
        still = True
        for p in range(begin, end):
            still = still and not (moved[link[p]] or seen[link[p]])
        if still:
            continue
        for p in range(begin, end):
            f = link[p]
            pull[p - begin] = ratio[f] * (own[f] * other[f]) ** power / other[f]
            total += pull[p - begin]
        for p in range(begin, end):
            f = link[p]
            new = max(total - pull[p - begin], alone[i])
            moved[f] = pull[p - begin] > COUNTS * total and abs(new - own[f]) > TOLERANCE * new
            moves += moved[f]
            own[f] = new
    return moves
