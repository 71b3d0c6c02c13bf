"""CPU kernels of headings: what is believed of a particle that came from one detection to another.

Serial, without the GIL; no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .sweep_cpu import fallen

_HOPELESS = 3e-7  # odds from which on a pair is none
_LARGEST = 1e87  # odds are cut there: their products must be finite
_OUTDONE = 1e-6  # odds, against the best of the same source, below which a pair is none
_LEAST = 1e-2  # links less likely than this carry no belief
_MOST = 102  # and so no detection has more of them, and a beginning


@njit(nogil=True, cache=True, error_model="numpy")
def _expected(
    i, gap, way, position, shift, table, speed2, noise2, beliefs, weight, state
):  # pragma: no cover
    """What is expected of detection i so many frames on, for each that may be before it, and for none.

    way: 1 forward, -1 backward in time; beliefs: slot (N,), following (S,) i8, which are of each detection,
    -1 after the last; chance (S,), mean (S, A, 2), cov (S, A, 3), known (N,) f8. Written: weight (M,) f8;
    state (M, A, 6) f8: position, velocity, their covariance, inverse variance of the position seen.
    Returned: how many.
    """
    slot, following, chance, mean, cov, known = beliefs
    many, s, axes = 0, slot[i], position.shape[1]
    new = 1 - known[i]
    while s >= 0 or new >= 0:
        if s >= 0:
            weight[many] = chance[s]
        elif new >= _LEAST or many == 0:
            weight[many] = max(new, _LEAST)
        else:
            break
        for k in range(axes):
            if s >= 0:
                x, v, xx, xv, vv = mean[s, k, 0], mean[s, k, 1], cov[s, k, 0], cov[s, k, 1], cov[s, k, 2]
            else:
                x, v, xx, xv, vv = position[i, k], 0.0, noise2[k], 0.0, speed2[k]
            reach, kept = table[gap, k, 0], table[gap, k, 1]
            state[many, k, 0] = x + reach * v + (gap * shift[i, k] if way > 0 else 0.0)
            state[many, k, 1] = kept * v
            state[many, k, 2] = xx + 2 * reach * xv + reach * reach * vv + table[gap, k, 2]
            state[many, k, 3] = kept * (xv + reach * vv) + table[gap, k, 3]
            state[many, k, 4] = kept * kept * vv + table[gap, k, 4]
            state[many, k, 5] = 1 / (state[many, k, 2] + noise2[k])
        many += 1
        if s < 0:
            break
        s = following[s]
    return many


@njit(nogil=True, cache=True, error_model="numpy")
def _weighed(j, gap, way, many, position, shift, weight, state, form, far, height, odds):  # pragma: no cover
    """Likelihood of detection j by each of many expectations.

    form: narrow, power and quarters as `fallen` takes them. Written: odds (M,) f8.
    """
    for c in range(many):
        away, volume = 0.0, 1.0
        for k in range(position.shape[1]):
            d = position[j, k] - state[c, k, 0]
            if way < 0:
                d += gap * shift[j, k]
            away += d * d * state[c, k, 5]
            volume *= state[c, k, 5]
        far[c], height[c] = away, weight[c] * math.sqrt(volume)
    fallen(far[:many], height[:many], form[0], form[1], form[2], odds[:many])


@njit(nogil=True, cache=True)
def _form(axes, freedom, scale):  # pragma: no cover
    """Log of the constant of the density, and narrow, power and quarters as `fallen` takes them."""
    constant, power = -0.5 * axes * math.log(2 * math.pi), (freedom + axes) / 2
    if freedom == 0:
        return constant, (0.0, power, 0)
    constant = math.lgamma(power) - math.lgamma(freedom / 2)
    constant -= axes / 2 * math.log(freedom * scale * math.pi)
    return constant, (
        1 / (freedom * scale),
        power,
        int(4 * power) if 4 * power == math.floor(4 * power) else 0,
    )


@njit(nogil=True, cache=True, error_model="numpy")
def headings(
    position,
    frame_start,
    backward,
    indptr,
    indices,
    shift,
    table,
    speed2,
    noise2,
    gain_of_gap,
    gain_of_later,
    later,
    freedom,
    scale,
    clutter,
    strangers,
    unlinked,
    rounds,
    slot,
    known,
    alone,
    free_odds,
):  # pragma: no cover
    """Beliefs of all probable pairs from one side in time, each a Gaussian.

    As `sweep_cpu.sweep`, and with the same arguments, but what is believed at a detection is kept apart for
    each that may be the one before it.
    Written: slot (N,) i8 first belief of each detection, -1 for none; known (N,) f8 probability that there
    was one before; alone (N,) f8 that it is clutter; free_odds (P,) f8 odds of each pair, against all
    others, from this side alone. Returned, of S beliefs: following (S,) i8 the next of the same detection,
    owner (S,) i8 that detection, chance (S,) f8, mean (S, A, 2), cov (S, A, 3) f8, with the detection itself
    taken in.
    """
    count, axes = position.shape
    frames, gaps = len(frame_start) - 1, len(table) - 1
    most = 0
    for f in range(frames):
        most = max(most, frame_start[f + 1] - frame_start[f])
    real = (unlinked - clutter) / (1 - clutter)
    free = np.ones(count)  # odds of a link from each, against those from any
    at, spent = indptr[:-1].copy(), np.ones(count)
    free_odds[:] = 0.0
    slot[:] = -1
    known[:] = 0.0
    # Beliefs, as many as come: room is doubled when it is full.
    room, slots = 2 * count + 64, 0
    following, chance = np.empty(room, np.int64), np.empty(room)
    owner, mean, cov = following.copy(), np.empty((room, axes, 2)), np.empty((room, axes, 3))
    # Of the pairs into one frame, those that count, source by source.
    source, gap_of = np.empty(most * gaps, np.int64), np.empty(most * gaps, np.int64)
    begin = np.empty(most * gaps + 1, np.int64)
    pair, col = np.empty(len(indices), np.int64), np.empty(len(indices), np.int64)
    odds, heard, said = np.empty(len(indices)), np.empty(len(indices)), np.empty(len(indices))
    total = np.empty(most)
    weight, state = np.empty(_MOST), np.empty((_MOST, axes, 6))
    far, height, part = np.empty(_MOST), np.empty(_MOST), np.empty(_MOST)
    constant, form = _form(axes, freedom, scale)
    usual = 0.0
    for i in range(count):
        usual += gain_of_later[i] / count
    odds_of_later, odds_of_gap = np.exp(gain_of_later - usual), np.exp(constant + usual + gain_of_gap)
    sign = -1 if backward else 1
    for turn in range(frames):
        f = frames - 1 - turn if backward else turn
        first, last = frame_start[f], frame_start[f + 1]
        if first == last:
            continue
        sources, pairs = 0, 0
        for g in range(1, gaps + 1):
            h = f - sign * g
            if h < 0 or h >= frames:
                break
            for i in range(frame_start[h], frame_start[h + 1]):
                e = at[i]
                if e == indptr[i + 1] or indices[e] < first or indices[e] >= last:
                    continue
                beliefs = slot, following, chance, mean, cov, known
                many = _expected(i, g, sign, position, shift, table, speed2, noise2, beliefs, weight, state)
                begin[sources], start, best = pairs, pairs, 0.0
                while e < indptr[i + 1] and indices[e] >= first and indices[e] < last:
                    j = indices[e]
                    _weighed(j, g, sign, many, position, shift, weight, state, form, far, height, part)
                    value = 0.0
                    for c in range(many):
                        value += part[c]
                    value *= odds_of_gap[g] * odds_of_later[i if backward else j] * free[i]
                    odds[pairs] = min(value, _LARGEST)
                    best = max(best, odds[pairs])
                    pair[pairs], col[pairs] = e, j - first
                    pairs += 1
                    e += 1
                at[i] = e
                source[sources], gap_of[sources] = i, g
                sources += 1
                # What is far less likely than another choice of the same source does not count.
                least_odds, stop, pairs = max(_HOPELESS, _OUTDONE * best), pairs, start
                for c in range(start, stop):
                    if odds[c] > least_odds:
                        pair[pairs], col[pairs], odds[pairs] = pair[c], col[c], odds[c]
                        pairs += 1
        begin[sources] = pairs
        total[: last - first] = 1.0
        said[:pairs] = 0.0
        for turns in range(rounds + 1):
            for s in range(sources):
                if turns > 0 and begin[s + 1] < begin[s] + 2:
                    continue  # a source of one pair says always the same
                least = whole = spent[source[s]] + later[gap_of[s]] * free[source[s]]
                for c in range(begin[s], begin[s + 1]):
                    heard[c] = odds[c] if turns == 0 else odds[c] / max(total[col[c]] - said[c], 1.0)
                    whole += heard[c]
                for c in range(begin[s], begin[s + 1]):
                    says = odds[c] / max(whole - heard[c], least)
                    total[col[c]] += says - said[c]
                    said[c] = says
        for s in range(sources):
            i, g, many = source[s], gap_of[s], 0
            for c in range(begin[s], begin[s + 1]):
                open_to = 1 / max(total[col[c]] - said[c], 1.0)
                spent[i] += odds[c] * open_to
                free_odds[pair[c]] = open_to * said[c]
                j, q = first + col[c], said[c] / total[col[c]]
                if q < _LEAST:
                    continue
                known[j] += q
                if many == 0:
                    beliefs = slot, following, chance, mean, cov, known
                    many = _expected(
                        i, g, sign, position, shift, table, speed2, noise2, beliefs, weight, state
                    )
                _weighed(j, g, sign, many, position, shift, weight, state, form, far, height, part)
                if slots == room:
                    room *= 2
                    following, owner = np.append(following, following), np.append(owner, owner)
                    chance = np.append(chance, chance)
                    mean, cov = np.concatenate((mean, mean)), np.concatenate((cov, cov))
                following[slots], owner[slots], chance[slots] = slot[j], j, q
                slot[j] = slots
                whole = 0.0
                for m in range(many):
                    whole += part[m]
                for k in range(axes):
                    here = position[j, k]
                    drift = g * shift[j, k] if backward else 0.0
                    a = u = aa = au = uu = 0.0
                    for m in range(many):
                        p, inverse = part[m] / whole, state[m, k, 5]
                        p_xx, p_xv = state[m, k, 2], state[m, k, 3]
                        d = here - state[m, k, 0] + drift
                        share_x, share_v = p_xx * inverse, p_xv * inverse
                        x, v = (share_x - 1) * d, state[m, k, 1] + share_v * d
                        a += p * x
                        u += p * v
                        aa += p * ((1 - share_x) * p_xx + x * x)
                        au += p * ((1 - share_x) * p_xv + x * v)
                        uu += p * (state[m, k, 4] - share_v * p_xv + v * v)
                    mean[slots, k, 0], mean[slots, k, 1] = here + a, u
                    cov[slots, k, 0], cov[slots, k, 1], cov[slots, k, 2] = aa - a * a, au - a * u, uu - u * u
                slots += 1
        for j in range(first, last):
            new = max(1 - known[j], 0.0)
            # Where many could swap, belief propagation sees too many that are new (LinkModel.strange).
            alone[j] = strangers * new * math.sqrt(new) if turn > 0 else clutter
            free[j] = (1 - alone[j]) / (1 - clutter) * unlinked / ((1 - alone[j]) * real + alone[j])
    return following[:slots], owner[:slots], chance[:slots], mean[:slots], cov[:slots]


@njit(nogil=True, cache=True)
def mixed(
    position, slot, following, chance, mean, cov, known, speed2, noise2, centre, spread
):  # pragma: no cover
    """All that is believed of each detection as one Gaussian.

    Written: centre (N, A, 2), spread (N, A, 3) f8 mean and covariance.
    """
    for i in range(len(position)):
        new = max(1 - known[i], 0.0)
        for k in range(position.shape[1]):
            here, a, u, aa, au, uu = position[i, k], 0.0, 0.0, new * noise2[k], 0.0, new * speed2[k]
            s = slot[i]
            while s >= 0:
                x, v, q = mean[s, k, 0] - here, mean[s, k, 1], chance[s]
                a += q * x
                u += q * v
                aa += q * (cov[s, k, 0] + x * x)
                au += q * (cov[s, k, 1] + x * v)
                uu += q * (cov[s, k, 2] + v * v)
                s = following[s]
            centre[i, k, 0], centre[i, k, 1] = here + a, u
            spread[i, k, 0], spread[i, k, 1], spread[i, k, 2] = aa - a * a, au - a * u, uu - u * u


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
    the future, place (S, A, 2), weight (S, A, 3) f8 and constant (S,) f8, as `messages` writes them, instead
    of mean and cov; gain_of_gap (G+1,), gain_of_row, gain_of_col (N,) f8
    logs. Written: distance2 (P,) f8 squared Mahalanobis distance by the likeliest future, size (P,) i8 in
    how many dimensions, gain (P,) f8, finite.
    """
    axes = position.shape[1]
    slot_after, following_after, chance_after, place, weight_after, constant_after, known_after = after
    constant, form = _form(axes, freedom, scale)
    heavy, narrow, power, more = freedom > 0, form[0], form[1], 0.0
    if heavy:  # of both sides, beside Gaussians
        more = math.lgamma(freedom / 2 + axes) - math.lgamma(freedom / 2)
        more -= axes * math.log(freedom * scale / 2)
    weight, state = np.empty(_MOST), np.empty((_MOST, axes, 6))
    far, height, part = np.empty(_MOST), np.empty(_MOST), np.empty(_MOST)
    p = np.empty((axes, 5))
    for i in range(first, last):
        predicted, many = -1, 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            gap = frame[j] - frame[i]
            if gap != predicted:
                predicted = gap
                many = _expected(i, gap, 1, position, shift, table, speed2, noise2, past, weight, state)
            _weighed(j, gap, 1, many, position, shift, weight, state, form, far, height, part)
            whole = 0.0
            for m in range(many):
                whole += part[m]
            # What the past expects, if this is the pair, as one Gaussian around the detection.
            away, volume = 0.0, 1.0
            for k in range(axes):
                a = u = aa = au = uu = 0.0
                for m in range(many):
                    q = part[m] / whole if whole > 0 else 1 / many
                    x, v = state[m, k, 0] - position[j, k], state[m, k, 1]
                    a += q * x
                    u += q * v
                    aa += q * (state[m, k, 2] + x * x)
                    au += q * (state[m, k, 3] + x * v)
                    uu += q * (state[m, k, 4] + v * v)
                p[k, 0], p[k, 1] = a, u
                p[k, 2], p[k, 3], p[k, 4] = aa - a * a, au - a * u, uu - u * u
                away += a * a / (p[k, 2] + noise2[k])
                volume *= p[k, 2] + noise2[k]
            lone = constant - 0.5 * math.log(volume)
            lone -= power * math.log1p(away * narrow) if heavy else 0.5 * away
            likely = max(1 - known_after[j], 0.0)
            best, distance2[e], size[e] = likely, away, axes
            s = slot_after[j]
            while s >= 0:
                away, volume = 0.0, 1.0
                for k in range(axes):
                    dx, dv = p[k, 0] + position[j, k] - place[s, k, 0], p[k, 1] - place[s, k, 1]
                    w_xx, w_xv, w_vv = weight_after[s, k, 0], weight_after[s, k, 1], weight_after[s, k, 2]
                    a = 1 + p[k, 2] * w_xx + p[k, 3] * w_xv
                    b = p[k, 2] * w_xv + p[k, 3] * w_vv
                    c = p[k, 3] * w_xx + p[k, 4] * w_xv
                    d = 1 + p[k, 3] * w_xv + p[k, 4] * w_vv
                    det = a * d - b * c
                    ex, ev = (d * dx - b * dv) / det, (a * dv - c * dx) / det
                    away += dx * (w_xx * ex + w_xv * ev) + dv * (w_xv * ex + w_vv * ev)
                    volume *= det
                away = max(away, 0.0)
                value = constant_after[s] - 0.5 * math.log(volume) - lone
                if heavy:
                    value += more - (freedom / 2 + axes) * math.log1p(away * narrow)
                else:
                    value -= 0.5 * away
                share = chance_after[s] * math.exp(min(value, 100.0))
                likely += share
                if share > best:
                    best, distance2[e], size[e] = share, away, 2 * axes
                s = following_after[s]
            value = constant + math.log(max(whole, 1e-300)) + math.log(max(likely, 1e-300))
            # Where rounding leaves no determinant there is no number.
            value = value if value > -700.0 else -700.0  # noqa: FURB136
            gain[e] = value + gain_of_gap[gap] + gain_of_row[i] + gain_of_col[j]
