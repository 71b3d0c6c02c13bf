"""CPU kernels of flow: the mean step of the neighbours of each detection.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_WIDE = 1.62  # square of the distance at which neighbours count no more, in that to the last of the crowd


@njit(nogil=True, cache=True)
def mean_of_near(near, distance2, step, heed, crowd, fewest, mean):  # pragma: no cover
    """Weighted mean step of the neighbours of each detection; nearer ones have more weight.

    near (M, K) i4: rows of the neighbours, nearest first, -1 for none; distance2 (M, K) f8: squared distances
    to them; step (N, A) f8: NaN for none; heed (N,) f8: weight of each step. It is multiplied by (1 - d^2 /
    w^2)^3 for a neighbour at distance d, where w is 1.27 times the distance to neighbour number `crowd`, or
    to the last one. If all these neighbours are at the same position, they have equal weights. Written: mean
    (M, A) f8; 0 where fewer than `fewest` have a step.
    """
    axes = step.shape[1]
    for i in range(near.shape[0]):
        mean[i] = 0.0
        last = 0
        while last < crowd and near[i, last] >= 0:
            last += 1
        wide2 = _WIDE * distance2[i, last - 1] if last > 0 else 0.0
        found, whole, narrow = 0, 0.0, 1 / wide2 if wide2 > 0 else 0.0
        for n in range(near.shape[1]):
            j, left = near[i, n], 1 - narrow * distance2[i, n]
            if j < 0 or left <= 0:
                break
            if not math.isnan(step[j, 0]):
                weight = left * left * left * heed[j]
                found += 1
                whole += weight
                for axis in range(axes):
                    mean[i, axis] += weight * step[j, axis]
        share = 1 / whole if found >= fewest and whole > 0 else 0.0
        for axis in range(axes):
            mean[i, axis] *= share


@njit(nogil=True, cache=True)
def mean_of_others(first, last, every, step, heed, fewest, mean):  # pragma: no cover
    """Mean step of all other detections in the frame, for a regular sample of detections in some frames.

    first, last (f,) i8: rows of each frame; step (N, A) f8: NaN for none; heed (N,) f8: weights.
    Written: mean (M, A) f8; 0 where fewer than `fewest` have a step.
    """
    axes, to = step.shape[1], 0
    total = np.empty(axes)
    for f in range(len(first)):
        total[:], whole, moving = 0.0, 0.0, 0
        for i in range(first[f], last[f]):
            if not math.isnan(step[i, 0]):
                moving += 1
                whole += heed[i]
                for axis in range(axes):
                    total[axis] += heed[i] * step[i, axis]
        for i in range(first[f], last[f], every):
            known = not math.isnan(step[i, 0])
            others = whole - heed[i] if known else whole
            for axis in range(axes):
                left = total[axis] - heed[i] * step[i, axis] if known else total[axis]
                mean[to, axis] = left / others if moving - known >= fewest and others > 0 else 0.0
            to += 1


@njit(nogil=True, cache=True)
def products(step, mean, heed, sums):  # pragma: no cover
    """Weighted sums of squared steps, of products of steps and means, and of squared means.

    step (M, A) f8: rows with NaN are ignored; mean (M, A) f8; heed (M,) f8: weights. Written: sums (3, A) f8.
    """
    sums[:] = 0.0
    for i in range(len(step)):
        if not math.isnan(step[i, 0]):
            for axis in range(step.shape[1]):
                own, around = step[i, axis], mean[i, axis]
                sums[0, axis] += heed[i] * own * own
                sums[1, axis] += heed[i] * own * around
                sums[2, axis] += heed[i] * around * around
