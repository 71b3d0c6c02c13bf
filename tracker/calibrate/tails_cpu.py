"""CPU kernels of tails: histograms of squared distances, and the likelihood of Student's t.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def count_near(distance2, size, weight, largest, near, counts):  # pragma: no cover
    """Make a weighted histogram of squared distances with given lower bin edges.

    distance2, weight (Q,) f8; size (Q,) i8, with at most two different values; near (B,) f8: 0, then a
    geometric series whose last value exceeds all distances. Added to: counts (2, B) f8: for size `largest`,
    and for others.
    """
    fine = 1 / math.log(near[2] / near[1])
    for q in range(len(distance2)):
        far, to = distance2[q], 0
        if far > near[1]:
            to = min(1 + np.int64(math.log(far / near[1]) * fine), len(near) - 2)
            # Logarithms are rounded.
            to += np.int64(near[to + 1] < far) - np.int64(near[to] >= far)
        counts[np.int64(size[q] != largest), to] += weight[q]


@njit(nogil=True, cache=True)
def log_likelihood(near, counts, sizes, freedom, scale):  # pragma: no cover
    """Log likelihood of Student's t, without constant terms.

    near (B,), counts (2, B) f8 as in `count_near`; sizes (2,) i8: the dimensions of each row of counts.
    """
    value = 0.0
    for row in range(2):
        power, fallen, total = (freedom + sizes[row]) / 2, 0.0, 0.0
        for b in range(near.shape[0]):
            if counts[row, b] > 0:
                total += counts[row, b]
                fallen += counts[row, b] * math.log1p(near[b] / (freedom * scale))
        constant = math.lgamma(power) - math.lgamma(freedom / 2)
        value += total * (constant - sizes[row] / 2 * math.log(freedom * scale / 2)) - power * fallen
    return value


@njit(nogil=True, cache=True)
def likeliest(near, counts, sizes, freedoms, scales, least):  # pragma: no cover
    """Maximum of the likelihood over degrees of freedom (F,) f8 and scales (S,) f8, and its value.

    near, counts, sizes as in `log_likelihood`; least (F,) i8: the first scale that is allowed with each.
    """
    chosen, most, at = (0, 0), -np.inf, len(scales) // 2
    for f in range(len(freedoms)):
        at = max(at, least[f])
        value = log_likelihood(near, counts, sizes, freedoms[f], scales[at])
        for way in (1, -1):
            # Concave in the log of the scale: one climbs from where the last were likeliest.
            while least[f] <= at + way < len(scales):
                next_value = log_likelihood(near, counts, sizes, freedoms[f], scales[at + way])
                if next_value <= value:
                    break
                value, at = next_value, at + way
        if value > most:
            chosen, most = (f, at), value
    return chosen, most
