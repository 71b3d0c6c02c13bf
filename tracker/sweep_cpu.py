"""CPU kernels of sweep: beliefs carried through a movie frame by frame, all probable links at once.

Serial, without the GIL; no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_HOPELESS = 3e-7  # odds from which on a pair is none
_LARGEST = 1e87  # odds are cut there: their products must be finite
_OUTDONE = 1e-6  # odds, against the best of the same source, below which a pair is none
_LEAST = 1e-3  # links less likely than this carry no belief


@njit(nogil=True, cache=True)
def transpose(indptr, indices, col_indptr, rows, place):  # pragma: no cover
    """Pairs column by column, rows from the last to the first, so that shorter gaps come first.

    indptr (N+1,) i8, indices (P,) i4 pairs. Written: col_indptr (N+1,) i8, rows (P,) i4, place (P,) i8
    where each of the pairs stands among the rows.
    """
    count = len(indptr) - 1
    col_indptr[:] = 0
    for e in range(len(indices)):
        col_indptr[indices[e] + 1] += 1
    for j in range(count):
        col_indptr[j + 1] += col_indptr[j]
    to = col_indptr[:-1].copy()
    for i in range(count - 1, -1, -1):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            place[e] = to[j]
            rows[to[j]] = i
            to[j] += 1


@njit(nogil=True, cache=True, error_model="numpy")
def fallen(far, height, narrow, power, quarters, odds):  # pragma: no cover
    """Odds of pairs, height (1 + narrow far) to the power -power; the Gaussian's if narrow is 0.

    far, height (P,) f8. Roots are quicker than logs: quarters is 4 power if whole, else 0.
    Written: odds (P,) f8.
    """
    if narrow == 0:
        for c in range(len(odds)):
            odds[c] = height[c] * math.exp(-0.5 * far[c])
        return
    if quarters == 0 or quarters >= 256:
        for c in range(len(odds)):
            odds[c] = height[c] * math.exp(-power * math.log1p(narrow * far[c]))
        return
    # Without a branch, so that the processor does several at once.
    half, quarter, whole = quarters & 2 != 0, quarters & 1 != 0, quarters >> 2
    for c in range(len(odds)):
        left = 1 / (1 + narrow * far[c])
        root, value = math.sqrt(left), height[c]
        value *= root if half else 1.0
        value *= math.sqrt(root) if quarter else 1.0
        for bit in range(6):
            value *= left if (whole >> bit) & 1 else 1.0
            left *= left
        odds[c] = value


@njit(nogil=True, cache=True, error_model="numpy")
def sweep(
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
    mean,
    cov,
    known,
    alone,
    free_odds,
):  # pragma: no cover
    """Beliefs of all detections from one side in time, as mixtures over all links, of one Gaussian each.

    Frame by frame each detection is predicted from those that may be the one before; belief propagation
    over the pairs of this frame, source after source, tells how likely each is; the updated beliefs are
    mixed as likely.
    position (N, A) f8; frame_start (F+1,) i8; backward: whether time runs so; indptr (N+1,)
    i8, indices (P,) i4: pairs by the detection that comes first in this direction, shorter gaps first; shift
    (N, A) f8 known displacement in a frame from each, forward; table (G+1, A, 5) f8 transitions; speed2,
    noise2 (A,) f8; gain_of_gap (G+1,), gain_of_later (N,) f8 logs; later (G+1,) f8: odds, against
    an end, of a link over more frames than so many; freedom, scale f8 as in weigh_pairs;
    clutter f8 share of the detections that are no particle, strangers f8 of those without one before;
    unlinked f8 probability that none comes after.
    Written: mean (N, A, 2), cov (N, A, 3) f8, with each detection itself taken in; known (N,) f8 probability
    that there was one before; alone (N,) f8 that it is clutter; free_odds (P,) f8 odds of each pair, against
    all others, from this side alone.
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
    # Of the pairs into one frame, those that count, source by source.
    source, gap_of = np.empty(most * gaps, np.int64), np.empty(most * gaps, np.int64)
    begin, told = np.empty(most * gaps + 1, np.int64), np.empty((most * gaps, axes, 7))
    pair, col = np.empty(len(indices), np.int64), np.empty(len(indices), np.int64)
    odds, far, height = np.empty(len(indices)), np.empty(len(indices)), np.empty(len(indices))
    heard, said = far, height  # what a source hears of a pair, and says: the same room, used later
    total, taken, part = np.empty(most), np.empty(most), np.empty((most, axes, 5))
    x, inverse = np.empty(axes), np.empty(axes)
    constant, power = -0.5 * axes * math.log(2 * math.pi), (freedom + axes) / 2
    narrow, quarters = 0.0, 0
    if freedom > 0:
        constant = math.lgamma(power) - math.lgamma(freedom / 2)
        constant -= axes / 2 * math.log(freedom * scale * math.pi)
        narrow = 1 / (freedom * scale)
        if 4 * power == math.floor(4 * power):
            quarters = int(4 * power)
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
                volume = 1.0
                for k in range(axes):
                    reach, kept = table[g, k, 0], table[g, k, 1]
                    xx, xv, vv = cov[i, k, 0], cov[i, k, 1], cov[i, k, 2]
                    x[k] = mean[i, k, 0] + reach * mean[i, k, 1]
                    if not backward:
                        x[k] += g * shift[i, k]
                    p_xx = xx + 2 * reach * xv + reach * reach * vv + table[g, k, 2]
                    p_xv = kept * (xv + reach * vv) + table[g, k, 3]
                    p_vv = kept * kept * vv + table[g, k, 4]
                    inverse[k] = 1 / (p_xx + noise2[k])
                    volume *= inverse[k]
                    share_x, share_v = p_xx * inverse[k], p_xv * inverse[k]
                    told[sources, k, 0] = share_x - 1
                    told[sources, k, 1] = share_v
                    told[sources, k, 2] = kept * mean[i, k, 1]
                    told[sources, k, 3] = (1 - share_x) * p_xx
                    told[sources, k, 4] = (1 - share_x) * p_xv
                    told[sources, k, 5] = p_vv - share_v * p_xv
                    told[sources, k, 6] = x[k]
                high, begin[sources] = odds_of_gap[g] * math.sqrt(volume), pairs
                while e < indptr[i + 1] and indices[e] >= first and indices[e] < last:
                    j, away = indices[e], 0.0
                    for k in range(axes):
                        d = position[j, k] - x[k]
                        if backward:
                            d += g * shift[j, k]
                        away += d * d * inverse[k]
                    far[pairs], height[pairs] = away, high * odds_of_later[i if backward else j]
                    pair[pairs], col[pairs] = e, j - first
                    pairs += 1
                    e += 1
                at[i] = e
                source[sources], gap_of[sources] = i, g
                sources += 1
        begin[sources] = pairs
        fallen(far[:pairs], height[:pairs], narrow, power, quarters, odds[:pairs])
        total[: last - first] = 1.0
        pairs = 0
        for s in range(sources):
            # What is far less likely than another choice of the same source does not count.
            least_odds = _HOPELESS
            for c in range(begin[s], begin[s + 1]):
                odds[c] = min(odds[c], _LARGEST)
                least_odds = max(least_odds, _OUTDONE * odds[c])
            least = whole = spent[source[s]] + later[gap_of[s]] * free[source[s]]
            start, stop, begin[s] = begin[s], begin[s + 1], pairs
            for c in range(start, stop):
                # Written in any case: which pairs count, no processor can guess.
                kept, chance = odds[c] > least_odds, odds[c]
                pair[pairs], col[pairs], odds[pairs] = pair[c], col[c], chance
                whole += chance if kept else 0.0
                pairs += kept
            for c in range(begin[s], pairs):
                said[c] = odds[c] / max(whole - odds[c], least)
                total[col[c]] += said[c]
        begin[sources] = pairs
        for _ in range(rounds):
            for s in range(sources):
                if begin[s + 1] < begin[s] + 2:
                    continue  # a source of one pair says always the same
                least = whole = spent[source[s]] + later[gap_of[s]] * free[source[s]]
                for c in range(begin[s], begin[s + 1]):
                    heard[c] = odds[c] / max(total[col[c]] - said[c], 1.0)
                    whole += heard[c]
                for c in range(begin[s], begin[s + 1]):
                    says = odds[c] / max(whole - heard[c], least)
                    total[col[c]] += says - said[c]
                    said[c] = says
        taken[: last - first] = 0.0
        part[: last - first] = 0.0
        for s in range(sources):
            g = gap_of[s]
            for c in range(begin[s], begin[s + 1]):
                open_to = 1 / max(total[col[c]] - said[c], 1.0)
                spent[source[s]] += odds[c] * open_to
                free_odds[pair[c]] = open_to * said[c]
                q = said[c] / total[col[c]]
                if q < _LEAST:
                    continue
                j = col[c]
                taken[j] += q
                for k in range(axes):
                    d = position[first + j, k] - told[s, k, 6]
                    if backward:
                        d += g * shift[first + j, k]
                    # Relative to the position seen.
                    a, u = told[s, k, 0] * d, told[s, k, 2] + told[s, k, 1] * d
                    part[j, k, 0] += q * a
                    part[j, k, 1] += q * u
                    part[j, k, 2] += q * (told[s, k, 3] + a * a)
                    part[j, k, 3] += q * (told[s, k, 4] + a * u)
                    part[j, k, 4] += q * (told[s, k, 5] + u * u)
        for j in range(first, last):
            known[j] = taken[j - first]
            new = max(1 - known[j], 0.0)
            # Where many could swap, belief propagation sees too many that are new (LinkModel.strange).
            alone[j] = strangers * new * math.sqrt(new) if turn > 0 else clutter
            free[j] = (1 - alone[j]) / (1 - clutter) * unlinked / ((1 - alone[j]) * real + alone[j])
            for k in range(axes):
                a, u = part[j - first, k, 0], part[j - first, k, 1]
                mean[j, k, 0] = position[j, k] + a
                mean[j, k, 1] = u
                cov[j, k, 0] = part[j - first, k, 2] + new * noise2[k] - a * a
                cov[j, k, 1] = part[j - first, k, 3] - a * u
                cov[j, k, 2] = part[j - first, k, 4] + new * speed2[k] - u * u
