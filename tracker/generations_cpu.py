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
def _life(age, known, divides, log_hazard, survived, mean):  # pragma: no cover
    """Log likelihood of a life: its age, whether its birth is known, whether it ends in a division."""
    if known:
        return log_hazard[age] - survived[age - 1] if divides else -survived[age]
    return math.log(mean) - mean * (age - 1) if divides else -mean * age


@njit(nogil=True, cache=True)
def _gain(before, known, after, divides, log_hazard, survived, mean):  # pragma: no cover
    """What it gains to cut a life in two."""
    return (
        _life(before, known, True, log_hazard, survived, mean)
        + _life(after, True, divides, log_hazard, survived, mean)
        - _life(before + after, known, divides, log_hazard, survived, mean)
        - math.log(mean)
    )


@njit(nogil=True, cache=True)
def _with_future(
    here, earlier, known, c, after, high, final, frame, divides, log_hazard, survived, mean
):  # pragma: no cover
    """Mean likelihood ratio of a division at a frame over the next divisions of the life, or its end."""
    total, rest = 0.0, 1.0
    for k in range(after, high):
        if divides[k] < _NONE:
            continue
        ahead = _gain(here - earlier, known, frame[k] - here, True, log_hazard, survived, mean)
        total += rest * divides[k] * math.exp(ahead)
        rest *= 1 - divides[k]
        if rest < _NONE:
            return total
    ahead = _gain(here - earlier, known, final[c] - here, False, log_hazard, survived, mean)
    return total + rest * math.exp(ahead)


@njit(nogil=True, cache=True)
def gains(
    lives, first, final, born, point_start, frame, divides, log_hazard, survived, mean, of_point, of_birth
):  # pragma: no cover
    """Log ratio that ages add to a division at each point, and to one where each life begins.

    As in `count_ages`; log_hazard, survived (F,) f8 by age: the log of the hazard and its sum so far; mean:
    the mean hazard. Written: of_point (K,) f8, of_birth (N,) f8.
    """
    for n in range(len(lives)):
        c = lives[n]
        low, high = point_start[c], point_start[c + 1]
        for i in range(low, high):
            total, rest = 0.0, 1.0
            for j in range(i - 1, low - 1, -1):
                if divides[j] < _NONE:
                    continue
                total += (
                    rest
                    * divides[j]
                    * _with_future(
                        frame[i],
                        frame[j],
                        True,
                        c,
                        i + 1,
                        high,
                        final,
                        frame,
                        divides,
                        log_hazard,
                        survived,
                        mean,
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
                                frame[i],
                                first[c] - 1,
                                known,
                                c,
                                i + 1,
                                high,
                                final,
                                frame,
                                divides,
                                log_hazard,
                                survived,
                                mean,
                            )
                        )
            of_point[i] = math.log(max(total, 1e-300))
        total, rest = 0.0, 1.0
        begun = first[c] - 1
        for k in range(low, high):
            if divides[k] < _NONE:
                continue
            ratio = _life(frame[k] - begun, True, True, log_hazard, survived, mean)
            ratio -= _life(frame[k] - begun, False, True, log_hazard, survived, mean)
            total += rest * divides[k] * math.exp(ratio)
            rest *= 1 - divides[k]
            if rest < _NONE:
                break
        if rest >= _NONE:
            ratio = _life(final[c] - begun, True, False, log_hazard, survived, mean)
            ratio -= _life(final[c] - begun, False, False, log_hazard, survived, mean)
            total += rest * math.exp(ratio)
        of_birth[c] = math.log(max(total, 1e-300))
