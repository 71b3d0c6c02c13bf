"""CPU kernels of the smoother: likelihood ratios of links from the past of tails and future of heads.

Each row writes its own links alone: no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ...compute.kernels import inner_kernel, kernel
from ...compute.tolerances import LEAST, NEGLIGIBLE, TINY
from .filter_cpu import FARTHEST, fresh_weights, predicted, state_of
from .powers_cpu import gauss

HOPELESS = 1e-5  # error level: odds by the past and by the future below which a link is not smoothed


@kernel(error_model="numpy")
def future_as_observations(first, last, steps, messages, factor):  # pragma: no cover
    """Replace the states of backward messages by their likelihood of the step s into their tail.

    p(future | x, s) is two scalar observations, of s and of x - beta s. The stationary prior of s is
    divided out here, once: this is where the past and the future would count it twice. Written in place,
    (E, K, D, 5): value and variance of the first (-1: none), value of the second, beta, variance of the
    second. And factor (E, K) f8, the weight of the message times its norm and the odds of no renewal.
    """
    noise, variance, correlation, of = steps.noise, steps.variance, steps.correlation, messages.state
    for g in range(first, last):
        for c in range(len(correlation)):
            a, norm, exponent = correlation[c], 1.0, 0.0
            for d in range(len(noise)):
                prior = variance[c, d]
                x, xx, xs = np.float64(of[g, c, d, 0]), np.float64(of[g, c, d, 2]), np.float64(of[g, c, d, 3])
                var = a * a * of[g, c, d, 4] + prior * (1 - a * a)
                mean, beta = -a * of[g, c, d, 1], -a * xs / var
                information = 1 / var - 1 / prior
                if information * prior > LEAST:
                    z = mean / (var * information)
                    of[g, c, d, 0], of[g, c, d, 1] = z, 1 / information
                    exponent += (z - mean) * (z - mean) / var - z * z / prior
                    norm *= math.tau * prior / (information * var)
                else:
                    of[g, c, d, 0], of[g, c, d, 1] = 0.0, -1.0
                    beta, mean = 0.0, 0.0
                spread = xx + beta * beta * var + 2 * beta * a * xs
                of[g, c, d, 2], of[g, c, d, 3] = x - beta * mean, beta
                of[g, c, d, 4] = max(spread, TINY * prior)
            stays = messages.weight[g, c] * (1 - steps.renewal[c]) / steps.share[c]
            factor[g, c] = stays * math.sqrt(norm) * math.exp(-0.5 * exponent)


@inner_kernel(error_model="numpy", forceinline=True)
def _past(
    i, lag, start, noise, variance, correlation, scales, renewal, share, entry, in_start, in_link, entering,
    unlinked, of, which, weight, part, stay, fresh,
):  # pragma: no cover  # fmt: skip
    """Components (link or none, class) of tail i, `lag` intervals on.

    Its first step has the scale scales[start]; known and of are weight and state of the links that come in,
    none the weight of none. Written: which (M,) i8 the class, plus K if the step is fresh; weight (M,) f8;
    part (M, D, 9) f8: state x, s, xx, xs, ss and, of the step before, gains on x and s, mean, variance that
    stays; stay (K,) and fresh (K,) f8. Returns M.
    """
    classes, scale = len(stay), scales[start]
    fresh_weights(i, lag, renewal, share, entry, in_start, in_link, entering, unlinked, stay, fresh)
    m = 0
    for p in range(in_start[i], in_start[i + 1] + 1):
        begins = p == in_start[i + 1]
        e = np.int64(-1) if begins else np.int64(in_link[p])
        for c in range(classes):
            w = fresh[c] if begins else entering[e, c] * stay[c]
            if w >= NEGLIGIBLE * (share[c] if begins else 1.0):
                which[m] = c + classes * begins
                weight[m] = w
                a = correlation[c]
                for d in range(len(noise)):
                    x, s, xx, xs, ss = state_of(of, e, c, d, noise[d], variance[c, d])
                    c1 = a * ss
                    c0, mean, stays = xs + scale * c1, s, ss
                    x, s, xx, xs, ss = predicted(a, variance[c, d], scales, lag, start, 1, x, s, xx, xs, ss)
                    part[m, d, 0], part[m, d, 1] = x, s
                    part[m, d, 2], part[m, d, 3], part[m, d, 4] = xx, xs, ss
                    if not begins and lag == 1:
                        det = 1 / (xx * ss - xs * xs)
                        j0, j1 = (c0 * ss - c1 * xs) * det, (c1 * xx - c0 * xs) * det
                        part[m, d, 5], part[m, d, 6], part[m, d, 7] = j0, j1, mean
                        part[m, d, 8] = stays - j0 * c0 - j1 * c1
                m += 1
    return m


@inner_kernel(error_model="numpy", forceinline=True)
def _add(w, c, fresh, lag, gap, k, part, both, shares, sums, residual):  # pragma: no cover
    """Add a pair of components of class c to the sums of a link, in the form of `Moments`.

    part[k] (D, 9) is the state by the past, as in `_past`, and both (D, 5) that by both sides.
    """
    shares[c, np.int64(fresh)] += w
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


@inner_kernel(error_model="numpy", forceinline=True)
def _write(f, factor, shares, sums, residual, to_shares, to_sums, to_residual):  # pragma: no cover
    """Write the moments of link f: a factor times the sums, which are 0 afterwards."""
    for d in range(len(residual)):
        to_residual[f, d], residual[d] = factor * residual[d], 0.0
    for c in range(len(shares)):
        for k in range(2):
            to_shares[f, c, k], shares[c, k] = factor * shares[c, k], 0.0
        for d in range(len(residual)):
            for k in range(4):
                to_sums[f, c, d, k], sums[c, d, k] = factor * sums[c, d, k], 0.0


@kernel(error_model="numpy")
def smooth_rows(
    first, last, steps, places, behind, ahead, past, future, factor, G, moments
):  # pragma: no cover
    """Write G (E,) f8, the likelihood ratio of the links of some rows, and their moments.

    behind, ahead: directions of the forward and the backward filter; past, future: their messages, the latter
    as observations with factor (E, K).
    """
    classes, axes = steps.variance.shape[0], len(steps.noise)
    room = (behind.most + 1) * classes
    which, weight, part = np.empty(room, np.int64), np.empty(room), np.empty((room, axes, 9))
    stay, fresh = np.empty(classes), np.empty(classes)
    ends_weight, gap, both = np.empty(classes), np.empty(axes), np.empty((axes, 5))
    shares, sums, residual = np.zeros((classes, 2)), np.zeros((classes, axes, 4)), np.zeros(axes)
    # Arrays of records are looked up here: each look-up counts their owners, which threads wait for.
    noise, renewal, away = steps.noise, steps.renewal, places.away
    lags, prior, exclusion = places.lag, places.prior, places.exclusion
    out_start, far, in_start, in_link = behind.out_start, behind.far, ahead.in_start, ahead.in_link
    by_past, by_future, incoming, of = past.likelihood, future.likelihood, future.weight, future.state
    unlinked, begins, when = future.fresh, past.fresh, places.when
    variance, correlation, scales = steps.variance, steps.correlation, steps.step_scale
    share, entry, enters, stays = steps.share, steps.entry, np.empty(classes), np.empty(classes)
    for c in range(classes):  # expressions of arrays take a second to compile
        enters[c], stays[c] = entry[c] / share[c], (1 - renewal[c]) / share[c]
    to_shares, to_sums, to_residual = moments.shares, moments.sums, moments.residual
    to_start, to_link, entering, state = behind.in_start, behind.in_link, past.weight, past.state
    counted = len(to_residual) > 0
    for i in range(first, last):
        lag, m = 0, 0
        for f in range(out_start[i], out_start[i + 1]):
            j = far[f]
            earlier, after = 0.0, 0.0
            for c in range(classes):
                earlier += by_past[f, c]
                after += by_future[f, c]
            odds = max(earlier, after) * exclusion[f]
            some = odds >= HOPELESS
            if some and lags[f] != lag:
                lag = np.int64(lags[f])
                m = _past(
                    i, lag, when[i], noise, variance, correlation, scales, renewal, share, entry, to_start,
                    to_link, entering, begins[i], state, which, weight, part, stay, fresh,
                )  # fmt: skip
            begin, end = in_start[j], in_start[j + 1]
            renewed = 0.0  # its track ends there, or the next step is drawn anew
            for q in range(begin, end):
                for c in range(classes):
                    renewed += incoming[in_link[q], c] * renewal[c]
            for c in range(classes):
                ends_weight[c] = unlinked[j] + enters[c] * renewed
            for d in range(axes):
                gap[d] = away[f, d]
            total, adds = 0.0, counted and odds > NEGLIGIBLE
            for k in range(m if some else 0):
                c = which[k] % classes
                for q in range(begin, end + 1):
                    ends = q == end
                    g = np.int64(0) if ends else np.int64(in_link[q])
                    w = ends_weight[c] if ends else incoming[g, c] * stays[c]
                    if w * weight[k] < NEGLIGIBLE:
                        continue
                    w = weight[k] * (w if ends else factor[g, c])
                    quad, det = 0.0, 1.0
                    for d in range(axes):
                        x, s = gap[d] + part[k, d, 0], part[k, d, 1]
                        xx, xs, ss = part[k, d, 2], part[k, d, 3], part[k, d, 4]
                        h0, h1, v, u = xx, xs, xx + noise[d], -x
                        if not ends:
                            spread = np.float64(of[g, c, d, 1])
                            if spread > 0:  # what the future says about the step
                                det *= math.tau * (ss + spread)
                                precision = 1 / (ss + spread)
                                u = of[g, c, d, 0] - s
                                quad += u * u * precision
                                k0, k1 = xs * precision, ss * precision
                                x += k0 * u
                                s += k1 * u
                                xx -= k0 * xs
                                xs -= k0 * ss
                                ss -= k1 * ss
                            beta = np.float64(of[g, c, d, 3])
                            h0, h1 = xx - beta * xs, xs - beta * ss
                            v, u = h0 - beta * h1 + of[g, c, d, 4], of[g, c, d, 2] - x + beta * s
                        precision = 1 / v
                        quad += u * u * precision
                        det *= math.tau * v
                        if adds:
                            k0, k1 = h0 * precision, h1 * precision
                            both[d, 0], both[d, 1], both[d, 2] = x + k0 * u, s + k1 * u, xx - k0 * h0
                            both[d, 3], both[d, 4] = xs - k0 * h1, ss - k1 * h1
                    if quad > FARTHEST:
                        continue
                    w *= gauss(quad) / math.sqrt(det)
                    if not w > 0:
                        continue
                    total += w
                    if adds:
                        _add(w, c, which[k] != c, lag, gap, k, part, both, shares, sums, residual)
            G[f] = total * prior[f] if some else earlier
            if counted:
                norm = 1 / total if total > 0 else 0.0
                _write(f, norm, shares, sums, residual, to_shares, to_sums, to_residual)
