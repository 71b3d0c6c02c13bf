"""CPU kernels of the lifetimes of related cells: possible lives, and their likelihood ratios.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.


The ways of a life are its possible ends: the ages at which it may divide, and finally the age of its last
detection without a division. The ways of a mother are her possible ages, and finally an unknown age. A list
of ways is (age (M,) i8, weight (M,) f8, point (M,) i8, sure (M,) f8): weights with sum 1, the point at which
each way divides (-1 for none), and the probability of that division by itself.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_NONE = 0.01  # what is less likely than this counts for nothing; with a tenth of it nothing gets better
_LIKELY = 0.5  # families that tell how much kin are alike: others are strangers
_LEAST = 1e-6  # of a ratio
_ALL = 0.999  # no division is surer than this
_ROUNDED = 0.4  # frames: standard deviation of the difference of two ages that are whole numbers


@njit(nogil=True, cache=True)
def list_ends(life, begun, lives, ways):  # pragma: no cover
    """List the possible ends of a life that begins after frame `begun`; returns the number of divisions.

    lives: as in `gains`. Written: ways.
    """
    final, point_start, frame, divides = lives[:4]
    age, weight, point, sure = ways
    count, rest = 0, 1.0
    for k in range(point_start[life], point_start[life + 1]):
        if frame[k] > begun and divides[k] >= _NONE and rest >= _NONE:
            age[count], point[count], sure[count] = frame[k] - begun, k, min(divides[k], _ALL)
            weight[count] = rest * sure[count]
            rest *= 1 - sure[count]
            count += 1
    age[count], weight[count], point[count] = max(final[life] - begun, 0), rest, -1
    return count


@njit(nogil=True, cache=True)
def list_begins(life, until, lives, ways):  # pragma: no cover
    """List the possible beginnings of a life that divides in frame `until`; as in `list_ends`."""
    _, point_start, frame, divides, first, born = lives
    age, weight, point, sure = ways
    count, rest = 0, 1.0
    for k in range(point_start[life + 1] - 1, point_start[life] - 2, -1):
        # At last the life begins itself.
        here, chance = (frame[k], divides[k]) if k >= point_start[life] else (first[life] - 1, born[life])
        if here < until and chance >= _NONE and rest >= _NONE:
            age[count], sure[count] = until - here, min(chance, _ALL)
            point[count] = k if k >= point_start[life] else len(frame) + life
            weight[count] = rest * sure[count]
            rest *= 1 - sure[count]
            count += 1
    age[count], weight[count], point[count] = 0, rest, -1
    return count


@njit(nogil=True, cache=True)
def _rounded(here, there):  # pragma: no cover
    """Variance of the log ratio of two ages due to rounding to whole frames."""
    return 0.5 * _ROUNDED**2 * (1 / here**2 + 1 / there**2)


@njit(nogil=True, cache=True)
def _alike(here, divides, there, also, kin):  # pragma: no cover
    """Likelihood ratio of the ends of two lives, at least one a division: similar against independent."""
    dies, lasts, spread, _, grown, mutual = kin
    if not divides:
        here, there, also = there, here, divides
    if not also:
        wide = math.sqrt(2 * (spread + (_ROUNDED / here) ** 2))
        return 0.5 * math.erfc((math.log((there + 0.5) / here) - grown) / wide) / lasts[there]
    variance = spread + _rounded(here, there)
    off, usual = math.log(there / here) - grown, there * dies[there]
    if mutual:  # nobody is the first
        usual = math.sqrt(usual * here * dies[here])
    return math.exp(-0.5 * off * off / variance) / (math.sqrt(2 * math.pi * variance) * usual)


@njit(nogil=True, cache=True)
def compare(here, ways, ratio, many, others, counts, kin, mother):  # pragma: no cover
    """Likelihood ratios of the possible lives of one cell given those of a relative, and the reverse.

    here, others: how many of the lists ways and many divide; mother: whether the first list is hers, of whom
    the last way tells nothing. Written: ratio (M,), counts (M,) f8. Returns the mean of the former.
    """
    age, weight, ages, weights, apart = ways[0], ways[1], many[0], many[1], kin[3]
    counts[: others + 1] = 0.0
    mean = 0.0
    for j in range(here + 1):
        ratio[j] = 0.0
        for k in range(others + 1):
            each = 1.0
            if j < here or (k < others and not mother):
                each = apart + (1 - apart) * _alike(age[j], j < here, ages[k], k < others, kin)
            ratio[j] += weights[k] * each
            counts[k] += weight[j] * each
        mean += weight[j] * ratio[j]
    return mean


@njit(nogil=True, cache=True)
def mean_of(count, ways, ratio):  # pragma: no cover
    """Mean of ratios (M,) over the possible lives in a list, `count` of which divide."""
    total = 0.0
    for w in range(count + 1):
        total += ways[1][w] * ratio[w]
    return total


@njit(nogil=True, cache=True)
def tell(count, ways, ratio, chance, told):  # pragma: no cover
    """Tell points what their ways gain (M,) if these are kin by such a chance, and what all others do.

    Added to: told (3, K + N) f8, for each point: the chance that it is asked; and times that, how much
    likelier it is made than it was, and how much likelier all others of its list are.
    """
    _, weight, point, sure = ways
    mean, sooner, rest = mean_of(count, ways, ratio), 0.0, chance
    for w in range(count):
        later = (mean - sooner - weight[w] * ratio[w]) / (1 - sure[w])
        told[0, point[w]] += rest
        told[1, point[w]] += rest * (ratio[w] - 1)
        told[2, point[w]] += rest * (max(sooner + later, _LEAST) - 1)
        sooner += weight[w] * ratio[w]
        rest *= 1 - sure[w]


@njit(nogil=True, cache=True)
def _count(here, ways, others, many, chance, kin, mother, told):  # pragma: no cover
    """Add the statistics of two lists to told (5,); as in `compare` and `count_alike`."""
    apart = kin[3]
    for j in range(here + 1):
        for k in range(others + 1):
            if j == here and (k == others or mother):
                continue
            pairs = chance * ways[1][j] * many[1][k]
            alike = (1 - apart) * _alike(ways[0][j], j < here, many[0][k], k < others, kin)
            alike *= pairs / (alike + apart)
            told[0] += pairs
            told[1] += alike
            if j < here and k < others:
                off = math.log(many[0][k] / ways[0][j])
                told[2] += alike
                told[3] += alike * off
                told[4] += alike * (off * off - _rounded(ways[0][j], many[0][k]))


@njit(nogil=True, cache=True)
def count_alike(mother, one, other, begun, chance, lives, sisters, mothers, ways, told):  # pragma: no cover
    """Count similar relatives, and sum the differences of their ages.

    As in `gains`. Added to: told (2, 5) f8, of sisters and of mothers: pairs of which one divides, those of
    them that are alike, those of these of which both do, and sums of the logs of the ratios of their ages,
    and of the squares of these.
    """
    old, left, right = ways
    for f in range(len(one)):
        if chance[f] >= _LIKELY:
            before = list_begins(mother[f], begun[f], lives, old)
            ends = list_ends(one[f], begun[f], lives, left), list_ends(other[f], begun[f], lives, right)
            _count(ends[0], left, ends[1], right, chance[f], sisters, False, told[0])
            _count(before, old, ends[0], left, chance[f], mothers, True, told[1])
            _count(before, old, ends[1], right, chance[f], mothers, True, told[1])


@njit(nogil=True, cache=True)
def gains(
    mother, one, other, begun, chance, lives, sisters, mothers, ways, of_point, of_family
):  # pragma: no cover
    """Contribution of relatives to the log odds of a division at each point, and of each family.

    mother, one, other, begun (P,) i8, chance (P,) f8: the lives of the mother and of both daughters of each
    family, the frame of the mother, and its probability. lives: final (N,) i8, point_start (N+1,) i8, frame
    (K,) i8, divides (K,) f8, first (N,) i8, born (N,) f8 as in `generations_cpu`. sisters, mothers: how
    likely a life ends at each age, (F,) f8, and lasts longer, (F,) f8; spread, apart and grown, as in `Kin`.
    ways: three lists. Added to: of_point (K + N,) f8, with births after the points; of_family (P,) f8.
    """
    old, left, right = ways
    ratios = np.empty((5, len(old[0])))
    # The life that ends at a point began in one family, and that which begins there ends in one: families
    # that tell it the same exclude each other.
    since, until = np.zeros((3, len(of_point))), np.zeros((3, len(of_point)))
    for f in range(len(one)):
        if chance[f] < _NONE:
            continue
        before = list_begins(mother[f], begun[f], lives, old)
        ends = list_ends(one[f], begun[f], lives, left), list_ends(other[f], begun[f], lives, right)
        of_left, of_right, of_old, by_mother, of_mother = ratios
        of_left[:], of_right[:], of_old[:] = 1.0, 1.0, 1.0
        if ends[0] + ends[1] > 0:
            mean = compare(ends[0], left, of_left, right, ends[1], of_right, sisters, False)
            of_family[f] += math.log(mean)
        if before > 0:
            for side in range(2):
                child, of_child = (left, of_left) if side == 0 else (right, of_right)
                mean = compare(before, old, of_mother, child, ends[side], by_mother, mothers, True)
                of_family[f] += math.log(mean)
                of_child *= by_mother
                of_old *= of_mother
        tell(before, old, of_old, chance[f], until)
        tell(ends[0], left, of_left, chance[f], since)
        tell(ends[1], right, of_right, chance[f], since)
    for told in (since, until):
        for k in range(len(of_point)):
            if told[0, k] > 0:
                share = max(told[0, k], 1.0)
                of_point[k] += math.log((1 + told[1, k] / share) / (1 + told[2, k] / share))
