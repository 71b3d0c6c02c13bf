"""CPU kernel of movies. Serial, without the GIL; no result depends on the order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def _comes_before(point, one, other):  # pragma: no cover
    """Whether the one point comes first by z, then y, then x."""
    for k in range(3):
        if point[k, one] != point[k, other]:
            return point[k, one] < point[k, other]
    return False


@njit(nogil=True, cache=True)
def sort_in_cells(point, key, block_start, place):  # pragma: no cover
    """Sort the points of each cell by z, then y, then x (Shell 1959), whatever their order was.

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
