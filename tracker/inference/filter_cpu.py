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


@njit(nogil=True, cache=True, error_model="numpy")
def quarter(value):  # pragma: no cover
    """The fourth root."""
    return math.sqrt(math.sqrt(value))


@njit(nogil=True, cache=True, error_model="numpy")
def predicted(steps, c, d, lag, start, way, state):  # pragma: no cover
    """State `lag` frames on, the first over the interval `start`, the next over start + way, ..."""
    x, s, xx, xs, ss = state
    a = steps.correlation[c]
    q = steps.variance[c, d] * (1 - a * a)
    for k in range(lag):
        g = steps.step_scale[start + way * k]
        s = a * s
        xs = a * xs
        ss = a * a * ss + q
        x += g * s
        xx += g * (2 * xs + g * ss)
        xs += g * ss
    return x, s, xx, xs, ss


@njit(nogil=True, cache=True, error_model="numpy")
def fresh_weights(i, lag, steps, side, messages, stay, fresh):  # pragma: no cover
    """Write the weights of a step drawn anew: of a track that begins at i, or of one that renews there.

    stay (K,) is the probability of no renewal over `lag` frames; fresh (K,) are the weights.
    """
    renewed = 0.0
    for c in range(len(stay)):
        stay[c] = 1.0
        for _ in range(lag):
            stay[c] *= 1 - steps.renewal[c]
    for p in range(side.in_start[i], side.in_start[i + 1]):
        e = side.in_link[p]
        for c in range(len(stay)):
            renewed += messages.weight[e, c] * (1 - stay[c])
    for c in range(len(stay)):
        fresh[c] = steps.share[c] * messages.fresh[i] + steps.entry[c] * renewed


@njit(nogil=True, cache=True, error_model="numpy")
def _components(i, lag, start, steps, side, messages, stay, fresh, which, weight, part):  # pragma: no cover
    """Components (link or none, class) of detection i, `lag` frames on and updated by a detection there.

    Written: which (M,) i8 class; weight (M,) f8, divided by the norm of the Gaussian; part (M, D, 8) f8: mean
    x and s, precision of the innovation, 1 - gain of x, gain of s, covariances xx, xs, ss after the update.
    Returns M.
    """
    axes = len(steps.noise)
    fresh_weights(i, lag, steps, side, messages, stay, fresh)
    m = 0
    for p in range(side.in_start[i], side.in_start[i + 1] + 1):
        begins = p == side.in_start[i + 1]
        e = np.int64(0) if begins else np.int64(side.in_link[p])
        for c in range(len(stay)):
            w = fresh[c] if begins else messages.weight[e, c] * stay[c]
            if w < LEAST_WEIGHT * (steps.share[c] if begins else 1.0):
                continue
            which[m] = c
            det = 1.0
            for d in range(axes):
                r = steps.noise[d]
                if begins:
                    state = (0.0, 0.0, r, 0.0, steps.variance[c, d])
                else:
                    of = messages.state
                    state = (of[e, c, d, 0], of[e, c, d, 1], of[e, c, d, 2], of[e, c, d, 3], of[e, c, d, 4])
                x, s, xx, xs, ss = predicted(steps, c, d, lag, start, side.way, state)
                precision = 1 / (xx + r)
                det *= TWO_PI * (xx + r)
                gain_x, gain_s = xx * precision, xs * precision
                part[m, d, 0], part[m, d, 1], part[m, d, 2] = x, s, precision
                part[m, d, 3], part[m, d, 4] = 1 - gain_x, gain_s
                part[m, d, 5], part[m, d, 6] = xx - xx * gain_x, xs - xs * gain_x
                part[m, d, 7] = ss - xs * gain_s
            weight[m] = w / math.sqrt(det)
            m += 1
    return m


@njit(nogil=True, cache=True, error_model="numpy")
def _incoming(i, side, messages):  # pragma: no cover
    """Write the weights of the links that come in to detection i, and of none: fractional messages."""
    none = side.none[i] * math.exp(math.log(side.none[i]) / 3)  # to the power 1 / OMEGA
    norm = none
    classes = messages.weight.shape[1]
    for p in range(side.in_start[i], side.in_start[i + 1]):
        e = side.in_link[p]
        root = quarter(side.rival[e])
        pull = quarter(side.own[e]) / (root * root * root)
        for c in range(classes):
            messages.weight[e, c] = messages.likelihood[e, c] * pull
            norm += messages.weight[e, c]
    messages.total[i] = norm
    messages.fresh[i] = none / norm
    for p in range(side.in_start[i], side.in_start[i + 1]):
        e = side.in_link[p]
        for c in range(classes):
            messages.weight[e, c] /= norm


@njit(nogil=True, cache=True, error_model="numpy")
def _matched(f, steps, prior, messages, mass, total):  # pragma: no cover
    """Write the likelihood and the state of link f from sums over components: mass (K,), total (K, D, 5)."""
    for c in range(len(mass)):
        messages.likelihood[f, c] = mass[c] * prior
        for d in range(len(steps.noise)):
            x, s, xx, xs, ss = 0.0, 0.0, steps.noise[d], 0.0, steps.variance[c, d]
            if mass[c] > NOTHING:
                share = 1 / mass[c]
                x, s = total[c, d, 0] * share, total[c, d, 1] * share
                xx, xs = total[c, d, 2] * share - x * x, total[c, d, 3] * share - x * s
                ss = total[c, d, 4] * share - s * s
            to = messages.state
            to[f, c, d, 0], to[f, c, d, 1], to[f, c, d, 2], to[f, c, d, 3], to[f, c, d, 4] = x, s, xx, xs, ss


@njit(nogil=True, cache=True, error_model="numpy")
def filter_rows(blocks, steps, places, side, messages):  # pragma: no cover
    """One sweep in one direction over blocks of rows, (B, 2) i8, whose frames follow on one another."""
    classes, axes = steps.variance.shape[0], len(steps.noise)
    room = (side.most + 1) * classes
    which, weight, part = np.empty(room, np.int64), np.empty(room), np.empty((room, axes, 8))
    stay, fresh, mass = np.empty(classes), np.empty(classes), np.empty(classes)
    total, gap = np.empty((classes, axes, 5)), np.empty(axes)
    for b in range(len(blocks)):
        for i in range(blocks[b, 0], blocks[b, 1]):
            _incoming(i, side, messages)
            start = places.frame[i] if side.way > 0 else places.frame[i] - 1
            lag, m = 0, 0
            for o in range(side.out_start[i], side.out_start[i + 1]):
                f = side.out_link[o]
                j = side.far[f]
                if places.lag[f] != lag:
                    lag = places.lag[f]
                    m = _components(i, lag, start, steps, side, messages, stay, fresh, which, weight, part)
                mass[:] = 0
                total[:] = 0
                for d in range(axes):
                    shared = places.flow[places.tail[f], d] * (side.way * lag)
                    gap[d] = places.position[i, d] - places.position[j, d] + shared
                for k in range(m):
                    quad = 0.0
                    for d in range(axes):
                        x = gap[d] + part[k, d, 0]
                        quad += x * x * part[k, d, 2]
                    if quad > FARTHEST:
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
                _matched(f, steps, places.prior[f], messages, mass, total)
