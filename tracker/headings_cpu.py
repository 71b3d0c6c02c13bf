"""CPU kernels of headings: what is believed of a particle that came from one detection to another.

Serial, without the GIL; no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .sweep_cpu import _propagate, _weigh, fallen

_LEAST = 1e-2  # links less likely than this carry no belief
_MOST = 102  # and so no detection has more of them, and a beginning
_ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX = (np.uint64(number) for number in range(1, 7))


@njit(nogil=True, cache=True, error_model="numpy")
def _expected(
    i,
    gap,
    way,
    position,
    shift,
    table,
    speed2,
    noise2,
    slot,
    following,
    chance,
    mean,
    cov,
    known,
    weight,
    state,
    to,
):  # pragma: no cover
    """What is expected of detection i so many frames on, for each that may be before it, and for none.

    way: 1 forward, -1 backward in time; beliefs: slot (N,), following (S,) i8, which are of each detection,
    -1 after the last; chance (S,), mean (2 A S,), cov (3 A S,), known (N,) f8. Written: weight (M,) f8,
    with the density at none; behind state[to] (6 A M,) f8: position, velocity, their covariance, inverse
    variance of the position seen. Returned: how many.
    """
    many, s, axes, to = 0, slot[i], len(noise2), np.uint64(to)
    new = 1 - known[i]
    while s >= 0 or new >= 0:
        if s >= 0:
            high = chance[s]
        elif new >= _LEAST or many == 0:
            high = max(new, _LEAST)
        else:
            break
        volume, at = 1.0, np.uint64(s) * np.uint64(axes)
        for k in range(axes):
            if s >= 0:
                m, c = (at + np.uint64(k)) * _TWO, (at + np.uint64(k)) * _THREE
                x, v, xx, xv, vv = mean[m], mean[m + _ONE], cov[c], cov[c + _ONE], cov[c + _TWO]
            else:
                x, v, xx, xv, vv = position[i, k], 0.0, noise2[k], 0.0, speed2[k]
            reach, kept = table[gap, k, 0], table[gap, k, 1]
            p_xx = xx + 2 * reach * xv + reach * reach * vv + table[gap, k, 2]
            state[to] = x + reach * v + (gap * shift[i, k] if way > 0 else 0.0)
            state[to + _ONE] = kept * v
            state[to + _TWO] = p_xx
            state[to + _THREE] = kept * (xv + reach * vv) + table[gap, k, 3]
            state[to + _FOUR] = kept * kept * vv + table[gap, k, 4]
            inverse = 1 / (p_xx + noise2[k])
            state[to + _FIVE] = inverse
            volume *= inverse
            to += _SIX
        weight[many] = high * math.sqrt(volume)
        many += 1
        if s < 0:
            break
        s = following[s]
    return many


@njit(nogil=True, cache=True, error_model="numpy")
def _weighed(many, places, here, weight, state, at, form, far, height, odds, noise2):  # pragma: no cover
    """Likelihoods of some places by each of many expectations.

    here (A, n) f8 places; state, at as `_expected` writes them; form: narrow, power and quarters as `fallen`
    takes them. Written: odds (M places,) f8, expectation after expectation. Room: far, height alike.
    """
    axes, to, at = len(noise2), np.uint64(0), np.uint64(at)
    for c in range(many):
        for p in range(places):
            away = 0.0
            for k in range(axes):
                d = here[k, p] - state[at + np.uint64(6 * k)]
                away += d * d * state[at + np.uint64(6 * k + 5)]
            far[to], height[to] = away, weight[c]
            to += _ONE
        at += np.uint64(6 * axes)
    fallen(np.uint64(0), to, far, height, form[0], form[1], form[2], odds)


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


@njit(nogil=True, cache=True)
def _stand_together(
    begun, slots, first, last, axes, slot, following, owner, chance, mean, cov
):  # pragma: no cover
    """Move beliefs begun..slots-1, which came one by one, so that those of one detection follow each other.

    As in `_expected`, of the detections first..last-1; axes: a tuple as long. Written: owner (S,) i8, whose
    each is.
    """
    onward, likely = following[begun:slots].copy(), chance[begun:slots].copy()
    two, three, to = 2 * len(axes), 3 * len(axes), begun
    centre, spread = mean[begun * two : slots * two].copy(), cov[begun * three : slots * three].copy()
    for j in range(first, last):
        s = slot[j]
        if s < 0:
            continue
        slot[j] = to
        while s >= 0:
            s -= begun
            owner[to], chance[to], following[to] = j, likely[s], to + 1
            for k in range(two):
                mean[to * two + k] = centre[s * two + k]
            for k in range(three):
                cov[to * three + k] = spread[s * three + k]
            s = onward[s]
            to += 1
        following[to - 1] = -1


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
    following,
    owner,
    chance,
    mean,
    cov,
):  # pragma: no cover
    """Beliefs of all probable pairs from one side in time, each a Gaussian.

    As `sweep_cpu.sweep`, and with the same arguments, but what is believed at a detection is kept apart for
    each that may be the one before it.
    Written: slot (N,) i8 first belief of each detection, -1 for none; known (N,) f8 probability that there
    was one before; alone (N,) f8 that it is clutter; free_odds (P,) f8 odds of each pair, against all
    others, from this side alone. Returned, of S beliefs, in the room given, doubled when it is full:
    following (S,) i8 the next of the same detection, owner (S,) i8 that detection, chance (S,) f8,
    mean (2 A S,), cov (3 A S,) f8, with the detection itself taken in.
    """
    count, axes = len(position), len(noise2)
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
    slots = 0
    # Of the pairs into one frame, those that count, source by source.
    source, gap_of = np.empty(most * gaps, np.uint32), np.empty(most * gaps, np.uint32)
    begin, least = np.empty(most * gaps + 1, np.uint32), np.empty(most * gaps)
    width = len(indices) + 1
    pair, col = np.empty(width, np.uint64), np.empty(width, np.uint32)
    odds, heard, said = np.empty(width), np.empty(width), np.empty(width)
    total = np.empty(most)
    degree = 1
    for i in range(count):
        degree = max(degree, np.int64(indptr[i + 1] - indptr[i]))
    weight, here = np.empty(_MOST), np.empty((axes, degree))
    # What is expected of the sources of a frame, and how likely that makes each pair, one after another.
    state, part = np.empty(_MOST * axes * 6 * 64), np.empty(_MOST * degree * 8)
    far, height, likely = np.empty(_MOST * degree), np.empty(_MOST * degree), np.empty(_MOST * degree)
    state_at, part_at = np.empty(most * gaps, np.uint64), np.empty(most * gaps, np.uint64)
    origin, places_of, many_of = state_at.copy(), source.copy(), source.copy()
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
        sources, pairs, states, parts = 0, np.uint64(0), 0, 0
        for g in range(1, gaps + 1):
            h = f - sign * g
            if h < 0 or h >= frames:
                break
            for i in range(frame_start[h], frame_start[h + 1]):
                if at[i] == indptr[i + 1] or indices[at[i]] < first or indices[at[i]] >= last:
                    continue
                places, begin[sources], origin[sources] = 0, pairs, at[i]
                for e in range(at[i], indptr[i + 1]):
                    j = indices[e]
                    if j < first or j >= last:
                        break
                    for k in range(axes):
                        here[k, places] = position[j, k] + (g * shift[j, k] if backward else 0.0)
                    pair[pairs], col[pairs] = e, j - first
                    places += 1
                    pairs += _ONE
                at[i] += np.uint64(places)
                if states + _MOST * axes * 6 > len(state):
                    state = np.append(state, state)
                many = _expected(
                    i, g, sign, position, shift, table, speed2, noise2, slot, following, chance, mean, cov,
                    known, weight, state, states,
                )  # fmt: skip
                while parts + many * places > len(part):
                    part = np.append(part, part)
                _weighed(many, places, here, weight, state, states, form, far, height, likely, noise2)
                high = odds_of_gap[g] * free[i] * (odds_of_later[i] if backward else 1.0)
                n = np.uint64(0)
                odds[begin[sources] : pairs] = 0.0
                for _ in range(many):
                    for c in range(np.uint64(begin[sources]), pairs):
                        part[np.uint64(parts) + n] = likely[n]
                        odds[c] += likely[n]
                        n += _ONE
                for c in range(np.uint64(begin[sources]), pairs):
                    odds[c] *= high * (1.0 if backward else odds_of_later[first + col[c]])
                source[sources], gap_of[sources], places_of[sources], many_of[sources] = i, g, places, many
                state_at[sources], part_at[sources] = states, parts
                states, parts = states + many * axes * 6, parts + many * places
                least[sources] = spent[i] + later[g] * free[i]
                sources += 1
        begin[sources] = pairs
        total[: last - first] = 1.0
        _weigh(sources, begin, pair, col, odds, least, said, total)
        for _ in range(rounds):
            _propagate(sources, begin, col, odds, least, said, total, heard)
        new_slots = slots
        for s in range(sources):
            i, g, many, places = source[s], np.int64(gap_of[s]), np.int64(many_of[s]), np.int64(places_of[s])
            for c in range(begin[s], begin[s + 1]):
                open_to = 1 / max(total[col[c]] - said[c], 1.0)
                spent[i] += odds[c] * open_to
                free_odds[pair[c]] = open_to * said[c]
                j, q = first + col[c], said[c] / total[col[c]]
                if q < _LEAST:
                    continue
                known[j] += q
                if slots == len(chance):
                    following, owner = np.append(following, following), np.append(owner, owner)
                    chance = np.append(chance, chance)
                    mean, cov = np.append(mean, mean), np.append(cov, cov)
                following[slots], chance[slots] = slot[j], q
                slot[j] = slots
                whole, begun, stride = 0.0, part_at[s] + pair[c] - origin[s], np.uint64(places)
                at_part = begun
                for _ in range(many):
                    whole += part[at_part]
                    at_part += stride
                whole = 1 / whole
                for k in range(axes):
                    seen = position[j, k] + (g * shift[j, k] if backward else 0.0)
                    a = u = aa = au = uu = 0.0
                    n, at_part = state_at[s] + np.uint64(6 * k), begun
                    for _ in range(many):
                        p, p_xx, p_xv = part[at_part] * whole, state[n + _TWO], state[n + _THREE]
                        d, inverse = seen - state[n], state[n + _FIVE]
                        share_x, share_v = p_xx * inverse, p_xv * inverse
                        x, v = (share_x - 1) * d, state[n + _ONE] + share_v * d
                        a += p * x
                        u += p * v
                        aa += p * ((1 - share_x) * p_xx + x * x)
                        au += p * ((1 - share_x) * p_xv + x * v)
                        uu += p * (state[n + _FOUR] - share_v * p_xv + v * v)
                        n += np.uint64(6 * axes)
                        at_part += stride
                    m, n = (slots * axes + k) * 2, (slots * axes + k) * 3
                    mean[m], mean[m + 1] = position[j, k] + a, u
                    cov[n], cov[n + 1], cov[n + 2] = aa - a * a, au - a * u, uu - u * u
                slots += 1
        _stand_together(new_slots, slots, first, last, noise2, slot, following, owner, chance, mean, cov)
        for j in range(first, last):
            new = max(1 - known[j], 0.0)
            # Where many could swap, belief propagation sees too many that are new (LinkModel.strange).
            alone[j] = strangers * new * math.sqrt(new) if turn > 0 else clutter
            free[j] = (1 - alone[j]) / (1 - clutter) * unlinked / ((1 - alone[j]) * real + alone[j])
    mean, cov = mean[: slots * axes * 2], cov[: slots * axes * 3]
    return following[:slots], owner[:slots], chance[:slots], mean, cov


@njit(nogil=True, cache=True)
def mixed(
    position, slot, following, chance, mean, cov, known, speed2, noise2, centre, spread
):  # pragma: no cover
    """All that is believed of each detection as one Gaussian.

    position to known as in `_expected`, but mean (S, A, 2), cov (S, A, 3); speed2, noise2 (A,) f8 variances.
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
