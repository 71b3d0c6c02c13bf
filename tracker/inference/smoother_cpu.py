"""CPU kernels of both sides: likelihood ratios of links by the past of the tail and the future of the head.

Each row writes its own links alone: no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .filter_cpu import FARTHEST, LEAST_WEIGHT, TWO_PI, fresh_weights, predicted, quarter

LEAST_INFORMATION = 1e-6  # guard: information on a step, in that of its prior, below which it is none
HOPELESS = 1e-5  # error level: odds by the past and by the future below which a link is not smoothed
COUNTED = 1e-3  # error level: odds by either below which a link adds nothing to the moments
LEAST_VARIANCE = 1e-12  # guard: of an observation, in the variance of a step


@njit(nogil=True, cache=True, error_model="numpy")
def future_as_observations(first, last, steps, messages, factor):  # pragma: no cover
    """Replace the states of backward messages by what they say of the step s into their tail.

    p(future | x, s) is two scalar observations, of s and of x - beta s. The stationary prior of s is
    divided out here, once: this is where the past and the future would count it twice. Written in place,
    (E, K, D, 5): value and variance of the first (-1: none), value of the second, beta, variance of the
    second. And factor (E, K) f8, of the weight of the message.
    """
    for g in range(first, last):
        for c in range(len(steps.share)):
            a, log = steps.correlation[c], 0.0
            for d in range(len(steps.noise)):
                of, prior = messages.state, steps.variance[c, d]
                x, xx, xs = of[g, c, d, 0], of[g, c, d, 2], of[g, c, d, 3]
                var = a * a * of[g, c, d, 4] + prior * (1 - a * a)
                mean, beta = -a * of[g, c, d, 1], -a * xs / var
                information = 1 / var - 1 / prior
                if information * prior > LEAST_INFORMATION:
                    z = mean / (var * information)
                    of[g, c, d, 0], of[g, c, d, 1] = z, 1 / information
                    away = (z - mean) * (z - mean) / var
                    log += math.log(TWO_PI * prior / (information * var)) - away + z * z / prior
                else:
                    of[g, c, d, 0], of[g, c, d, 1] = 0.0, -1.0
                    beta, mean = 0.0, 0.0
                spread = xx + beta * beta * var + 2 * beta * a * xs
                of[g, c, d, 2], of[g, c, d, 3] = x - beta * mean, beta
                of[g, c, d, 4] = max(spread, LEAST_VARIANCE * prior)
            factor[g, c] = math.exp(0.5 * log)


@njit(nogil=True, cache=True, error_model="numpy")
def _past(i, lag, steps, places, side, messages, stay, fresh, which, weight, part):  # pragma: no cover
    """Components (link or none, class) of tail i, `lag` frames on.

    Written: which (M,) i8 the class, plus K if the step is fresh; weight (M,) f8; part (M, D, 9) f8: state
    x, s, xx, xs, ss and, of the step before, gains on x and s, mean, variance that stays. Returns M.
    """
    classes = len(stay)
    start = places.frame[i]
    scale = steps.step_scale[start]
    fresh_weights(i, lag, steps, side, messages, stay, fresh)
    m = 0
    for p in range(side.in_start[i], side.in_start[i + 1] + 1):
        begins = p == side.in_start[i + 1]
        e = np.int64(0) if begins else np.int64(side.in_link[p])
        for c in range(classes):
            w = fresh[c] if begins else messages.weight[e, c] * stay[c]
            if w < LEAST_WEIGHT * (steps.share[c] if begins else 1.0):
                continue
            which[m] = c + classes * begins
            weight[m] = w
            for d in range(len(steps.noise)):
                if begins:
                    state = (0.0, 0.0, steps.noise[d], 0.0, steps.variance[c, d])
                else:
                    of = messages.state
                    state = (of[e, c, d, 0], of[e, c, d, 1], of[e, c, d, 2], of[e, c, d, 3], of[e, c, d, 4])
                a, variance = steps.correlation[c], steps.variance[c, d]
                x, s, xx, xs, ss = predicted(a, variance, steps.step_scale, lag, start, 1, state)
                part[m, d, 0], part[m, d, 1] = x, s
                part[m, d, 2], part[m, d, 3], part[m, d, 4] = xx, xs, ss
                if not begins and lag == 1:
                    c1 = steps.correlation[c] * state[4]
                    c0 = state[3] + scale * c1
                    det = 1 / (xx * ss - xs * xs)
                    j0, j1 = (c0 * ss - c1 * xs) * det, (c1 * xx - c0 * xs) * det
                    part[m, d, 5], part[m, d, 6], part[m, d, 7] = j0, j1, state[1]
                    part[m, d, 8] = state[4] - j0 * c0 - j1 * c1
            m += 1
    return m


@njit(nogil=True, cache=True, error_model="numpy")
def _both(before, seen):  # pragma: no cover
    """One axis of a pair of components: the state at the head given the past and the future.

    before is the state by the past, seen what the future says as observations. Returns x, s, xx, xs, ss given
    both, and the quadratic form and the variances of the Gaussian that they have in common.
    """
    x, s, xx, xs, ss = before
    step, variance, at, beta, spread = seen
    quad, det = 0.0, 1.0
    if variance > 0:
        det = TWO_PI * (ss + variance)
        precision = 1 / (ss + variance)
        u = step - s
        quad = u * u * precision
        k0, k1 = xs * precision, ss * precision
        x += k0 * u
        s += k1 * u
        xx -= k0 * xs
        xs -= k0 * ss
        ss -= k1 * ss
    h0, h1 = xx - beta * xs, xs - beta * ss
    v = h0 - beta * h1 + spread
    precision = 1 / v
    u = at - x + beta * s
    quad += u * u * precision
    det *= TWO_PI * v
    k0, k1 = h0 * precision, h1 * precision
    return x + k0 * u, s + k1 * u, xx - k0 * h0, xs - k0 * h1, ss - k1 * h1, quad, det


@njit(nogil=True, cache=True, error_model="numpy")
def _future_fresh(j, steps, ahead, future, weight):  # pragma: no cover
    """Write the weights (K,) of no message from the future of head j, for a step of each class.

    Its track ends there, or the next step is drawn anew.
    """
    renewed = 0.0
    for q in range(ahead.in_start[j], ahead.in_start[j + 1]):
        for c in range(len(weight)):
            renewed += future.weight[ahead.in_link[q], c] * steps.renewal[c]
    for c in range(len(weight)):
        weight[c] = future.fresh[j] + steps.entry[c] / steps.share[c] * renewed


@njit(nogil=True, cache=True, error_model="numpy")
def _clear(f, moments):  # pragma: no cover
    """Write that link f adds nothing to the moments."""
    for d in range(moments.residual.shape[1]):
        moments.residual[f, d] = 0
    for c in range(moments.continued.shape[1]):
        moments.continued[f, c] = 0
        moments.renewed[f, c] = 0
        for d in range(moments.residual.shape[1]):
            moments.square[f, c, d] = 0
            moments.fresh_square[f, c, d] = 0
            moments.product[f, c, d] = 0
            moments.before_square[f, c, d] = 0


@njit(nogil=True, cache=True, error_model="numpy")
def _add(f, w, k, c, lag, gap, which, part, both, moments):  # pragma: no cover
    """Add a pair of components to the moments of link f: both (D, 5) is the state given both sides."""
    fresh = which[k] != c
    if fresh:
        moments.renewed[f, c] += w
    else:
        moments.continued[f, c] += w
    for d in range(len(gap)):
        x, s, xx, xs, ss = both[d, 0], both[d, 1], both[d, 2], both[d, 3], both[d, 4]
        moments.residual[f, d] += w * (xx + x * x)
        if fresh:
            moments.fresh_square[f, c, d] += w * (ss + s * s)
            continue
        moments.square[f, c, d] += w * (ss + s * s)
        if lag == 1:  # the step before, smoothed
            j0, j1 = part[k, d, 5], part[k, d, 6]
            before = part[k, d, 7] + j0 * (x - gap[d] - part[k, d, 0]) + j1 * (s - part[k, d, 1])
            along = j0 * xs + j1 * ss
            spread = part[k, d, 8] + j0 * (j0 * xx + j1 * xs) + j1 * along
            moments.before_square[f, c, d] += w * (spread + before * before)
            moments.product[f, c, d] += w * (along + before * s)


@njit(nogil=True, cache=True, error_model="numpy")
def _divide(f, share, moments):  # pragma: no cover
    """Multiply the moments of link f by a number."""
    for c in range(moments.continued.shape[1]):
        moments.continued[f, c] *= share
        moments.renewed[f, c] *= share
        for d in range(moments.residual.shape[1]):
            moments.square[f, c, d] *= share
            moments.fresh_square[f, c, d] *= share
            moments.product[f, c, d] *= share
            moments.before_square[f, c, d] *= share
    for d in range(moments.residual.shape[1]):
        moments.residual[f, d] *= share


@njit(nogil=True, cache=True, error_model="numpy")
def smooth_rows(
    first, last, steps, places, behind, ahead, past, future, factor, ratio, moments
):  # pragma: no cover
    """Write ratio (E,) f8, the likelihood ratio of the links of some rows, and their moments.

    behind, ahead: directions of the forward and the backward filter; past, future: their messages, the latter
    as observations with factor (E, K).
    """
    classes, axes = steps.variance.shape[0], len(steps.noise)
    room = (behind.most + 1) * classes
    which, weight, part = np.empty(room, np.int64), np.empty(room), np.empty((room, axes, 9))
    stay, fresh, ends_weight = np.empty(classes), np.empty(classes), np.empty(classes)
    gap, both = np.empty(axes), np.empty((axes, 5))
    counted = len(moments.residual) > 0
    for i in range(first, last):
        lag, m = 0, 0
        for f in range(behind.out_start[i], behind.out_start[i + 1]):
            j = behind.far[f]
            before, after = 0.0, 0.0
            for c in range(classes):
                before += past.likelihood[f, c]
                after += future.likelihood[f, c]
            if counted:
                _clear(f, moments)
            root = quarter(ahead.own[f] * ahead.rival[f])
            odds = max(before, after) / (root * root * root)
            if odds < HOPELESS:
                ratio[f] = before
                continue
            if places.lag[f] != lag:
                lag = places.lag[f]
                m = _past(i, lag, steps, places, behind, past, stay, fresh, which, weight, part)
            _future_fresh(j, steps, ahead, future, ends_weight)
            for d in range(axes):
                gap[d] = places.position[i, d] - places.position[j, d] + places.flow[i, d] * lag
            total, adds = 0.0, counted and odds > COUNTED
            for k in range(m):
                c = which[k] % classes
                for q in range(ahead.in_start[j], ahead.in_start[j + 1] + 1):
                    ends = q == ahead.in_start[j + 1]
                    g = np.int64(0) if ends else np.int64(ahead.in_link[q])
                    if ends:
                        w = ends_weight[c]
                    else:
                        w = future.weight[g, c] * (1 - steps.renewal[c]) / steps.share[c]
                    if w < LEAST_WEIGHT:
                        continue
                    w = w if ends else w * factor[g, c]
                    quad, det = 0.0, 1.0
                    for d in range(axes):
                        x = gap[d] + part[k, d, 0]
                        before_it = (x, part[k, d, 1], part[k, d, 2], part[k, d, 3], part[k, d, 4])
                        of, seen = future.state, (0.0, -1.0, 0.0, 0.0, steps.noise[d])
                        if not ends:
                            seen = (
                                of[g, c, d, 0],
                                of[g, c, d, 1],
                                of[g, c, d, 2],
                                of[g, c, d, 3],
                                of[g, c, d, 4],
                            )
                        x, s, xx, xs, ss, away, spread = _both(before_it, seen)
                        both[d, 0], both[d, 1] = x, s
                        both[d, 2], both[d, 3], both[d, 4] = xx, xs, ss
                        quad += away
                        det *= spread
                    if quad > FARTHEST:
                        continue
                    w *= weight[k] * math.exp(-0.5 * quad) / math.sqrt(det)
                    if not w > 0:
                        continue
                    total += w
                    if adds:
                        _add(f, w, k, c, lag, gap, which, part, both, moments)
            ratio[f] = total * places.prior[f]
            if adds and total > 0:
                _divide(f, 1 / total, moments)
