"""CPU kernels of generations: chains of links, and counts of divisions at each age.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.


Lives are chains of links, each named by its first detection; points are the frames of a life in which its
cell may divide.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_NONE = 1e-3  # what is less likely than this counts for nothing


@njit(nogil=True, cache=True)
def follow(frame, before, chain, final):  # pragma: no cover
    """Label the chain of each detection by its first detection, and find its last frame.

    frame (N,) i8 non-decreasing; before (N,) i8 or -1. Written: chain (N,) i8, final (N,) i8 (at the first
    detections).
    """
    for i in range(len(frame)):
        if before[i] >= 0:
            chain[i] = chain[before[i]]
            final[chain[i]] = frame[i]


@njit(nogil=True, cache=True)
def count_ages(lives, first, final, born, point_start, frame, divides, seen, lived):  # pragma: no cover
    """Count the divisions at each age, and the cells that reached each age.

    lives (L,) i8 first detections; first, final (N,) i8 frames of them; born (N,) f8 probability that a
    division is where they begin; point_start (N+1,) i8, frame (K,) i8 ascending, divides (K,) f8: the
    points of each. Added to: seen (F,) f8 by age, lived (F,) f8 differences of the numbers by age.
    """
    for n in range(len(lives)):
        c = lives[n]
        low, high = point_start[c], point_start[c + 1]
        for j in range(low - 1, high):
            if j < low:
                here, weight = first[c] - 1, born[c]
            else:
                here, weight = frame[j], divides[j]
            if weight < _NONE:
                continue
            old = 0
            for k in range(j + 1, high):
                if divides[k] < _NONE:
                    continue
                age = frame[k] - here
                lived[old + 1] += weight
                lived[age + 1] -= weight
                seen[age] += weight * divides[k]
                weight *= 1 - divides[k]
                old = age
                if weight < _NONE:
                    break
            if weight >= _NONE:
                lived[old + 1] += weight
                lived[final[c] - here + 1] -= weight


@njit(nogil=True, cache=True)
def gains(
    lives, first, final, born, point_start, frame, divides, divided, lasted, of_point, of_birth
):  # pragma: no cover
    """Contribution of ages to the log odds of a division at each point, and at the start of each life.

    As in `count_ages`; divided, lasted (F,) f8 by age: likelihoods of a life that ends in a division, and of
    one that was followed so long, against those of a cell that divides at any age alike. Written:
    of_point (K,) f8, but for a constant; of_birth (N,) f8. The ratios are means over when the life before
    began and when the next one ends.
    """
    until, ahead = np.empty(len(frame), np.int64), np.empty(len(frame))
    for n in range(len(lives)):
        c = lives[n]
        low, high = point_start[c], point_start[c + 1]
        for i in range(low - 1, high):
            here = frame[i] if i >= low else first[c] - 1
            count, rest, any_age = 0, 1.0, 0.0
            for k in range(i + 1, high):
                if divides[k] >= _NONE:
                    until[count], ahead[count] = frame[k], rest * divides[k] * divided[frame[k] - here]
                    any_age += ahead[count]
                    count += 1
                    rest *= 1 - divides[k]
                    if rest < _NONE:
                        break
            end = rest * lasted[final[c] - here] if rest >= _NONE else 0.0
            any_age += end
            if i < low:
                of_birth[c] = math.log(max(any_age, 1e-300))
                continue
            total, rest = 0.0, 1.0
            for j in range(i - 1, low - 2, -1):
                share = divides[j] if j >= low else born[c]
                if share < _NONE:
                    continue
                begun = frame[j] if j >= low else first[c] - 1
                ratio = end / lasted[final[c] - begun]
                for k in range(count):
                    ratio += ahead[k] / divided[until[k] - begun]
                total += rest * share * divided[here - begun] * ratio
                rest *= 1 - share
                if rest < _NONE:
                    break
            if rest >= _NONE:
                total += rest * any_age
            of_point[i] = math.log(max(total, 1e-300))
