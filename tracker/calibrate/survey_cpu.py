"""CPU kernels of surveys: weighted counts around points.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def add_around(indptr, indices, point, position, inverse, around):  # pragma: no cover
    """Weighted counts around each point, for two Gaussians, one with a third of the other's variance.

    indptr (R+1,) i8, indices (P,) i4: detections near each point; point (R, A), position (N, A) f8; inverse
    (A,) f8 of the wider variance. Written: around (2, R) f8, by the narrower and by the wider one.
    """
    axes = len(inverse)
    for i in range(len(point)):
        narrow = wide = 0.0
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            away = 0.0
            for k in range(axes):
                d = position[indices[e], k] - point[i, k]
                away += d * d * inverse[k]
            weight = math.exp(-0.5 * away)
            narrow += weight * weight * weight
            wide += weight
        around[0, i], around[1, i] = narrow, wide
