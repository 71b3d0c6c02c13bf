"""CPU kernels of generations. Serial, without the GIL; no result depends on the order of threads.

Lives are chains of links, each named by its first detection; points are the frames of a life in which its
cell may divide.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

from numba import njit

_NONE = 1e-3  # what is less likely than this counts for nothing


@njit(nogil=True, cache=True)
def follow(frame, before, chain, final):  # pragma: no cover
    """Name every detection's chain by its first detection, and see when it ends.

    frame (N,) i8 non-decreasing; before (N,) i8 or -1. Written: chain (N,) i8, final (N,) i8 (at the first
    detections).
    """
    for i in range(len(frame)):
        if before[i] >= 0:
            chain[i] = chain[before[i]]
            final[chain[i]] = frame[i]


@njit(nogil=True, cache=True)
def count_ages(lives, first, final, born, point_start, frame, divides, seen, lived):  # pragma: no cover
    """How many divisions were seen at each age, and how many cells were so old.

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
def _with_future(
    here, earlier, known, c, after, high, final, frame, divides, divided, lasted
):  # pragma: no cover
    """Mean likelihood ratio of a division at a frame over the next divisions of the life, or its end."""
    total, rest, before = 0.0, 1.0, here - earlier
    for k in range(after, high):
        if divides[k] < _NONE:
            continue
        ratio = divided[frame[k] - here]
        if known:
            ratio *= divided[before] / divided[frame[k] - earlier]
        total += rest * divides[k] * ratio
        rest *= 1 - divides[k]
        if rest < _NONE:
            return total
    ratio = lasted[final[c] - here]
    if known:
        ratio *= divided[before] / lasted[final[c] - earlier]
    return total + rest * ratio


@njit(nogil=True, cache=True)
def gains(
    lives, first, final, born, point_start, frame, divides, divided, lasted, of_point, of_birth
):  # pragma: no cover
    """Log ratio that ages add to a division at each point, and to one where each life begins.

    As in `count_ages`; divided, lasted (F,) f8 by age: likelihoods of a life that ends in a division, and of
    one that was followed so long, against those of a cell that divides at any age alike. Written:
    of_point (K,) f8, but for a constant; of_birth (N,) f8.
    """
    for n in range(len(lives)):
        c = lives[n]
        low, high, begun = point_start[c], point_start[c + 1], first[c] - 1
        for i in range(low, high):
            here, total, rest = frame[i], 0.0, 1.0
            for j in range(i - 1, low - 1, -1):
                if divides[j] < _NONE:
                    continue
                total += (
                    rest
                    * divides[j]
                    * _with_future(
                        here, frame[j], True, c, i + 1, high, final, frame, divides, divided, lasted
                    )
                )
                rest *= 1 - divides[j]
                if rest < _NONE:
                    break
            if rest >= _NONE:
                for known in (True, False):
                    share = born[c] if known else 1 - born[c]
                    if share >= _NONE:
                        total += (
                            rest
                            * share
                            * _with_future(
                                here, begun, known, c, i + 1, high, final, frame, divides, divided, lasted
                            )
                        )
            of_point[i] = math.log(max(total, 1e-300))
        total, rest = 0.0, 1.0
        for k in range(low, high):
            if divides[k] < _NONE:
                continue
            total += rest * divides[k] * divided[frame[k] - begun]
            rest *= 1 - divides[k]
            if rest < _NONE:
                break
        if rest >= _NONE:
            total += rest * lasted[final[c] - begun]
        of_birth[c] = math.log(max(total, 1e-300))
