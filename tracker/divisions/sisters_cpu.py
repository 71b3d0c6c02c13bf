"""CPU kernels of sisters. Serial, without the GIL; no result depends on the order of threads.

The ways of a life are the ages at which it may end in a division, and at last that at which it was seen last
without one; each has a weight, and their sum is 1.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_NONE = 0.01  # what is less likely than this counts for nothing; with a tenth of it nothing gets better
_ROUNDED = 0.4  # frames: standard deviation of the difference of two ages that are whole numbers


@njit(nogil=True, cache=True)
def list_ways(life, begun, final, point_start, frame, divides, without, age, weight):  # pragma: no cover
    """The ways of a life that begins after the frame `begun`, but for a division at the point `without`.

    final (N,) i8; point_start (N+1,) i8, frame (K,) i8, divides (K,) f8 as in `generations_cpu`. Written:
    age (M,) i8, weight (M,) f8. Returns how many of them end in a division.
    """
    count, rest = 0, 1.0
    for k in range(point_start[life], point_start[life + 1]):
        if frame[k] > begun and k != without and divides[k] >= _NONE and rest >= _NONE:
            age[count], weight[count] = frame[k] - begun, rest * divides[k]
            rest *= 1 - divides[k]
            count += 1
    age[count], weight[count] = max(final[life] - begun, 0), rest
    return count


@njit(nogil=True, cache=True)
def _alike(here, divides, there, also, model):  # pragma: no cover
    """How much likelier sisters end so, one at least in a division, if they are alike than each by itself."""
    dies, lasts, spread, _ = model
    if not divides:
        here, there, also = there, here, divides
    wide = math.sqrt(spread + (_ROUNDED / here) ** 2)
    if also:
        off = math.log(there / here) / wide
        return math.exp(-0.5 * off * off) / (there * wide * math.sqrt(2 * math.pi) * dies[there])
    return 0.5 * math.erfc(math.log((there + 0.5) / here) / (wide * math.sqrt(2))) / lasts[there]


@njit(nogil=True, cache=True)
def ratio_of_way(here, divides, age, weight, count, model):  # pragma: no cover
    """How much likelier one way of a life is beside the ways (M,) of a sister, `count` of them divisions."""
    total, apart = 0.0, model[3]
    for k in range(count + 1):
        ratio = 1.0
        if divides or k < count:
            ratio = apart + (1 - apart) * _alike(here, divides, age[k], k < count, model)
        total += weight[k] * ratio
    return total


@njit(nogil=True, cache=True)
def ratio_of_lives(age, weight, count, ages, weights, counts, model):  # pragma: no cover
    """How much likelier the ways of two lives are if they are sisters."""
    total = 0.0
    for k in range(count + 1):
        total += weight[k] * ratio_of_way(age[k], k < count, ages, weights, counts, model)
    return total


@njit(nogil=True, cache=True)
def count_alike(
    one, other, begun, chance, final, point_start, frame, divides, model, age, weight, told
):  # pragma: no cover
    """How many sisters are alike, and how much their ages differ.

    one, other, begun (P,) i8, chance (P,) f8: the lives of both daughters of each family, the frame of the
    mother, and its probability; final, point_start, frame, divides as in `list_ways`. The model: how likely a
    life ends at each age, (F,) f8, and lasts longer, (F,) f8; spread and share apart, as in `Sisters`. age
    (2, M) i8, weight (2, M) f8 are written over. Added to: told (4,) f8: pairs of which one divides, those of
    them that are alike, those of these of which both do, and squares of the logs of ratios of their ages.
    """
    apart = model[3]
    for f in range(len(one)):
        if chance[f] < _NONE:
            continue
        left = list_ways(one[f], begun[f], final, point_start, frame, divides, -1, age[0], weight[0])
        right = list_ways(other[f], begun[f], final, point_start, frame, divides, -1, age[1], weight[1])
        for j in range(left + 1):
            for k in range(right + 1):
                if j == left and k == right:
                    continue
                here, there, many = age[0, j], age[1, k], chance[f] * weight[0, j] * weight[1, k]
                alike = (1 - apart) * _alike(here, j < left, there, k < right, model)
                alike *= many / (alike + apart)
                told[0] += many
                told[1] += alike
                if j < left and k < right:
                    told[2] += alike
                    told[3] += alike * max(math.log(there / here) ** 2 - (_ROUNDED / here) ** 2, 0.0)


@njit(nogil=True, cache=True)
def gains(
    one, other, begun, chance, final, point_start, frame, divides, model, age, weight, of_point, of_family
):  # pragma: no cover
    """Log ratio that sisters add to a division at each point, and to their being sisters.

    As in `count_alike`, but age (3, M), weight (3, M). Added to: of_point (K,) f8, of_family (P,) f8.
    """
    counts = np.zeros(2, np.int64)
    for f in range(len(one)):
        if chance[f] < _NONE:
            continue
        both = (one[f], other[f])
        for side in range(2):
            counts[side] = list_ways(
                both[side], begun[f], final, point_start, frame, divides, -1, age[side], weight[side]
            )
        if counts.sum() == 0:
            continue
        of_family[f] += math.log(
            ratio_of_lives(age[0], weight[0], counts[0], age[1], weight[1], counts[1], model)
        )
        for side in range(2):
            life, count, sure = both[side], counts[1 - side], chance[f]
            ages, weights = age[1 - side], weight[1 - side]
            for k in range(point_start[life], point_start[life + 1]):
                if frame[k] <= begun[f] or divides[k] < _NONE or sure < _NONE:
                    continue
                yes = ratio_of_way(frame[k] - begun[f], True, ages, weights, count, model)
                others = list_ways(life, begun[f], final, point_start, frame, divides, k, age[2], weight[2])
                no = ratio_of_lives(age[2], weight[2], others, ages, weights, count, model)
                of_point[k] += math.log((1 - sure + sure * yes) / (1 - sure + sure * no))
                sure *= 1 - divides[k]
