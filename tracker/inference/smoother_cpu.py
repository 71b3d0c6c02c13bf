"""CPU kernels of the smoother: likelihood ratios of links from the past of tails and future of heads.

Each row writes its own links alone: no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .filter_cpu import FARTHEST, LEAST_WEIGHT, TWO_PI, fresh_weights, predicted

LEAST_INFORMATION = 1e-6  # guard: information on a step, in that of its prior, below which it is none
HOPELESS = 1e-5  # error level: odds by the past and by the future below which a link is not smoothed
COUNTED = 1e-3  # error level: odds by either below which a link adds nothing to the moments
LEAST_VARIANCE = 1e-12  # guard: of an observation, in the variance of a step


@njit(nogil=True, cache=True, error_model="numpy")
def future_as_observations(first, last, steps, messages, factor):  # pragma: no cover
    """Replace the states of backward messages by their likelihood of the step s into their tail.

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


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _past(i, lag, steps, places, side, messages, stay, fresh, which, weight, part):  # pragma: no cover
    """Components (link or none, class) of tail i, `lag` intervals on.

    Written: which (M,) i8 the class, plus K if the step is fresh; weight (M,) f8; part (M, D, 9) f8: state
    x, s, xx, xs, ss and, of the step before, gains on x and s, mean, variance that stays. Returns M.
    """
    in_start, in_link, known, of = side.in_start, side.in_link, messages.weight, messages.state
    noise, variance, correlation, share = steps.noise, steps.variance, steps.correlation, steps.share
    scales, start, classes = steps.step_scale, places.when[i], len(stay)
    scale = scales[start]
    fresh_weights(i, lag, steps, side, messages, stay, fresh)
    m = 0
    for p in range(in_start[i], in_start[i + 1] + 1):
        begins = p == in_start[i + 1]
        e = np.int64(0) if begins else np.int64(in_link[p])
        for c in range(classes):
            w = fresh[c] if begins else known[e, c] * stay[c]
            if w >= LEAST_WEIGHT * (share[c] if begins else 1.0):
                which[m] = c + classes * begins
                weight[m] = w
                a = correlation[c]
                for d in range(len(noise)):
                    state = (0.0, 0.0, noise[d], 0.0, variance[c, d])
                    if not begins:
                        state = (
                            of[e, c, d, 0],
                            of[e, c, d, 1],
                            of[e, c, d, 2],
                            of[e, c, d, 3],
                            of[e, c, d, 4],
                        )
                    x, s, xx, xs, ss = predicted(a, variance[c, d], scales, lag, start, 1, state)
                    part[m, d, 0], part[m, d, 1] = x, s
                    part[m, d, 2], part[m, d, 3], part[m, d, 4] = xx, xs, ss
                    if not begins and lag == 1:
                        c1 = a * state[4]
                        c0 = state[3] + scale * c1
                        det = 1 / (xx * ss - xs * xs)
                        j0, j1 = (c0 * ss - c1 * xs) * det, (c1 * xx - c0 * xs) * det
                        part[m, d, 5], part[m, d, 6], part[m, d, 7] = j0, j1, state[1]
                        part[m, d, 8] = state[4] - j0 * c0 - j1 * c1
                m += 1
    return m


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _both(before, seen):  # pragma: no cover
    """One axis of a pair of components: the state at the head, given past and future.

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


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _future_fresh(first, last, link, alone, renewal, enters, incoming, weight):  # pragma: no cover
    """Write the weights (K,) of no message from the future of a head, for a step of each class.

    Its track ends there, alone, or the next step is drawn anew; link[first:last] are the messages that come
    in from the future, incoming (E, K) their weights; enters (K,) f8 is the entry of a class over its share.
    """
    renewed = 0.0
    for q in range(first, last):
        for c in range(len(weight)):
            renewed += incoming[link[q], c] * renewal[c]
    for c in range(len(weight)):
        weight[c] = alone + enters[c] * renewed


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _add(w, c, fresh, lag, gap, k, part, both, chance, sums, residual):  # pragma: no cover
    """Add a pair of components of class c to the sums of a link, in the form of `Moments`.

    part[k] (D, 9) is the state by the past, as in `_past`, and both (D, 5) that by both sides.
    """
    chance[c, np.int64(fresh)] += w
    for d in range(len(gap)):
        x, s, xx, xs, ss = both[d, 0], both[d, 1], both[d, 2], both[d, 3], both[d, 4]
        residual[d] += w * (xx + x * x)
        sums[c, d, np.int64(fresh)] += w * (ss + s * s)
        if lag == 1 and not fresh:  # the step before, smoothed
            j0, j1 = part[k, d, 5], part[k, d, 6]
            mean = part[k, d, 7] + j0 * (x - gap[d] - part[k, d, 0]) + j1 * (s - part[k, d, 1])
            along = j0 * xs + j1 * ss
            spread = part[k, d, 8] + j0 * (j0 * xx + j1 * xs) + j1 * along
            sums[c, d, 2] += w * (along + mean * s)
            sums[c, d, 3] += w * (spread + mean * mean)


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _write(f, factor, chance, sums, residual, to_chance, to_sums, to_residual):  # pragma: no cover
    """Write the moments of link f: a factor times the sums, which are 0 afterwards."""
    for d in range(len(residual)):
        to_residual[f, d], residual[d] = factor * residual[d], 0.0
    for c in range(len(chance)):
        for k in range(2):
            to_chance[f, c, k], chance[c, k] = factor * chance[c, k], 0.0
        for d in range(len(residual)):
            for k in range(4):
                to_sums[f, c, d, k], sums[c, d, k] = factor * sums[c, d, k], 0.0


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
    chance, sums, residual = np.zeros((classes, 2)), np.zeros((classes, axes, 4)), np.zeros(axes)
    # Arrays of records are looked up here: each look-up counts their owners, which threads wait for.
    noise, renewal, share, away = steps.noise, steps.renewal, steps.share, places.away
    lags, prior, out_start, far = places.lag, places.prior, behind.out_start, behind.far
    own, rival, in_start, in_link = ahead.own, ahead.rival, ahead.in_start, ahead.in_link
    by_past, by_future, incoming, of = past.likelihood, future.likelihood, future.weight, future.state
    alone, enters = future.fresh, steps.entry / steps.share
    to_chance, to_sums, to_residual = moments.chance, moments.sums, moments.residual
    counted = len(to_residual) > 0
    for i in range(first, last):
        lag, m = 0, 0
        for f in range(out_start[i], out_start[i + 1]):
            j = far[f]
            before, after = 0.0, 0.0
            for c in range(classes):
                before += by_past[f, c]
                after += by_future[f, c]
            odds = max(before, after) / (own[f] * rival[f]) ** (1 - ahead.power)
            if odds < HOPELESS:
                ratio[f] = before
                if counted:
                    _write(f, 0.0, chance, sums, residual, to_chance, to_sums, to_residual)
                continue
            if lags[f] != lag:
                lag = lags[f]
                m = _past(i, lag, steps, places, behind, past, stay, fresh, which, weight, part)
            begin, end = in_start[j], in_start[j + 1]
            _future_fresh(begin, end, in_link, alone[j], renewal, enters, incoming, ends_weight)
            for d in range(axes):
                gap[d] = away[f, d]
            total, adds = 0.0, counted and odds > COUNTED
            for k in range(m):
                c = which[k] % classes
                for q in range(begin, end + 1):
                    ends = q == end
                    g = np.int64(0) if ends else np.int64(in_link[q])
                    w = ends_weight[c] if ends else incoming[g, c] * (1 - renewal[c]) / share[c]
                    if w * weight[k] < LEAST_WEIGHT:
                        continue
                    w = w if ends else w * factor[g, c]
                    quad, det = 0.0, 1.0
                    for d in range(axes):
                        x = gap[d] + part[k, d, 0]
                        before_it = (x, part[k, d, 1], part[k, d, 2], part[k, d, 3], part[k, d, 4])
                        seen = (0.0, -1.0, 0.0, 0.0, noise[d])
                        if not ends:
                            seen = (
                                of[g, c, d, 0],
                                of[g, c, d, 1],
                                of[g, c, d, 2],
                                of[g, c, d, 3],
                                of[g, c, d, 4],
                            )
                        x, s, xx, xs, ss, square, spread = _both(before_it, seen)
                        both[d, 0], both[d, 1] = x, s
                        both[d, 2], both[d, 3], both[d, 4] = xx, xs, ss
                        quad += square
                        det *= spread
                    if quad > FARTHEST:
                        continue
                    w *= weight[k] * math.exp(-0.5 * quad) / math.sqrt(det)
                    if not w > 0:
                        continue
                    total += w
                    if adds:
                        _add(w, c, which[k] != c, lag, gap, k, part, both, chance, sums, residual)
            ratio[f] = total * prior[f]
            if counted:
                norm = 1 / total if total > 0 else 0.0
                _write(f, norm, chance, sums, residual, to_chance, to_sums, to_residual)
