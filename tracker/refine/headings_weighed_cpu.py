"""CPU kernels of headings: likelihood that a past and a future, both mixtures, are one particle.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .headings_cpu import _AT_ONCE, _FIVE, _FOUR, _MOST, _ONE, _THREE, _TWO, _apart, _expected, _form
from .sweep_cpu import fallen
from .weigh_cpu import at_frame

_HOPELESS = -700.0  # log odds of all pairs that are less likely
_TINY = 1e-300  # likelihoods below are none, of which there is a log
_SURE = 1e43  # likelihood of a future, against none, beyond which it makes no difference
_MOST_LOG = 600.0  # logs are cut there, for floats are


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def futures(slot, stop, chance, belief, speed2, noise2, heavy, near):  # pragma: no cover
    """Likelihood of the state at a detection, from it and each of its futures, as in `weigh_cpu.messages`.

    Beliefs from the future, as in `headings_cpu`; heavy: whether tails are. Written, of each future, in the
    place of its belief along each axis the peak of its likelihood and the inverse covariance; of its chance
    how high that peak is, against one without a future, times the chance; near (S,) f8 how much nearer that
    makes it, in squared distance.
    """
    axes = len(noise2)
    for j in range(len(slot)):
        for s in range(slot[j], stop[j]):
            at, volume, nearer = np.uint64(s) * np.uint64(5 * axes), 1.0, 0.0
            for k in range(axes):
                x, v, flat = np.float64(belief[at]), -np.float64(belief[at + _ONE]), 1 / speed2[k]
                xx, xv = np.float64(belief[at + _TWO]), -np.float64(belief[at + _THREE])
                vv = np.float64(belief[at + _FOUR])
                inverse = 1 / (xx * vv - xv * xv)
                w_xx, w_xv, w_vv = vv * inverse, -xv * inverse, xx * inverse
                h_x, h_v = w_xx * x + w_xv * v, w_xv * x + w_vv * v
                nearer -= h_x * x + h_v * v
                volume *= speed2[k] * noise2[k] * inverse
                w_vv -= flat
                det = w_xx * w_vv - w_xv * w_xv
                if w_vv <= 1e-9 * flat or det <= 1e-12 * w_xx * w_vv:
                    w_xv, w_vv, peak_x, peak_v = 0.0, 0.0, h_x / w_xx, 0.0
                else:
                    peak_x, peak_v = (w_vv * h_x - w_xv * h_v) / det, (w_xx * h_v - w_xv * h_x) / det
                nearer += h_x * peak_x + h_v * peak_v
                belief[at], belief[at + _ONE] = peak_x, peak_v
                belief[at + _TWO], belief[at + _THREE], belief[at + _FOUR] = w_xx, w_xv, w_vv
                at += _FIVE
            chance[s] *= math.sqrt(volume)
            if heavy:  # no distance makes up for these
                chance[s] *= math.exp(min(max(0.5 * nearer, -_MOST_LOG), _MOST_LOG))
                nearer = 0.0
            near[s] = nearer


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def weigh_headings(
    first,
    last,
    indptr,
    indices,
    frame,
    position,
    shift,
    table,
    noise2,
    past,
    after,
    gain_of_gap,
    gain_of_row,
    gain_of_col,
    freedom,
    scale,
    distance2,
    size,
    gain,
):  # pragma: no cover
    """Log odds that two detections are one particle against an end and a start, rows first..last-1.

    indptr (N+1,) i8, indices (P,) i4 pairs; frame (N,) i8; past: slot, stop, known, chance, belief as in
    `headings_cpu`; after: the same of the future, chance and belief as `futures` writes them, and near;
    gain_of_gap (G+1,), gain_of_row, gain_of_col (N,) f8 logs.
    Written: distance2 (P,) f8 squared Mahalanobis distance by the likeliest future, size (P,) i1 in how many
    dimensions, gain (P,) f8, finite.
    """
    axes, wide = len(noise2), np.uint64(6 * len(noise2))
    slot, stop, known, chance, belief = past
    slot_after, stop_after, known_after, high, future, near = after
    constant, form = _form(axes, freedom, scale)
    _, both = _form(2 * axes, freedom, scale)
    more = -constant
    for k in range(axes):
        more -= 0.5 * math.log(2 * math.pi * noise2[k])
    if freedom > 0:  # of both sides, beside Gaussians
        more += math.lgamma(freedom / 2 + axes) - math.lgamma(freedom / 2)
        more -= axes * math.log(freedom * scale / 2)
    more = math.exp(more)
    degree = 1
    for i in range(first, last):
        degree = max(degree, indptr[i + 1] - indptr[i])
    # Rows are taken together until there are enough likelihoods: of each row and gap ...
    room = _AT_ONCE + table.shape[1]
    group_of, gap_of, begin = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room + 1, np.int64)
    state_at, many_of = np.empty(room, np.uint64), np.empty(room, np.uint64)
    state, weight = np.empty((_AT_ONCE + _MOST * table.shape[1]) * axes * 6), np.empty(_MOST)
    # ... of each pair and what may be before it, ...
    room = _AT_ONCE + _MOST * degree
    far, height, part = np.empty(room), np.empty(room), np.empty(room)
    # ... of each pair, ...
    room = _AT_ONCE + degree
    away, alone, lone, whole = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    until = np.empty(room, np.uint64)
    # ... and of each future of each.
    room *= _MOST
    distant, nearer, tall, odds = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    p, i = np.empty(5 * axes), first
    while i < last:
        base, groups, states, ready = indptr[i], 0, np.uint64(0), np.uint64(0)
        while i < last and ready < _AT_ONCE:
            e = indptr[i]
            while e < indptr[i + 1]:
                gap = frame[indices[e]] - frame[i]
                many = _expected(
                    i, gap, 1, position, shift, at_frame(table, frame[i]), noise2, slot, stop, known, chance,
                    belief, weight, state, states,
                )  # fmt: skip
                group_of[groups], gap_of[groups], begin[groups] = i, gap, e
                state_at[groups], many_of[groups] = states, many
                while e < indptr[i + 1]:
                    j = np.uint64(indices[e])
                    if frame[j] != frame[i] + gap:
                        break
                    ready = _apart(
                        j, at_frame(table, frame[i])[gap], 1, position, shift, noise2, many, weight, state,
                        states, far, height, ready,
                    )  # fmt: skip
                    e += 1
                states += many * wide
                groups += 1
            i += 1
        begin[groups] = indptr[i]
        fallen(np.uint64(0), ready, far, height, form[0], form[1], form[2], part)
        m, ready = np.uint64(0), np.uint64(0)
        for g in range(groups):
            for e in range(begin[g], begin[g + 1]):
                c, j = np.uint64(e - base), np.uint64(indices[e])
                whole[c], away[c], alone[c] = _as_one(
                    j, position, noise2, many_of[g], part, m, state, state_at[g], p
                )
                m += many_of[g]
                s = np.uint64(slot_after[j])
                for _ in range(stop_after[j] - slot_after[j]):
                    distance, volume = _met(p, noise2, future, s)
                    distant[ready], nearer[ready] = distance, distance - near[s]
                    tall[ready] = high[s] / math.sqrt(volume)
                    ready += _ONE
                    s += _ONE
                until[c] = ready
        fallen(np.uint64(0), np.uint64(indptr[i] - base), away, alone, form[0], form[1], form[2], lone)
        fallen(np.uint64(0), ready, nearer, tall, both[0], both[1], both[2], odds)
        s = np.uint64(0)
        for g in range(groups):
            for e in range(begin[g], begin[g + 1]):
                c, j = np.uint64(e - base), np.uint64(indices[e])
                likely = best = max(1 - known_after[j], 0.0)
                distance2[e], size[e] = away[c], axes
                against = more / lone[c] if lone[c] > 0 else 0.0
                while s < until[c]:
                    share = min(odds[s] * against, _SURE)
                    likely += share
                    if share > best:
                        best, distance2[e], size[e] = share, distant[s], 2 * axes
                    s += _ONE
                value = constant + math.log(max(whole[c] * likely, _TINY))
                # Where rounding leaves no determinant there is no number.
                value = value if value > _HOPELESS else _HOPELESS  # noqa: FURB136
                gain[e] = value + gain_of_gap[gap_of[g]] + gain_of_row[group_of[g]] + gain_of_col[j]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _as_one(j, position, noise2, many, part, begun, state, at, p):  # pragma: no cover
    """Combine many predictions of the state at detection j, if the pair is right, into one Gaussian.

    state[at] as `_expected` writes it; part[begun] (M,) f8 their likelihoods. Written: p (5 A,) f8 along each
    axis mean, from the position seen, and covariance. Returned: the sum of the likelihoods; of the Gaussian,
    as far as the position is concerned, squared distance and density at none.
    """
    axes, whole, distance, volume = len(noise2), 0.0, 0.0, 1.0
    for m in range(begun, begun + many):
        whole += part[m]
    share = 1 / whole if whole > 0 else 0.0
    for k in range(axes):
        a = u = aa = au = uu = 0.0
        n = at + np.uint64(6 * k)
        for m in range(begun, begun + many):
            q = part[m] * share if whole > 0 else 1 / many
            x, v = state[n] - position[j, k], state[n + _TWO]
            a += q * x
            u += q * v
            aa += q * (state[n + _THREE] + x * x)
            au += q * (state[n + _FOUR] + x * v)
            uu += q * (state[n + _FIVE] + v * v)
            n += np.uint64(6 * axes)
        aa -= a * a
        p[5 * k], p[5 * k + 1] = a, u
        p[5 * k + 2], p[5 * k + 3], p[5 * k + 4] = aa, au - a * u, uu - u * u
        inverse = 1 / (aa + noise2[k])
        distance += a * a * inverse
        volume *= inverse
    return whole, distance, math.sqrt(volume)


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _met(p, noise2, future, s):  # pragma: no cover
    """Squared distance of a past, as `_as_one` writes it, to future s, and by how much both are wider."""
    at, distance, volume = s * np.uint64(5 * len(noise2)), 0.0, 1.0
    for k in range(len(noise2)):
        dx, dv = p[5 * k] - np.float64(future[at]), p[5 * k + 1] - np.float64(future[at + _ONE])
        p_xx, p_xv, p_vv = p[5 * k + 2], p[5 * k + 3], p[5 * k + 4]
        w_xx, w_xv = np.float64(future[at + _TWO]), np.float64(future[at + _THREE])
        w_vv = np.float64(future[at + _FOUR])
        a, b = 1 + p_xx * w_xx + p_xv * w_xv, p_xx * w_xv + p_xv * w_vv
        c, d = p_xv * w_xx + p_vv * w_xv, 1 + p_xv * w_xv + p_vv * w_vv
        det, ex, ev = a * d - b * c, d * dx - b * dv, a * dv - c * dx
        distance += (dx * (w_xx * ex + w_xv * ev) + dv * (w_xv * ex + w_vv * ev)) / det
        volume *= det
        at += _FIVE
    return max(distance, 0.0), volume
