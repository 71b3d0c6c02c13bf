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

from ...compute.kernels import inner_kernel, kernel
from ...compute.tolerances import NEGLIGIBLE
from .powers_cpu import exp2, gauss, log2

FARTHEST = 600.0  # guard: squared standard deviations beyond which the exponential underflows


@kernel(error_model="numpy")
def prepare_links(
    first, last, links, delay, survival, density, competing, omega, prior, exclusion, ahead, back
):  # pragma: no cover
    """Write what a sweep needs of links first:last beside their places, all (E,) f4.

    links is of tail, head, lag (E,) i4; survival of (N,) f8 forward and backward; competing (2, E) f8.
    Written: prior, the probability of the lag and of survival over the density; exclusion, ahead and back: as
    `Places` and `Direction` have them.
    """
    tail, head, lag = links
    onward, backward = survival
    for f in range(first, last):
        i, j, both = tail[f], head[f], competing[0, f] * competing[1, f]
        prior[f] = delay[lag[f] - 1] * math.sqrt(onward[i] * backward[j]) / density[j]
        least = exp2(-omega * log2(both))
        exclusion[f] = least
        ahead[f], back[f] = least * competing[1, f], least * competing[0, f]


@inner_kernel(error_model="numpy", forceinline=True)
def state_of(of, e, c, d, noise, variance):  # pragma: no cover
    """State of link e in class c along axis d, from states (E, K, D, 5) f4; of a fresh step if e is -1."""
    if e < 0:
        return 0.0, 0.0, noise, 0.0, variance
    x, s, xx = np.float64(of[e, c, d, 0]), np.float64(of[e, c, d, 1]), np.float64(of[e, c, d, 2])
    return x, s, xx, np.float64(of[e, c, d, 3]), np.float64(of[e, c, d, 4])


@inner_kernel(error_model="numpy", forceinline=True)
def predicted(a, variance, scale, lag, start, way, x, s, xx, xs, ss):  # pragma: no cover
    """State `lag` intervals on in a class of correlation a: start, start + way, …"""
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


@inner_kernel(error_model="numpy", forceinline=True)
def fresh_weights(
    i, lag, renewal, share, entry, in_start, in_link, weight, unlinked, stay, fresh
):  # pragma: no cover
    """Write the weights of a step drawn anew: of a track that begins at i, or of one that renews there.

    rates are renewal, share and entry (K,); none is the weight of no incoming link. Written: stay (K,), the
    probability of no renewal over `lag` intervals, and fresh (K,), the weights.
    """
    renewed = 0.0
    for c in range(len(stay)):
        stay[c] = 1.0
        for _ in range(lag):
            stay[c] *= 1 - renewal[c]
        for p in range(in_start[i], in_start[i + 1]):
            renewed += weight[in_link[p], c] * (1 - stay[c])
    for c in range(len(stay)):
        fresh[c] = share[c] * unlinked + entry[c] * renewed


@inner_kernel(error_model="numpy", forceinline=True)
def _update(part, m, d, noise, x, s, xx, xs, ss):  # pragma: no cover
    """Write axis d of component m, a state updated by a detection there; returns the innovation's variance.

    part (M, D, 8) f8: mean x and s, precision of the innovation, 1 - gain of x, gain of s, covariances xx,
    xs, ss after the update.
    """
    spread = xx + noise
    precision = 1 / spread
    gain_x, gain_s = xx * precision, xs * precision
    part[m, d, 0], part[m, d, 1], part[m, d, 2] = x, s, precision
    part[m, d, 3], part[m, d, 4] = 1 - gain_x, gain_s
    part[m, d, 5], part[m, d, 6] = xx - xx * gain_x, xs - xs * gain_x
    part[m, d, 7] = ss - xs * gain_s
    return spread


@inner_kernel(error_model="numpy", forceinline=True)
def _normalise(i, in_start, in_link, competing, n, likelihood, weight, fresh, total):  # pragma: no cover
    """Write the weights of the links that come in to detection i, and of none: fractional messages."""
    norm = n
    for p in range(in_start[i], in_start[i + 1]):
        e = in_link[p]
        for c in range(weight.shape[1]):
            norm += likelihood[e, c] * competing[e]
    total[i], fresh[i] = norm, n / norm
    for p in range(in_start[i], in_start[i + 1]):
        e = in_link[p]
        for c in range(weight.shape[1]):
            weight[e, c] = likelihood[e, c] * competing[e] / norm


@inner_kernel(error_model="numpy", forceinline=True)
def add_state(total, c, d, w, x, s, xx, xs, ss):  # pragma: no cover
    """Add a state along axis d, of weight w, to the sums total (K, D, 5) of class c."""
    total[c, d, 0] += w * x
    total[c, d, 1] += w * s
    total[c, d, 2] += w * (xx + x * x)
    total[c, d, 3] += w * (xs + x * s)
    total[c, d, 4] += w * (ss + s * s)


