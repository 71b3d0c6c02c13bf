"""CPU kernels of headings: beliefs about a particle for each possible predecessor of a detection.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads. A product and
a sum may be fused and rounded once ("contract"), here and in the callers. Beliefs of detection i: slot[i]
to stop[i]-1, one for each that may be the one before it, and at stop[i] that there was none, if that is
at least as likely as `_LEAST`; slot, stop (N,) i8; known (N,) f8 probability that there was one before.
Of each belief chance (S,) f8 its probability, belief (5 A S,) f4 along each axis how far it is from the
position seen, velocity, and their covariance, with the detection itself taken in: most of the memory that
a movie takes is these.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .sweep_cpu import _propagate, _weigh, fallen
from .weigh_cpu import at_frame

_LEAST = 1e-2  # links less likely than this carry no belief
_MOST = 102  # and so no detection has more of them, and a beginning
_AT_ONCE = 256  # likelihoods that are worked out together, about
_ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX = (np.uint64(number) for number in range(1, 7))


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _expected(
    i, gap, way, position, shift, table, noise2, slot, stop, known, chance, belief, weight, state, to
):  # pragma: no cover
    """Predictions from detection i a number of frames later, for each possible predecessor, and for none.

    way: 1 forward, -1 backward in time. Written: weight (M,) f8 density at none; state[to] (6 A M,) f8 along
    each axis position, inverse of the variance of the position seen, velocity, covariance. Returned: M.
    """
    axes, row = len(noise2), table[np.uint64(gap)]
    begun, many = slot[i], stop[i] - slot[i] + (1 - known[i] >= _LEAST)
    at = np.uint64(begun) * np.uint64(5 * axes)
    for m in range(many):
        volume = 1.0
        for k in range(axes):
            x, v, xx = np.float64(belief[at]), np.float64(belief[at + _ONE]), np.float64(belief[at + _TWO])
            xv, vv = np.float64(belief[at + _THREE]), np.float64(belief[at + _FOUR])
            reach, kept = row[k, 0], row[k, 1]
            p_xx = xx + 2 * reach * xv + reach * reach * vv + row[k, 2]
            inverse = 1 / (p_xx + noise2[k])
            state[to] = position[i, k] + (
                x + reach * v + (row[k, 5] * shift[i, k] + row[k, 6] if way > 0 else 0.0)
            )
            state[to + _ONE], state[to + _TWO], state[to + _THREE] = inverse, kept * v, p_xx
            state[to + _FOUR] = kept * (xv + reach * vv) + row[k, 3]
            state[to + _FIVE] = kept * kept * vv + row[k, 4]
            volume *= inverse
            at += _FIVE
            to += _SIX
        weight[m] = chance[begun + m] * math.sqrt(volume)
    return np.uint64(many)


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _apart(
    j, row, way, position, shift, noise2, many, weight, state, at, far, height, to
):  # pragma: no cover
    """Distance of detection j from each of many predictions, which `_expected` wrote from state[at] on.

    Written: behind far[to] squared distances, behind height[to] densities at none. Returned: the next.
    """
    for m in range(many):
        away = 0.0
        for k in range(len(noise2)):
            d = position[j, k] - state[at]
            if way < 0:
                d += row[k, 5] * shift[j, k] + row[k, 6]
            away += d * d * state[at + _ONE]
            at += _SIX
        far[to], height[to] = away, weight[m]
        to += _ONE
    return to


@njit(nogil=True, cache=True)
def _form(axes, freedom, scale):  # pragma: no cover
    """Log of the constant of the density, and narrow, power and quarters for `fallen`."""
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


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
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
    stop,
    known,
    alone,
    free_odds,
    chance,
    belief,
):  # pragma: no cover
    """Beliefs of all probable pairs from one side in time, each a Gaussian.

    Like `sweep_cpu.sweep`, with the same arguments, but with a separate belief for each possible predecessor
    of a detection. Written: slot, stop, known as above; alone (N,) f8 probability that each is clutter;
    free_odds (P,) f8 odds of each pair, against all others, from this side alone. Returned: chance and
    belief, in the room given, doubled when it is full.
    """
    count, axes = len(position), len(noise2)
    frames, gaps = len(frame_start) - 1, table.shape[1] - 1
    most, degree = 0, 1
    for f in range(frames):
        most = max(most, frame_start[f + 1] - frame_start[f])
    for i in range(count):
        degree = max(degree, np.int64(indptr[i + 1] - indptr[i]))
    real = (unlinked - clutter) / (1 - clutter)
    free = np.ones(count)  # odds of a link from each, against those from any
    at, spent = indptr[:-1].copy(), np.ones(count)
    free_odds[:] = 0.0
    known[:] = 0.0
    slots = 0
    # Of the pairs into one frame, those that count, source by source; one more, written and forgotten.
    room, width = most * gaps, len(indices) + 1
    source, gap_of = np.empty(room, np.uint32), np.empty(room, np.uint32)
    begin, least, high = np.empty(room + 1, np.uint32), np.empty(room), np.empty(room)
    pair, col = np.empty(width, np.uint64), np.empty(width, np.uint32)
    odds, heard, said = np.empty(width), np.empty(width), np.empty(width)
    teller, hearer = np.empty(width, np.uint32), np.empty(width, np.uint64)
    total, carried = np.empty(most), np.empty(most, np.int64)
    # What is expected of the sources of a frame, and how likely that makes each pair, one after another.
    state, part = np.empty(_MOST * axes * 6 * 64), np.empty(_MOST * degree * 8)
    weight, wide = np.empty(_MOST), np.uint64(6 * axes)
    far, height = np.empty(_MOST * degree + _AT_ONCE), np.empty(_MOST * degree + _AT_ONCE)
    state_at, part_at = np.empty(room, np.uint64), np.empty(room, np.uint64)
    origin, many_of = np.empty(room, np.uint64), np.empty(room, np.uint64)
    sign, (constant, form) = -1 if backward else 1, _form(axes, freedom, scale)
    usual = 0.0
    for i in range(count):
        usual += gain_of_later[i] / count
    odds_of_later, odds_of_gap = np.exp(gain_of_later - usual), np.exp(constant + usual + gain_of_gap)
    for turn in range(frames):
        f = frames - 1 - turn if backward else turn
        first, last = frame_start[f], frame_start[f + 1]
        if first == last:
            continue
        sources, pairs, states, parts, ready = 0, np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        for g in range(1, gaps + 1):
            h = f - sign * g
            if h < 0 or h >= frames:
                break
            rows = at_frame(table, min(f, h))
            for i in range(frame_start[h], frame_start[h + 1]):
                if at[i] == indptr[i + 1] or indices[at[i]] < first or indices[at[i]] >= last:
                    continue
                if states + _MOST * wide > len(state):
                    state = np.append(state, state)
                many = _expected(
                    i, g, sign, position, shift, rows, noise2, slot, stop, known, chance, belief, weight,
                    state, states,
                )  # fmt: skip
                begin[sources], origin[sources] = pairs, at[i]
                state_at[sources], part_at[sources] = states, parts + ready
                for e in range(at[i], indptr[i + 1]):
                    j = np.uint64(indices[e])
                    if j < first or j >= last:
                        break
                    ready = _apart(
                        j, rows[g], sign, position, shift, noise2, many, weight, state, states, far, height,
                        ready,
                    )  # fmt: skip
                    pair[pairs], col[pairs] = e, j - first
                    pairs += _ONE
                at[i] += pairs - begin[sources]
                states += many * wide
                source[sources], gap_of[sources], many_of[sources] = i, g, many
                high[sources] = odds_of_gap[g] * free[i] * (odds_of_later[i] if backward else 1.0)
                least[sources] = spent[i] + later[g] * free[i]
                sources += 1
                if ready >= _AT_ONCE:
                    part = _likely(ready, far, height, form, part, parts)
                    parts, ready = parts + ready, np.uint64(0)
        part = _likely(ready, far, height, form, part, parts)
        begin[sources] = pairs
        for s in range(sources):
            p = part_at[s]
            for c in range(begin[s], begin[s + 1]):
                whole = 0.0
                for _ in range(many_of[s]):
                    whole += part[p]
                    p += _ONE
                odds[c] = whole * high[s] * (1.0 if backward else odds_of_later[first + col[c]])
        total[: last - first] = 1.0
        _weigh(sources, begin, pair, col, odds, least, said, total)
        for _ in range(rounds):
            _propagate(sources, begin, col, odds, least, said, total, heard)
        # Which pairs carry belief, and how many to each detection.
        carried[: last - first], telling = 0, np.uint64(0)
        for s in range(sources):
            left = 0.0
            for c in range(begin[s], begin[s + 1]):
                j, says = np.uint64(col[c]), said[c]
                open_to, q = 1 / max(total[j] - says, 1.0), says / total[j]
                left += odds[c] * open_to
                free_odds[pair[c]] = open_to * says
                # Written in any case: which pairs do, no processor can guess.
                teller[telling], hearer[telling], heard[telling] = s, c, q
                carries = q >= _LEAST
                telling += np.uint64(carries)
                carried[j] += carries
                known[first + j] += q if carries else 0.0
            spent[source[s]] += left
        while slots + telling + last - first > len(chance):
            chance, belief = np.append(chance, chance), np.append(belief, belief)
        for j in range(first, last):
            slot[j] = stop[j] = slots
            slots += carried[j - first]
            new = max(1 - known[j], 0.0)
            if new >= _LEAST:
                chance[slots], to = new, np.uint64(slots) * np.uint64(5 * axes)
                for k in range(axes):
                    belief[to], belief[to + _ONE], belief[to + _TWO] = 0.0, 0.0, noise2[k]
                    belief[to + _THREE], belief[to + _FOUR] = 0.0, speed2[k]
                    to += _FIVE
                slots += 1
            # Where many could swap, belief propagation sees too many that are new (LinkModel.strange).
            alone[j] = strangers * new * math.sqrt(new) if turn > 0 else clutter
            free[j] = (1 - alone[j]) / (1 - clutter) * unlinked / ((1 - alone[j]) * real + alone[j])
        rows = at_frame(table, f)
        for n in range(telling):
            s, c = np.uint64(teller[n]), hearer[n]
            j = first + col[c]
            chance[stop[j]] = heard[n]
            _taken_in(
                j, rows[np.int64(gap_of[s])], sign, position, shift, noise2, many_of[s], state, state_at[s],
                part, part_at[s] + (pair[c] - origin[s]) * many_of[s], belief, np.uint64(stop[j]),
            )  # fmt: skip
            stop[j] += 1
    return chance[:slots], belief[: slots * axes * 5]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _likely(ready, far, height, form, part, to):  # pragma: no cover
    """Likelihoods behind part[to], by what `_apart` and `_form` tell. Returned: part, doubled when full."""
    while to + ready > len(part):
        part = np.append(part, part)
    fallen(np.uint64(0), ready, far, height, form[0], form[1], form[2], part[to:])
    return part


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _taken_in(
    j, row, way, position, shift, noise2, many, state, at, part, begun, belief, to
):  # pragma: no cover
    """Combine many predictions, updated with detection j, into one Gaussian.

    As `_apart`; part[begun] (M,) f8 likelihood of j by each. Written: belief number `to`.
    """
    axes, whole = len(noise2), 0.0
    for m in range(begun, begun + many):
        whole += part[m]
    whole, to = 1 / whole, to * np.uint64(5 * axes)
    for k in range(axes):
        seen = position[j, k] + (row[k, 5] * shift[j, k] + row[k, 6] if way < 0 else 0.0)
        a = u = aa = au = uu = 0.0
        n = at + np.uint64(6 * k)
        for m in range(begun, begun + many):
            p, p_xx, p_xv, inverse = part[m] * whole, state[n + _THREE], state[n + _FOUR], state[n + _ONE]
            d, share_x, share_v = seen - state[n], p_xx * inverse, p_xv * inverse
            x, v = (share_x - 1) * d, state[n + _TWO] + share_v * d
            a += p * x
            u += p * v
            aa += p * ((1 - share_x) * p_xx + x * x)
            au += p * ((1 - share_x) * p_xv + x * v)
            uu += p * (state[n + _FIVE] - share_v * p_xv + v * v)
            n += np.uint64(6 * axes)
        belief[to], belief[to + _ONE], belief[to + _TWO] = a, u, aa - a * a
        belief[to + _THREE], belief[to + _FOUR] = au - a * u, uu - u * u
        to += _FIVE


@njit(nogil=True, cache=True)
def mixed(position, slot, stop, known, chance, belief, speed2, noise2, centre, spread):  # pragma: no cover
    """Combine the beliefs about the state of each detection into one Gaussian.

    speed2, noise2 (A,) f8 variances. Written: centre (N, A, 2), spread (N, A, 3) f8 mean and covariance.
    """
    axes = len(noise2)
    for i in range(len(position)):
        new = max(1 - known[i], 0.0)
        for k in range(axes):
            a, u, aa, au, uu = 0.0, 0.0, new * noise2[k], 0.0, new * speed2[k]
            at = (np.uint64(slot[i]) * np.uint64(axes) + np.uint64(k)) * _FIVE
            for s in range(slot[i], stop[i]):
                x, v, q = np.float64(belief[at]), np.float64(belief[at + _ONE]), chance[s]
                a += q * x
                u += q * v
                aa += q * (belief[at + _TWO] + x * x)
                au += q * (belief[at + _THREE] + x * v)
                uu += q * (belief[at + _FOUR] + v * v)
                at += np.uint64(5 * axes)
            centre[i, k, 0], centre[i, k, 1] = position[i, k] + a, u
            spread[i, k, 0], spread[i, k, 1], spread[i, k, 2] = aa - a * a, au - a * u, uu - u * u
