"""CPU kernel of belief propagation: weights of the competitors of a link in its row or column.

Each segment writes only the values of its own links, and reads values that the other side wrote in the
previous half round; so no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit

COUNTS = 1e-3  # guard: share of a segment below which a link's change does not count


@njit(nogil=True, cache=True, error_model="numpy")
def compete(first, last, start, link, ratio, alone, own, other, power):  # pragma: no cover
    """One half round over segments first:last; returns the largest relative change.

    start (N + 1,) i8 and link (E,) i4 are the segments; ratio (E,) f8; alone (N,) f8 the weight of no link
    to the power 1 / omega; other (E,) f8 what competes in the segments of the other side; power 1 - omega.
    Written: own (E,).
    """
    change, most = 0.0, 0
    for i in range(first, last):
        most = max(most, start[i + 1] - start[i])
    pull = np.empty(most)
    for i in range(first, last):
        total, begin = alone[i], start[i]
        if start[i + 1] == begin + 1:
            own[link[begin]] = total
            continue
        for p in range(begin, start[i + 1]):
            f = link[p]
            pull[p - begin] = ratio[f] * (own[f] * other[f]) ** power / other[f]
            total += pull[p - begin]
        for p in range(begin, start[i + 1]):
            f = link[p]
            new = max(total - pull[p - begin], alone[i])
            if pull[p - begin] > COUNTS * total:
                change = max(change, abs(new - own[f]) / new)
            own[f] = new
    return change
