"""CPU kernel of headings: how likely a past and a future are one particle, each a mixture of beliefs.

Serial, without the GIL; no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .headings_cpu import _FOUR, _MOST, _ONE, _THREE, _TWO, _expected, _form, _weighed
from .sweep_cpu import fallen

_HOPELESS = -700.0  # log odds of all pairs that are less likely
_TINY = 1e-300  # likelihoods below are none, of which there is a log
_SURE = 1e43  # likelihood of a future, against none, beyond which it makes no difference


@njit(nogil=True, cache=True, error_model="numpy")
def _as_one(place, many, states, part, places, state, axes, p):  # pragma: no cover
    """What many expectations tell of the state at a place, if a pair is right, as one Gaussian around it.

    place (A,) f8; state as `_expected` writes it; part (M places,) f8 their likelihoods, from states on.
    Written: p (5 A,) f8 mean and covariance.
    """
    whole = 0.0
    for m in range(many):
        whole += part[states + m * places]
    share = 1 / whole if whole > 0 else 0.0
    for k in range(len(axes)):
        a = u = aa = au = uu = 0.0
        n, at = np.uint64(6 * k), np.uint64(states)
        for _ in range(many):
            q = part[at] * share if whole > 0 else 1 / many
            x, v = state[n] - place[k], state[n + _ONE]
            a += q * x
            u += q * v
            aa += q * (state[n + _TWO] + x * x)
            au += q * (state[n + _THREE] + x * v)
            uu += q * (state[n + _FOUR] + v * v)
            n += np.uint64(6 * len(axes))
            at += np.uint64(places)
        p[5 * k], p[5 * k + 1] = a, u
        p[5 * k + 2], p[5 * k + 3], p[5 * k + 4] = aa - a * a, au - a * u, uu - u * u
    return whole


@njit(nogil=True, cache=True, error_model="numpy")
def weigh_headings(
    first,
    last,
    indptr,
    indices,
    frame,
    position,
    shift,
    table,
    speed2,
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

    indptr (N+1,) i8, indices (P,) i4 pairs; frame (N,) i8; past: beliefs as in `_expected`; after: those from
    the future, place (2 A S,), weight (3 A S,) f8 as `messages` writes them, instead of mean and cov, and
    high (S,) f8 their likelihoods at the peak, or nearer (S,) f8 how much nearer that makes them, of which
    usual is the log of the unit; gain_of_gap (G+1,), gain_of_row, gain_of_col (N,) f8 logs.
    Written: distance2 (P,) f8 squared Mahalanobis distance by the likeliest future, size (P,) i8 in how many
    dimensions, gain (P,) f8, finite.
    """
    axes = len(noise2)
    slot, following, chance, mean, cov, known = past
    slot_after, following_after, chance_after, place, weight_after, high, nearer, usual, known_after = after
    constant, form = _form(axes, freedom, scale)
    _, both = _form(2 * axes, freedom, scale)
    more = usual - constant
    if freedom > 0:  # of both sides, beside Gaussians
        more += math.lgamma(freedom / 2 + axes) - math.lgamma(freedom / 2)
        more -= axes * math.log(freedom * scale / 2)
    more = math.exp(more)
    degree = 1
    for i in range(first, last):
        degree = max(degree, indptr[i + 1] - indptr[i])
    weight, state, here = np.empty(_MOST), np.empty(_MOST * axes * 6), np.empty((axes, degree))
    far, height, part = np.empty(_MOST * degree), np.empty(_MOST * degree), np.empty(_MOST * degree)
    odds, distant = np.empty(_MOST * degree), np.empty(_MOST * degree)
    # Of each pair, and of each future of each, how far it is, and how likely.
    away, alone, lone, whole = np.empty(degree), np.empty(degree), np.empty(degree), np.empty(degree)
    stop, p, seen = np.empty(degree, np.int64), np.empty(5 * axes), np.empty(axes)
    for i in range(first, last):
        begun = indptr[i]
        while begun < indptr[i + 1]:
            gap, places, futures = frame[indices[begun]] - frame[i], 0, 0
            for e in range(begun, indptr[i + 1]):
                j = np.uint64(indices[e])
                if frame[j] != frame[i] + gap:
                    break
                for k in range(axes):
                    here[k, places] = position[j, k]
                places += 1
            many = _expected(
                i, gap, 1, position, shift, table, speed2, noise2, slot, following, chance, mean, cov, known,
                weight, state, 0,
            )  # fmt: skip
            _weighed(many, places, here, weight, state, 0, form, far, height, part, noise2)
            for n in range(places):
                j, distance, volume = np.int64(indices[begun + n]), 0.0, 1.0
                for k in range(axes):
                    seen[k] = position[j, k]
                whole[n] = _as_one(seen, many, n, part, places, state, noise2, p)
                for k in range(axes):
                    inverse = 1 / (p[5 * k + 2] + noise2[k])
                    distance += p[5 * k] ** 2 * inverse
                    volume *= inverse
                away[n], alone[n] = distance, math.sqrt(volume)
                s = slot_after[j]
                while s >= 0:
                    distance, volume = 0.0, 1.0
                    m = np.uint64(s) * np.uint64(2 * axes)
                    w = np.uint64(s) * np.uint64(3 * axes)
                    for k in range(axes):
                        dx, dv = p[5 * k] + seen[k] - place[m], p[5 * k + 1] - place[m + _ONE]
                        p_xx, p_xv, p_vv = p[5 * k + 2], p[5 * k + 3], p[5 * k + 4]
                        w_xx, w_xv, w_vv = weight_after[w], weight_after[w + _ONE], weight_after[w + _TWO]
                        a = 1 + p_xx * w_xx + p_xv * w_xv
                        b = p_xx * w_xv + p_xv * w_vv
                        c = p_xv * w_xx + p_vv * w_xv
                        d = 1 + p_xv * w_xv + p_vv * w_vv
                        det = a * d - b * c
                        ex, ev = d * dx - b * dv, a * dv - c * dx
                        distance += (dx * (w_xx * ex + w_xv * ev) + dv * (w_xv * ex + w_vv * ev)) / det
                        volume *= det
                        m += _TWO
                        w += _THREE
                    distant[futures] = max(distance, 0.0)
                    far[futures] = distant[futures] - nearer[s]
                    height[futures] = chance_after[s] * high[s] / math.sqrt(volume)
                    futures += 1
                    s = following_after[s]
                stop[n] = futures
            fallen(0, places, away, alone, form[0], form[1], form[2], lone)
            fallen(0, futures, far, height, both[0], both[1], both[2], odds)
            futures = 0
            for n in range(places):
                e, j = begun + n, np.int64(indices[begun + n])
                likely = best = max(1 - known_after[j], 0.0)
                distance2[e], size[e] = away[n], axes
                against = more / lone[n] if lone[n] > 0 else 0.0
                for s in range(futures, stop[n]):
                    share = min(odds[s] * against, _SURE)
                    likely += share
                    if share > best:
                        best, distance2[e], size[e] = share, distant[s], 2 * axes
                futures = stop[n]
                value = constant + math.log(max(whole[n], _TINY)) + math.log(max(likely, _TINY))
                # Where rounding leaves no determinant there is no number.
                value = value if value > _HOPELESS else _HOPELESS  # noqa: FURB136
                gain[e] = value + gain_of_gap[gap] + gain_of_row[i] + gain_of_col[j]
            begun += places
