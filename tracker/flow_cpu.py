"""CPU kernel of flow. Serial, without the GIL; no result depends on the order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

from numba import njit


@njit(nogil=True, cache=True)
def mean_of_near(near, step, crowd, fewest, mean):  # pragma: no cover
    """Mean step of the nearest `crowd` of each one's neighbours that have a step.

    near (M, K) i4 rows of the neighbours, nearest first, -1 for none; step (N, A) f8, NaN for none.
    Written: mean (M, A) f8; where fewer than `fewest` have a step it stays.
    """
    count, most = near.shape
    axes = step.shape[1]
    for i in range(count):
        found = 0
        for k in range(most):
            j = near[i, k]
            if j < 0 or found == crowd:
                break
            found += not math.isnan(step[j, 0])
        if found < fewest:
            continue
        taken = 0
        for k in range(most):
            j = near[i, k]
            if taken == found:
                break
            if not math.isnan(step[j, 0]):
                taken += 1
                for axis in range(axes):
                    mean[i, axis] += step[j, axis] / found
