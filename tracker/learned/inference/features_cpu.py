"""CPU kernels of features: scalar filters along links, and likelihood ratios of links."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

from ...compute.kernels import kernel
from ...compute.tolerances import LEAST, NEGLIGIBLE, SURE


@kernel(error_model="numpy")
def feature_filter(
    order, start, link, far, lag, weight, value, error, kept, correlation, state
):  # pragma: no cover
    """Write state (N, K, 2) f8: mean and variance of what is kept, given the past and the value there.

    order (N,) i8 of detections in time; start (N + 1,), link (E,) the incoming links; far, lag, weight (E,)
    their other end, lag and weight; value, error (N, K) f8 as `KeptAxes.seen_in`; kept, correlation (K,).
    """
    for i in order:
        for m in range(len(kept)):
            v0, mean, square, left = kept[m], 0.0, 0.0, 1.0
            for p in range(start[i], start[i + 1]):
                e = link[p]
                w = min(weight[e], left)
                if w < NEGLIGIBLE:
                    continue
                left -= w
                a = correlation[m] ** lag[e]
                x = a * state[far[e], m, 0]
                mean += w * x
                square += w * (a * a * state[far[e], m, 1] + v0 * (1 - a * a) + x * x)
            square += left * v0
            var = min(max(square - mean * mean, LEAST), v0)
            gain = var / (var + 1 - v0 + error[i, m])
            state[i, m, 0] = mean + gain * (value[i, m] - mean)
            state[i, m, 1] = var * (1 - gain)


@kernel(error_model="numpy")
def feature_ratio(
    first, last, ends, lag, value, error, kept, correlation, past, future, ratio
):  # pragma: no cover
    """Write ratio (3, E) f8 of links first:last: likelihood ratios by the past, the future, and both.

    ends are tail and head (E,); past, future (N, K, 2) f8 the states of both filters.
    """
    for f in range(first, last):
        i, j = ends[0][f], ends[1][f]
        log0, log1, log2 = 0.0, 0.0, 0.0
        for m in range(len(kept)):
            v0 = kept[m]
            a = correlation[m] ** lag[f]
            fresh = v0 * (1 - a * a)
            x, p = a * past[i, m, 0], a * a * past[i, m, 1] + fresh
            b, s, n = value[j, m], p + 1 - v0 + error[j, m], 1 + error[j, m]
            log0 += 0.5 * (b * b / n - (b - x) * (b - x) / s - math.log(s / n))
            y, q = a * future[j, m, 0], a * a * future[j, m, 1] + fresh
            b, s, n = value[i, m], q + 1 - v0 + error[i, m], 1 + error[i, m]
            log1 += 0.5 * (b * b / n - (b - y) * (b - y) / s - math.log(s / n))
            # Two estimates of what is kept, whose stationary prior is divided out once.
            z, r = future[j, m, 0], future[j, m, 1]
            both = 1 / p + 1 / r - 1 / v0
            t = x / p + z / r
            log2 += 0.5 * (math.log(v0 / (p * r * both)) - x * x / p - z * z / r + t * t / both)
        ratio[0, f] = math.exp(min(log0, SURE))
        ratio[1, f] = math.exp(min(log1, SURE))
        ratio[2, f] = math.exp(min(log2, SURE))
