"""CPU kernels of exchanged. Serial, without the GIL; no result depends on the order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

from numba import njit


@njit(nogil=True, cache=True)
def near_in_frame(position, frame, along, radius, row, col):  # pragma: no cover
    """Pairs of detections of one frame that are no farther apart, each once.

    position (K, A) f8, frame (K,) i8, both by frame, then along the axis `along`; radius.
    Written as far as there is room: row, col (P,) i8. Returns how many there are.
    """
    found, (count, axes) = 0, position.shape
    for i in range(count):
        for j in range(i + 1, count):
            if position[j, along] - position[i, along] > radius or frame[j] != frame[i]:
                break
            far = 0.0
            for axis in range(axes):
                far += (position[j, axis] - position[i, axis]) ** 2
            if far <= radius * radius:
                if found < len(row):
                    row[found], col[found] = i, j
                found += 1
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def add_odds(position, row, col, a, b, expected, variance, most, odds):  # pragma: no cover
    """Odds that the detections of two tracks are exchanged, summed over all pairs that each is of.

    position (N, A) f8; row, col (P,) i8 of the two, a, b (P,) i8 their places among expected, variance
    (K, A) f8, where their tracks expect them; most: the largest log odds. Added to: odds (K,) f8.
    """
    for p in range(len(row)):
        gain = 0.0
        for axis in range(position.shape[1]):
            x, y = position[row[p], axis], position[col[p], axis]
            here, there = expected[a[p], axis], expected[b[p], axis]
            gain += ((x - here) ** 2 - (y - here) ** 2) / variance[a[p], axis]
            gain += ((y - there) ** 2 - (x - there) ** 2) / variance[b[p], axis]
        chance = math.exp(min(max(gain / 2, -most), most))
        odds[a[p]] += chance
        odds[b[p]] += chance
