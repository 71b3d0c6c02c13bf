"""CPU kernels of movies: sort points by grid cell, and compare the flow of frames.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _comes_before(point, one, other):  # pragma: no cover
    """Whether one point precedes the other by z, then y, then x."""
    for k in range(3):
        if point[k, one] != point[k, other]:
            return point[k, one] < point[k, other]
    return False


@njit(nogil=True, cache=True)
def sort_in_cells(point, key, block_start, place):  # pragma: no cover
    """Sort the points of each cell by z, then y, then x (Shell sort).

    point (3, N) f8; key (N,) i8 cells, in runs; block_start (B+1,) i8. Written: place (N,) i8 of each.
    """
    for i in range(len(key)):
        place[i] = i
    for b in range(len(block_start) - 1):
        first = block_start[b]
        while first < block_start[b + 1]:
            last = first + 1
            while last < block_start[b + 1] and key[last] == key[first]:
                last += 1
            gap = 1
            while 3 * gap < last - first:
                gap = 3 * gap + 1
            while gap > 0:
                for i in range(first + gap, last):
                    moved, to = place[i], i
                    while to >= first + gap and _comes_before(point, moved, place[to - gap]):
                        place[to] = place[to - gap]
                        to -= gap
                    place[to] = moved
                gap //= 3
            first = last


@njit(nogil=True, cache=True)
def farther(position, frame_start, shift, lasting, low, scale, cells, rate):  # pragma: no cover
    """Mean flow of frames relative to the first one, from cells that two consecutive frames share.

    position, shift (N, A) f8, of which zeros are not known; frame_start (F+1,) i8; lasting (F,) i8 intervals
    to the next frame; low, scale (A,) f8: where cells begin, and one over their size; cells: along an axis.
    Written: rate (F, A) f8 in an interval; where nothing is told as before.
    """
    axes, told, now = position.shape[1], -1, 0
    held, sums = np.zeros((2, cells**axes)), np.zeros((2, cells**axes, axes))
    for f in range(len(rate)):
        held[now], sums[now], seen = 0.0, 0.0, False
        for i in range(frame_start[f], frame_start[f + 1]):
            at, known = 0, False
            for k in range(axes):
                at = at * cells + min(max(np.int64((position[i, k] - low[k]) * scale[k]), 0), cells - 1)
                known |= shift[i, k] != 0
            if known:
                held[now, at] += 1
                seen = True
                for k in range(axes):
                    sums[now, at, k] += shift[i, k] / lasting[f]
        if f > 0:
            rate[f] = rate[f - 1]
        if not seen:
            continue
        if told >= 0:
            before, total = 1 - now, 0.0
            for c in range(held.shape[1]):
                total += min(held[now, c], held[before, c])
            for c in range(held.shape[1]):
                both = min(held[now, c], held[before, c])
                if both > 0:
                    for k in range(axes):
                        more = sums[now, c, k] / held[now, c] - sums[before, c, k] / held[before, c]
                        rate[f, k] += both / total * more
        told, now = f, 1 - now
