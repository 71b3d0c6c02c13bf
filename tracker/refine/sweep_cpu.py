"""CPU kernels of sweep: propagate beliefs from frame to frame along all probable links.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .weigh_cpu import at_frame

_HOPELESS = 3e-7  # odds from which on a pair is none
_LARGEST = 1e87  # odds are cut there: their products must be finite
_OUTDONE = 1e-6  # odds, against the best of the same source, below which a pair is none
_LEAST = 1e-3  # links less likely than this carry no belief
_FARTHEST = 1400.0  # squared distance, in standard deviations, beyond which there are no odds
_SHARES = tuple(1 / max(k, 1) for k in range(8))
_ONE = np.uint64(1)


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
def fallen(first, last, far, height, narrow, power, quarters, odds):  # pragma: no cover
    """Odds of some pairs, height (1 + narrow far) to the power -power; the Gaussian's if narrow is 0.

    far, height (P,) f8. Roots are quicker than logs: quarters is 4 power if whole, else 0.
    The Gaussian's are right to 1e-9 up to a far of 200, to 1 % where they are 1e-304, and 0 from there on.
    Written: odds (P,) f8, pairs first..last-1.
    """
    if narrow == 0:
        # A root of the exponential function by its series, and the power of that, without a branch.
        for c in range(first, last):
            part = min(far[c], _FARTHEST) * (0.5 / 512)
            whole = 1 + part * (1 / 8)
            for k in range(7, 0, -1):
                whole = 1 + whole * part * _SHARES[k]
            left = 1 / whole
            for _ in range(9):
                left *= left
            odds[c] = height[c] * left if far[c] < _FARTHEST else 0.0
        return
    if quarters == 0 or quarters >= 256:
        for c in range(first, last):
            odds[c] = height[c] * math.exp(-power * math.log1p(narrow * far[c]))
        return
    # Without a branch, so that the processor does several at once.
    half, quarter, whole = quarters & 2 != 0, quarters & 1 != 0, quarters >> 2
    for c in range(first, last):
        left = 1 / (1 + narrow * far[c])
        root, value = math.sqrt(left), height[c]
        value *= root if half else 1.0
        value *= math.sqrt(root) if quarter else 1.0
        for bit in range(6):
            value *= left if (whole >> bit) & 1 else 1.0
            left *= left
        odds[c] = value


@njit(nogil=True, cache=True, error_model="numpy")
def _predict(
    position,
    shift,
    first,
    last,
    begun,
    ended,
    gap,
    backward,
    indptr,
    indices,
    at,
    mean,
    cov,
    table,
    noise2,
    odds_of_gap,
    odds_of_later,
    sources,
    pairs,
    source,
    gap_of,
    begin,
    told,
    pair,
    col,
    far,
    height,
):  # pragma: no cover
    """Predictions of detections begun..ended-1 for those of one frame, first..last-1, `gap` frames later.

    Most arguments as in sweep; at (N,) u8 where the pairs of each into this frame begin, moved on. Appended
    to so many sources and pairs: of each source source, gap_of (S,) u4, begin (S+1,) u4 of its pairs, and
    told (7 A S,) f8: along each axis the place, how belief and velocity answer to a deviation, the velocity,
    the covariance; of each pair pair (P,) u8, col (P,) u4 within the frame, far (P,) f8 squared distance,
    height (P,) f8 odds at none. Returns how many there are now of both.
    """
    axes = len(noise2)
    x, inverse = np.empty(axes), np.empty(axes)
    for i in range(begun, ended):
        if at[i] == indptr[i + 1] or indices[at[i]] < first or indices[at[i]] >= last:
            continue
        volume, to = 1.0, sources * axes * 7
        for k in range(axes):
            reach, kept = table[gap, k, 0], table[gap, k, 1]
            xx, xv, vv, velocity = cov[i, k, 0], cov[i, k, 1], cov[i, k, 2], mean[i, k, 1]
            x[k] = mean[i, k, 0] + reach * velocity
            if not backward:
                x[k] += table[gap, k, 5] * shift[i, k] + table[gap, k, 6]
            p_xx = xx + 2 * reach * xv + reach * reach * vv + table[gap, k, 2]
            p_xv = kept * (xv + reach * vv) + table[gap, k, 3]
            p_vv = kept * kept * vv + table[gap, k, 4]
            inverse[k] = 1 / (p_xx + noise2[k])
            volume *= inverse[k]
            share_x, share_v = p_xx * inverse[k], p_xv * inverse[k]
            told[to] = x[k]
            told[to + 1] = share_x - 1
            told[to + 2] = share_v
            told[to + 3] = kept * velocity
            told[to + 4] = (1 - share_x) * p_xx
            told[to + 5] = (1 - share_x) * p_xv
            told[to + 6] = p_vv - share_v * p_xv
            to += 7
        high, begin[sources] = odds_of_gap[gap] * math.sqrt(volume), pairs
        if backward:
            high *= odds_of_later[i]
        for e in range(at[i], indptr[i + 1]):
            j, away = indices[e], 0.0
            if j < first or j >= last:
                break
            for k in range(axes):
                d = position[j, k] - x[k]
                if backward:
                    d += table[gap, k, 5] * shift[j, k] + table[gap, k, 6]
                away += d * d * inverse[k]
            far[pairs], height[pairs] = away, high if backward else high * odds_of_later[j]
            pair[pairs], col[pairs] = e, j - first
            pairs += _ONE
        at[i] += pairs - begin[sources]
        source[sources], gap_of[sources] = i, gap
        sources += 1
    begin[sources] = pairs
    return sources, pairs


@njit(nogil=True, cache=True, error_model="numpy")
def _weigh(sources, begin, pair, col, odds, least, said, total):  # pragma: no cover
    """First messages of each source to its pairs; negligible pairs are dropped.

    Arguments as _predict writes them; odds (P,) f8; least (S,) f8 odds that each goes elsewhere. Written:
    said (P,) f8; added to total (C,) f8; begin, pair, col, odds anew.
    """
    pairs = np.uint64(0)
    for s in range(sources):
        # What is far less likely than another choice of the same source does not count.
        least_odds, start, stop, whole = _HOPELESS, begin[s], begin[s + 1], least[s]
        for c in range(start, stop):
            odds[c] = min(odds[c], _LARGEST)
            least_odds = max(least_odds, _OUTDONE * odds[c])
        begin[s] = pairs
        for c in range(start, stop):
            # Written in any case: which pairs count, no processor can guess.
            kept, chance = odds[c] > least_odds, odds[c]
            pair[pairs], col[pairs], odds[pairs] = pair[c], col[c], chance
            whole += chance if kept else 0.0
            pairs += np.uint64(kept)
        for c in range(begin[s], pairs):
            said[c] = odds[c] / max(whole - odds[c], least[s])
            total[col[c]] += said[c]
    begin[sources] = pairs


@njit(nogil=True, cache=True, error_model="numpy")
def _propagate(sources, begin, col, odds, least, said, total, heard):  # pragma: no cover
    """One round of belief propagation, source by source, as in _weigh; heard (P,) f8 is scratch space."""
    for s in range(sources):
        start, stop = begin[s], begin[s + 1]
        if stop < start + 2:
            continue  # a source of one pair says always the same
        whole = least[s]
        for c in range(start, stop):
            hears = odds[c] / max(total[col[c]] - said[c], 1.0)
            heard[c] = hears
            whole += hears
        for c in range(start, stop):
            j, says = col[c], odds[c] / max(whole - heard[c], least[s])
            total[j] += says - said[c]
            said[c] = says


@njit(nogil=True, cache=True, error_model="numpy")
def _settle(
    sources, begin, source, pair, col, odds, said, total, spent, free_odds, teller, hearer, word
):  # pragma: no cover
    """Odds of the pairs, and the pairs that propagate beliefs; arguments as in _weigh.

    Added to spent (N,) f8 odds. Written: free_odds; teller, hearer (P+1,) u4 source and column of those that
    do, word (P+1,) f8 what was said of them. Returns how many.
    """
    many = np.uint64(0)
    for s in range(sources):
        left = 0.0
        for c in range(begin[s], begin[s + 1]):
            j, says = col[c], said[c]
            open_to = 1 / max(total[j] - says, 1.0)
            left += odds[c] * open_to
            free_odds[pair[c]] = open_to * says
            # Written in any case, as above.
            teller[many], hearer[many], word[many] = s, j, says
            many += np.uint64(says >= _LEAST * total[j])
        spent[source[s]] += left
    return many


@njit(nogil=True, cache=True, error_model="numpy")
def _mix(
    many, teller, hearer, word, total, position, shift, backward, first, gap_of, rows, told, axes, taken, part
):  # pragma: no cover
    """Add up the beliefs that sources give the detections of a frame, weighted by probability.

    position, shift (N A,) f8; axes: a tuple as long. Added to taken (C,) f8 probabilities; part (5 A C,) f8:
    deviation of the belief from the position seen, its velocity, and their second moments.
    """
    wide = len(axes)
    for n in range(many):
        s, j = np.int64(teller[n]), np.int64(hearer[n])
        q = word[n] / total[j]
        taken[j] += q
        i, t, to = (first + j) * wide, s * wide * 7, j * wide * 5
        for k in range(wide):
            d = position[i + k] - told[t]
            if backward:
                d += rows[gap_of[s], k, 5] * shift[i + k] + rows[gap_of[s], k, 6]
            a, u = told[t + 1] * d, told[t + 3] + told[t + 2] * d
            part[to] += q * a
            part[to + 1] += q * u
            part[to + 2] += q * (told[t + 4] + a * a)
            part[to + 3] += q * (told[t + 5] + a * u)
            part[to + 4] += q * (told[t + 6] + u * u)
            t += 7
            to += 5


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
    """Beliefs of all detections from one side in time: mixtures over all links, as one Gaussian each.

    In each frame, each detection is predicted from its possible predecessors. Belief propagation over the
    pairs of this frame, source by source, gives their probabilities, with which the updated beliefs are
    averaged. position (N, A) f8; frame_start (F+1,) i8; backward: whether time runs so; indptr (N+1,) u8,
    indices (P,) u4: pairs by the detection that comes first in this direction, shorter gaps first; shift (N,
    A) f8 known displacement in a frame from each, forward; table as weigh_cpu.at_frame takes it; speed2,
    noise2: A floats; gain_of_gap (G+1,), gain_of_later (N,) f8 logs; later (G+1,) f8: odds, against an end,
    of a link over more frames than so many; freedom, scale f8 as in weigh_pairs; clutter f8 share of the
    detections that are no particle, strangers f8 of those without one before; unlinked f8 probability that
    none comes after. Written: mean (N, A, 2), cov (N, A, 3) f8, with each detection itself taken in; known
    (N,) f8 probability that there was one before; alone (N,) f8 that it is clutter; free_odds (P,) f8 odds of
    each pair, against all others, from this side alone.
    """
    # Tuples tell the compiler how many axes there are; whole numbers without a sign index without a check.
    count, axes = len(position), len(speed2)
    frames, gaps = len(frame_start) - 1, table.shape[1] - 1
    most = 0
    for f in range(frames):
        most = max(most, frame_start[f + 1] - frame_start[f])
    real = (unlinked - clutter) / (1 - clutter)
    free = np.ones(count)  # odds of a link from each, against those from any
    at, spent = indptr[:-1].copy(), np.ones(count)
    free_odds[:] = 0.0
    # Of the pairs into one frame, those that count, source by source; one more, written and forgotten.
    room, width = most * gaps, len(indices) + 1
    source, gap_of = np.empty(room, np.uint32), np.empty(room, np.uint32)
    begin, told, least = np.empty(room + 1, np.uint32), np.empty(room * axes * 7), np.empty(room)
    pair, col = np.empty(width, np.uint64), np.empty(width, np.uint32)
    odds, far, height = np.empty(width), np.empty(width), np.empty(width)
    heard, said = far, height  # what a source hears of a pair, and says: the same room, used later
    teller, hearer, word = np.empty(width, np.uint32), np.empty(width, np.uint32), np.empty(width)
    total, taken, part = np.empty(most), np.empty(most), np.empty((most, axes, 5))
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
        sources, pairs = 0, np.uint64(0)
        for g in range(1, gaps + 1):
            h = f - sign * g
            if h < 0 or h >= frames:
                break
            rows = at_frame(table, min(f, h))
            sources, pairs = _predict(
                position, shift, first, last, frame_start[h], frame_start[h + 1], g, backward, indptr,
                indices, at, mean, cov, rows, noise2, odds_of_gap, odds_of_later, sources, pairs, source,
                gap_of, begin, told, pair, col, far, height,
            )  # fmt: skip
        begin[sources] = pairs
        fallen(np.uint64(0), pairs, far, height, narrow, power, quarters, odds)
        for s in range(sources):
            least[s] = spent[source[s]] + later[gap_of[s]] * free[source[s]]
        total[: last - first], taken[: last - first], part[: last - first] = 1.0, 0.0, 0.0
        _weigh(sources, begin, pair, col, odds, least, said, total)
        for _ in range(rounds):
            _propagate(sources, begin, col, odds, least, said, total, heard)
        many = _settle(
            sources, begin, source, pair, col, odds, said, total, spent, free_odds, teller, hearer, word
        )
        _mix(
            many, teller, hearer, word, total, position.reshape(-1), shift.reshape(-1), backward, first,
            gap_of, at_frame(table, f), told, speed2, taken, part.reshape(-1),
        )  # fmt: skip
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
