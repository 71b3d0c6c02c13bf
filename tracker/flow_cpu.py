"""CPU kernels of flow. Serial, without the GIL; no result depends on the order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def mean_of_near(near, step, crowd, fewest, mean):  # pragma: no cover
    """Mean step of the nearest `crowd` of each one's neighbours that have a step.

    near (M, K) i4 rows of the neighbours, nearest first, -1 for none; step (N, A) f8, NaN for none.
    Written: mean (M, A) f8; 0 where fewer than `fewest` have a step.
    """
    axes = step.shape[1]
    for i in range(near.shape[0]):
        mean[i] = 0.0
        found = 0
        for j in near[i]:
            if j < 0 or found == crowd:
                break
            if not math.isnan(step[j, 0]):
                found += 1
                for axis in range(axes):
                    mean[i, axis] += step[j, axis]
        share = 1 / found if found >= fewest else 0.0
        for axis in range(axes):
            mean[i, axis] *= share


@njit(nogil=True, cache=True)
def mean_of_others(first, last, every, step, fewest, mean):  # pragma: no cover
    """Mean step of all others in the frame, for every so many-th detection of some frames.

    first, last (f,) i8: the rows of each frame; step (N, A) f8, NaN for none.
    Written: mean (M, A) f8; 0 where fewer than `fewest` have a step.
    """
    axes, to = step.shape[1], 0
    total = np.empty(axes)
    for f in range(len(first)):
        total[:], moving = 0.0, 0
        for i in range(first[f], last[f]):
            if not math.isnan(step[i, 0]):
                moving += 1
                for axis in range(axes):
                    total[axis] += step[i, axis]
        for i in range(first[f], last[f], every):
            known = not math.isnan(step[i, 0])
            others = moving - known
            for axis in range(axes):
                left = total[axis] - step[i, axis] if known else total[axis]
                mean[to, axis] = left / others if others >= fewest else 0.0
            to += 1


@njit(nogil=True, cache=True)
def products(step, mean, sums):  # pragma: no cover
    """Squares of the steps, their products with the means, and squares of the means, summed.

    step (M, A) f8, NaN for none: such rows count for nothing; mean (M, A) f8. Written: sums (3, A) f8.
    """
    sums[:] = 0.0
    for i in range(len(step)):
        if not math.isnan(step[i, 0]):
            for axis in range(step.shape[1]):
                own, around = step[i, axis], mean[i, axis]
                sums[0, axis] += own * own
                sums[1, axis] += own * around
                sums[2, axis] += around * around
