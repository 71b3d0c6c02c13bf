"""CPU kernels of the forward and backward filters.

The state of a link in class c, per axis: position at its far end (relative to the detection there) and the
last one-frame step s; means (x, s) and covariances (xx, xs, ss). Steps are a stationary autoregression, which
is reversible in time: so the backward filter is the forward filter with rows and columns exchanged.

Each row writes the weights of its incoming links and the messages of its outgoing ones, and reads what rows
of earlier frames wrote: no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

LEAST_WEIGHT = 1e-3  # error level: components of a mixture below this weight are not followed
FARTHEST = 600.0  # guard: squared standard deviations beyond which the exponential underflows
NOTHING = 1e-290  # guard: likelihood that is none
TWO_PI = 2 * math.pi


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def predicted(a, variance, scale, lag, start, way, state):  # pragma: no cover
    """State `lag` intervals on in a class of correlation a: start, start + way, …"""
    x, s, xx, xs, ss = state
    q = variance * (1 - a * a)
    for k in range(lag):
        g = scale[start + way * k]
        s = a * s
        xs = a * xs
        ss = a * a * ss + q
        x += g * s
        xx += g * (2 * xs + g * ss)
        xs += g * ss
    return x, s, xx, xs, ss


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def fresh_weights(i, lag, steps, side, messages, stay, fresh):  # pragma: no cover
    """Write the weights of a step drawn anew: of a track that begins at i, or of one that renews there.

    stay (K,) is the probability of no renewal over `lag` intervals; fresh (K,) are the weights.
    """
    in_start, in_link, weight = side.in_start, side.in_link, messages.weight
    renewed = 0.0
    for c in range(len(stay)):
        stay[c] = 1.0
        for _ in range(lag):
            stay[c] *= 1 - steps.renewal[c]
        for p in range(in_start[i], in_start[i + 1]):
            renewed += weight[in_link[p], c] * (1 - stay[c])
    for c in range(len(stay)):
        fresh[c] = steps.share[c] * messages.fresh[i] + steps.entry[c] * renewed


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _updated(m, noise, a, variance, scale, lag, start, way, state, part):  # pragma: no cover
    """Write component m: its state (D, 5), `lag` intervals on, updated by a detection there.

    part (M, D, 8) f8: mean x and s, precision of the innovation, 1 - gain of x, gain of s, covariances xx,
    xs, ss after the update. Returns the norm of the Gaussian.
    """
    det = 1.0
    for d in range(len(noise)):
        one = (state[d, 0], state[d, 1], state[d, 2], state[d, 3], state[d, 4])
        x, s, xx, xs, ss = predicted(a, variance[d], scale, lag, start, way, one)
        spread = xx + noise[d]
        precision = 1 / spread
        det *= TWO_PI * spread
        gain_x, gain_s = xx * precision, xs * precision
        part[m, d, 0], part[m, d, 1], part[m, d, 2] = x, s, precision
        part[m, d, 3], part[m, d, 4] = 1 - gain_x, gain_s
        part[m, d, 5], part[m, d, 6] = xx - xx * gain_x, xs - xs * gain_x
        part[m, d, 7] = ss - xs * gain_s
    return 1 / math.sqrt(det)


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _components(i, lag, start, steps, side, messages, stay, which, weight, part):  # pragma: no cover
    """Components (link, class) of detection i after the K of fresh steps; returns how many there are in all.

    Written: which (M,) i8, class; weight (M,) f8, times the norm of the Gaussian; part as in `_updated`.
    """
    in_start, in_link, known, state = side.in_start, side.in_link, messages.weight, messages.state
    noise, scale, variance, correlation = steps.noise, steps.step_scale, steps.variance, steps.correlation
    m = len(stay)
    for p in range(in_start[i], in_start[i + 1]):
        e = in_link[p]
        for c in range(len(stay)):
            w = known[e, c] * stay[c]
            if w >= LEAST_WEIGHT:
                which[m] = c
                weight[m] = w * _updated(
                    m, noise, correlation[c], variance[c], scale, lag, start, side.way, state[e, c], part
                )
                m += 1
    return m


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _incoming(i, side, messages):  # pragma: no cover
    """Write the weights of the links that come in to detection i, and of none: fractional messages."""
    in_start, in_link, own, rival = side.in_start, side.in_link, side.own, side.rival
    weight, likelihood = messages.weight, messages.likelihood
    norm = side.alone[i]
    classes = weight.shape[1]
    for p in range(in_start[i], in_start[i + 1]):
        e = in_link[p]
        pull = (own[e] * rival[e]) ** side.power / rival[e]
        for c in range(classes):
            w = likelihood[e, c] * pull
            weight[e, c] = w
            norm += w
    messages.total[i] = norm
    share = 1 / norm
    messages.fresh[i] = side.alone[i] * share
    for p in range(in_start[i], in_start[i + 1]):
        e = in_link[p]
        for c in range(classes):
            weight[e, c] *= share


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _likelihood(f, gap, m, which, weight, part, mass, total, likelihood, state):  # pragma: no cover
    """Write the likelihood of link f, apart from its prior, and its state: the moment match of m components.

    gap (D,) f8 from the far end; mass (K,), total (K, D, 5) f8 are room for sums.
    """
    axes = len(gap)
    for c in range(len(mass)):
        mass[c] = 0
        for d in range(axes):
            for k in range(5):
                total[c, d, k] = 0
    for k in range(m):
        quad = 0.0
        for d in range(axes):
            x = gap[d] + part[k, d, 0]
            quad += x * x * part[k, d, 2]
        if quad > FARTHEST or weight[k] == 0:
            continue
        w = weight[k] * math.exp(-0.5 * quad)
        c = which[k]
        mass[c] += w
        for d in range(axes):
            x = gap[d] + part[k, d, 0]
            s = part[k, d, 1] - part[k, d, 4] * x
            x *= part[k, d, 3]
            total[c, d, 0] += w * x
            total[c, d, 1] += w * s
            total[c, d, 2] += w * (part[k, d, 5] + x * x)
            total[c, d, 3] += w * (part[k, d, 6] + x * s)
            total[c, d, 4] += w * (part[k, d, 7] + s * s)
    for c in range(len(mass)):
        likelihood[f, c] = mass[c]
        if mass[c] < NOTHING:
            continue
        share = 1 / mass[c]
        for d in range(axes):
            x, s = total[c, d, 0] * share, total[c, d, 1] * share
            state[f, c, d, 0], state[f, c, d, 1] = x, s
            state[f, c, d, 2] = total[c, d, 2] * share - x * x
            state[f, c, d, 3] = total[c, d, 3] * share - x * s
            state[f, c, d, 4] = total[c, d, 4] * share - s * s


@njit(nogil=True, cache=True, error_model="numpy")
def filter_rows(blocks, steps, places, side, messages):  # pragma: no cover
    """One sweep in one direction over blocks of rows, (B, 2) i8, whose frames follow on one another."""
    when, away, prior, lags = places.when, places.away, places.prior, places.lag
    out_start, out_link, way = side.out_start, side.out_link, side.way
    noise, variance, likelihood, state = steps.noise, steps.variance, messages.likelihood, messages.state
    classes, axes = variance.shape[0], len(noise)
    room = (side.most + 1) * classes
    which, weight, part = np.empty(room, np.int64), np.empty(room), np.empty((room, axes, 8))
    stay, fresh, norm, mass = np.empty(classes), np.empty(classes), np.empty(classes), np.empty(classes)
    total, gap, begin = np.empty((classes, axes, 5)), np.empty(axes), np.zeros((axes, 5))
    last_lag, last_start = 0, -1  # those of the fresh steps in `part`
    for b in range(len(blocks)):
        for i in range(blocks[b, 0], blocks[b, 1]):
            _incoming(i, side, messages)
            start = when[i] if way > 0 else when[i] - 1
            lag, m = 0, 0
            for o in range(out_start[i], out_start[i + 1]):
                f = out_link[o]
                if lags[f] != lag:
                    lag = np.int64(lags[f])
                    fresh_weights(i, lag, steps, side, messages, stay, fresh)
                    for c in range(classes):
                        if lag != last_lag or start != last_start:
                            for d in range(axes):
                                begin[d, 2], begin[d, 4] = noise[d], variance[c, d]
                            a, scale = steps.correlation[c], steps.step_scale
                            which[c] = c
                            norm[c] = _updated(c, noise, a, variance[c], scale, lag, start, way, begin, part)
                        weight[c] = fresh[c] * norm[c] if fresh[c] >= LEAST_WEIGHT * steps.share[c] else 0.0
                    last_lag, last_start = lag, start
                    m = _components(i, lag, start, steps, side, messages, stay, which, weight, part)
                for d in range(axes):
                    gap[d] = way * away[f, d]
                _likelihood(f, gap, m, which, weight, part, mass, total, likelihood, state)
                for c in range(classes):
                    if likelihood[f, c] < NOTHING:
                        for d in range(axes):
                            state[f, c, d, 0], state[f, c, d, 1], state[f, c, d, 3] = 0.0, 0.0, 0.0
                            state[f, c, d, 2], state[f, c, d, 4] = noise[d], variance[c, d]
                    likelihood[f, c] *= prior[f]