@inner_kernel(error_model="numpy", forceinline=True)
def match_moments(f, noise, variance, mass, total, state):  # pragma: no cover
    """Write the state of link f: the moments of the components whose sums are mass (K,), total (K, D, 5)."""
    for c in range(len(mass)):
        if not mass[c] > 0:
            for d in range(len(noise)):
                state[f, c, d, 0], state[f, c, d, 1], state[f, c, d, 3] = 0.0, 0.0, 0.0
                state[f, c, d, 2], state[f, c, d, 4] = noise[d], variance[c, d]
            continue
        factor = 1 / mass[c]
        for d in range(len(noise)):
            x, s = total[c, d, 0] * factor, total[c, d, 1] * factor
            state[f, c, d, 0], state[f, c, d, 1] = x, s
            state[f, c, d, 2] = total[c, d, 2] * factor - x * x
            state[f, c, d, 3] = total[c, d, 3] * factor - x * s
            state[f, c, d, 4] = total[c, d, 4] * factor - s * s


@kernel(error_model="numpy")
def filter_rows(blocks, steps, places, side, messages):  # pragma: no cover
    """One sweep in one direction over blocks of rows, (B, 2) i8, whose frames follow on one another."""
    when, away, prior, lags = places.when, places.away, places.prior, places.lag
    in_start, in_link, out_start, out_link = side.in_start, side.in_link, side.out_start, side.out_link
    way, competing, n = side.way, side.competing, side.n
    noise, variance, likelihood, state = steps.noise, steps.variance, messages.likelihood, messages.state
    correlation, scale, incoming = steps.correlation, steps.step_scale, messages.weight
    classes, axes = variance.shape[0], len(noise)
    room = (side.most + 1) * classes
    which, weight, part = np.empty(room, np.int64), np.empty(room), np.empty((room, axes, 8))
    stay, fresh, norm, mass = np.empty(classes), np.empty(classes), np.empty(classes), np.empty(classes)
    total = np.empty((classes, axes, 5))
    renewal, share, entry = steps.renewal, steps.share, steps.entry
    unlinked, total_of = messages.fresh, messages.total
    last_lag, last_start = 0, -1  # those of the fresh steps in `part`
    for b in range(len(blocks)):
        for i in range(blocks[b, 0], blocks[b, 1]):
            _normalise(i, in_start, in_link, competing, n[i], likelihood, incoming, unlinked, total_of)
            start = when[i] if way > 0 else when[i] - 1
            lag, m = 0, 0
            for o in range(out_start[i], out_start[i + 1]):
                f = out_link[o]
                if lags[f] != lag:
                    lag = np.int64(lags[f])
                    fresh_weights(
                        i, lag, renewal, share, entry, in_start, in_link, incoming, unlinked[i], stay, fresh
                    )
                    m = 0
                    for p in range(in_start[i] - 1, in_start[i + 1]):  # the first is no link: fresh steps
                        e = np.int64(in_link[p]) if p >= in_start[i] else np.int64(-1)
                        for c in range(classes):
                            w = incoming[e, c] * stay[c] if e >= 0 else fresh[c]
                            known = e < 0 and lag == last_lag and start == last_start
                            if known:  # as for the detection before
                                weight[m] = w * norm[c] if w >= NEGLIGIBLE * share[c] else 0.0
                                m += 1
                                continue
                            if e >= 0 and w < NEGLIGIBLE:
                                continue
                            det, a = 1.0, correlation[c]
                            for d in range(axes):
                                x, s, xx, xs, ss = state_of(state, e, c, d, noise[d], variance[c, d])
                                x, s, xx, xs, ss = predicted(
                                    a, variance[c, d], scale, lag, start, way, x, s, xx, xs, ss
                                )
                                det *= math.tau * _update(part, m, d, noise[d], x, s, xx, xs, ss)
                            which[m], height = c, 1 / math.sqrt(det)
                            if e < 0:
                                norm[c] = height
                                w = w if w >= NEGLIGIBLE * share[c] else 0.0
                            weight[m] = w * height
                            m += 1
                    last_lag, last_start = lag, start
                mass[:] = 0
                total[:] = 0
                for k in range(m):
                    quad = 0.0
                    for d in range(axes):
                        x = way * away[f, d] + part[k, d, 0]
                        quad += x * x * part[k, d, 2]
                    if quad > FARTHEST or weight[k] == 0:
                        continue
                    w, c = weight[k] * gauss(quad), which[k]
                    mass[c] += w
                    for d in range(axes):
                        x = way * away[f, d] + part[k, d, 0]
                        s = part[k, d, 1] - part[k, d, 4] * x
                        x *= part[k, d, 3]
                        add_state(total, c, d, w, x, s, part[k, d, 5], part[k, d, 6], part[k, d, 7])
                match_moments(f, noise, variance, mass, total, state)
                for c in range(classes):
                    likelihood[f, c] = mass[c] * prior[f]
