"""CPU kernels of the step scale of frames: sums over the steps from each frame to the next.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_IMPROBABLE = 1e-3  # pairs less likely than this tell nothing


@njit(nogil=True, cache=True, error_model="numpy")
def add_steps(row, col, probability, frame, position, shift, inverse, axis, middle, sums):  # pragma: no cover
    """Add up the steps from each frame to the next, on either side of its middle.

    row, col (Q,) i4, probability (Q,) f8 pairs; frame (N,) i8; position, shift (N, A) f8;
    inverse (A,) f8: inverse of the average variance; axis, middle (F,) f8: where each frame is divided.
    Added to sums (F, 2, 2) f8: for each frame and side, the probabilities, and the steps relative to the
    average, weighted by probability.
    """
    axes = len(inverse)
    for e in range(len(row)):
        i, j, p = row[e], col[e], probability[e]
        if p <= _IMPROBABLE or frame[j] != frame[i] + 1:
            continue
        square = 0.0
        for k in range(axes):
            step = position[j, k] - position[i, k] - shift[i, k]
            square += step * step * inverse[k]
        side = np.int64(position[i, axis] > middle[frame[i]])
        sums[frame[i], side, 0] += p
        sums[frame[i], side, 1] += p * math.sqrt(square / axes)
