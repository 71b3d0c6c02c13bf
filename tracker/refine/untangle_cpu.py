"""CPU kernels that compare tracks before and after an exchange of detections.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.


What they share: position, shift (N, A) f8 and frame (N,) i8 of the movie; links (2, N) i8, the detection
after and before each, or -1; past_mean, mean (N, A, 2) f8 and past_cov, cov (N, A, 3) f8, past and future as
filter_tracks writes them; place, weight, constant as messages writes them; table as at_frame takes it;
speed2, noise2 (A,) f8; tail (4,) f8: Student's degrees of freedom, or 0, the inverse of those times scale,
and the logs of its constants for a position, and for a position and a velocity; of_row, of_col (N,), of_gap
(G+1,) f8: what is known of a link without its ends; own (N,) f8: log odds of the link from each, NaN while
unknown. Arrays go one by one, into functions that are put in line: else each call would take longer than its
work.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .weigh_cpu import at_frame, messages

_LEAST = 0.01  # nats that an exchange must gain
_HOPELESS = -15.0  # nats that two tracks may lose where they part and win where they meet again
_HALF = 0.5 * math.log(2 * math.pi)
_SAME = 1e-2  # change of a belief, in its standard deviations or variances, that is none
_FAR = 60  # detections on from which on no belief has changed


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def untangle(
    position, frame, shift, links, past_mean, past_cov, mean, cov, place, weight, constant, table, speed2,
    noise2, tail, of_row, of_gap, of_col, indptr, indices, sweeps,
):  # pragma: no cover  # fmt: skip
    """Exchange parts of two tracks as long as their joint likelihood increases.

    indptr (R+1,) i8, indices (P,) i4 pairs that may become links; sweeps over all rows at most.
    Written: links and all that they tell.
    """
    count, axes = position.shape
    own = np.full(count, np.nan)
    active, later = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    some_mean, some_cov = np.empty((2, axes, 2)), np.empty((2, axes, 3))
    for _ in range(sweeps):
        found = False
        for p in range(count):
            first, some = indptr[p], indptr[p + 1] - indptr[p]
            if not active[p] or some == 0 or (some == 1 and indices[first] == links[0, p]):
                continue
            kind, y = _best(
                p, active, position, frame, shift, links, past_mean, past_cov, place, weight, constant, table,
                speed2, noise2, tail, of_row, of_gap, of_col, own, indptr, indices, some_mean, some_cov,
            )  # fmt: skip
            if kind < 0:
                continue
            found, x, q = True, links[0, p], links[1, y]
            after = links[0, y]
            if kind == 0:
                _link(links, p, y, q, x)
            elif kind == 1:
                _link(links, p, y, q, x)
                _link(links, y, links[0, x], x, after)
            else:
                _link(links, p, y, q, after)
                _link(links, y, x, -1, -1)
            for i in (y, after if kind == 2 else x):
                _tell_later(
                    i, kind, position, frame, shift, links, past_mean, past_cov, table, speed2, noise2, tail,
                    own, later, some_mean, some_cov,
                )  # fmt: skip
            for i in (p if kind == 0 else y, x if kind == 1 else q):
                _tell_earlier(
                    i, kind, position, frame, shift, links, mean, cov, place, weight, constant, table, speed2,
                    noise2, tail, own, later, some_mean, some_cov,
                )  # fmt: skip
        if not found:
            break
        for i in range(len(active)):  # an array assigned to a slice takes two seconds to compile
            active[i], later[i] = later[i], False


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _best(
    p, active, position, frame, shift, links, past_mean, past_cov, place, weight, constant, table, speed2,
    noise2, tail, of_row, of_gap, of_col, own, indptr, indices, some_mean, some_cov,
):  # pragma: no cover  # fmt: skip
    """Best exchange at p: of tails (0), of a detection (1), or a transfer (2); -1 if none has a gain.

    And the follower that p gets. Written: own; some_mean, some_cov, room to work in.
    """
    x, best, kind, best_y = links[0, p], _LEAST, -1, -1
    for e in range(indptr[p], indptr[p + 1]):
        y = np.int64(indices[e])
        q = links[1, y]
        if y == x or (x < 0 and q < 0):
            continue
        if x >= 0 and q >= 0 and not 0 < frame[x] - frame[q] < len(of_gap):
            continue
        both = x >= 0 and q >= 0 and _paired(q, x, indptr, indices)
        if both and q < p and active[q] and frame[x] == frame[y]:
            continue  # q has just looked at it
        for i in (p, q, y, x):
            if i >= 0 and links[0, i] >= 0 and math.isnan(own[i]):
                j, gap = links[0, i], frame[links[0, i]] - frame[i]
                own[i] = of_row[i] + of_gap[gap] + of_col[j] + _met(
                    past_mean, past_cov, i, shift, i, gap, frame, table, place, weight, constant, j, tail
                )  # fmt: skip
        gap = frame[y] - frame[p]
        more = of_row[p] + of_gap[gap] + of_col[y] + _met(
            past_mean, past_cov, p, shift, p, gap, frame, table, place, weight, constant, y, tail
        )  # fmt: skip
        if x >= 0:
            more -= own[p]
        if q >= 0:
            more -= own[q]
            if x >= 0:
                gap = frame[x] - frame[q]
                more += of_row[q] + of_gap[gap] + of_col[x] + _met(
                    past_mean, past_cov, q, shift, q, gap, frame, table, place, weight, constant, x, tail
                )  # fmt: skip
        if more > best:
            best, kind, best_y = more, 0, y
        if (both or (x >= 0 and q < 0)) and frame[x] == frame[y] and (links[0, x] >= 0 or links[0, y] >= 0):
            more = _exchanged(
                p, x, q, y, position, frame, shift, links, past_mean, past_cov, place, weight, constant,
                table, speed2, noise2, tail, of_row, of_gap, of_col, own, some_mean, some_cov,
            )  # fmt: skip
            if more > best:
                best, kind, best_y = more, 1, y
        if x >= 0 and frame[y] < frame[x] and (q >= 0 or links[0, y] >= 0):
            more = of_row[y] + of_row[p] + of_col[x] - own[p] + _taken_in(
                p, x, q, y, position, frame, shift, links, past_mean, past_cov, place, weight, constant,
                table, noise2, tail, of_row, of_gap, of_col, some_mean, some_cov,
            )  # fmt: skip
            if more > best:
                best, kind, best_y = more, 2, y
    return kind, best_y


@njit(nogil=True, cache=True, forceinline=True)
def _paired(i, j, indptr, indices):  # pragma: no cover
    """Whether column j is among the candidate pairs of row i."""
    for e in range(indptr[i], indptr[i + 1]):  # noqa: SIM110
        if indices[e] == j:
            return True
    return False


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _exchanged(
    p, x, q, y, position, frame, shift, links, past_mean, past_cov, place, weight, constant, table, speed2,
    noise2, tail, of_row, of_gap, of_col, own, mean, cov,
):  # pragma: no cover  # fmt: skip
    """Gain if p is followed by y, q (unless -1) by x, and these by the successors of x and y."""
    more = 0.0
    for n, row, new, old in ((0, p, y, x), (1, q, x, y)):
        if row < 0:
            _begin(position, new, speed2, noise2, mean, cov, n)
            continue
        gap = frame[new] - frame[row]
        more -= of_col[old] + _looked(
            past_mean, past_cov, row, shift, row, gap, frame, table, position, old, noise2, tail, mean, cov, n
        )  # fmt: skip
        more += of_col[new] + _looked(
            past_mean, past_cov, row, shift, row, gap, frame, table, position, new, noise2, tail, mean, cov, n
        )  # fmt: skip
    if more < _HOPELESS:
        return more
    for n, here, other in ((0, y, x), (1, x, y)):
        after = links[0, other]
        if after >= 0:
            gap = frame[after] - frame[here]
            more += of_row[here] + of_gap[gap] + of_col[after] - own[other] + _met(
                mean, cov, n, shift, here, gap, frame, table, place, weight, constant, after, tail
            )  # fmt: skip
    return more


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _taken_in(
    p, x, q, y, position, frame, shift, links, past_mean, past_cov, place, weight, constant, table, noise2,
    tail, of_row, of_gap, of_col, mean, cov,
):  # pragma: no cover  # fmt: skip
    """Gain if p is followed by y, y by x, and q by the successor of y, without the link of p itself."""
    after, gap = links[0, y], frame[y] - frame[p]
    more = of_gap[gap] + of_col[y] + _looked(
        past_mean, past_cov, p, shift, p, gap, frame, table, position, y, noise2, tail, mean, cov, 0
    )  # fmt: skip
    gap = frame[x] - frame[y]
    more += of_gap[gap] + _met(mean, cov, 0, shift, y, gap, frame, table, place, weight, constant, x, tail)
    if q >= 0:
        gap = frame[y] - frame[q]
        more -= of_gap[gap] + of_col[y] + _looked(
            past_mean, past_cov, q, shift, q, gap, frame, table, position, y, noise2, tail, mean, cov, 0
        )  # fmt: skip
        if after < 0:
            return more - of_row[q]
    gap = frame[after] - frame[y]
    more -= of_row[y] + of_gap[gap] + _met(
        past_mean, past_cov, y, shift, y, gap, frame, table, place, weight, constant, after, tail
    )  # fmt: skip
    if q < 0:
        return more - of_col[after]
    gap = frame[after] - frame[q]
    if gap >= len(of_gap):
        return -1e300
    return more + of_gap[gap] + _met(
        past_mean, past_cov, q, shift, q, gap, frame, table, place, weight, constant, after, tail
    )  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _met(mean, cov, i, shift, row, gap, frame, table, place, weight, constant, j, tail):  # pragma: no cover
    """Log density of j and its future if it follows belief i after a gap; as in weigh_pairs."""
    axes, far, volume, to = mean.shape[1], 0.0, 1.0, at_frame(table, frame[row])[gap]
    for k in range(axes):
        reach, kept = to[k, 0], to[k, 1]
        xx, xv, vv = cov[i, k, 0], cov[i, k, 1], cov[i, k, 2]
        p_xx = xx + 2 * reach * xv + reach * reach * vv + to[k, 2]
        p_xv, p_vv = kept * (xv + reach * vv) + to[k, 3], kept * kept * vv + to[k, 4]
        dx = mean[i, k, 0] + (to[k, 5] * shift[row, k] + to[k, 6]) + reach * mean[i, k, 1] - place[j, k, 0]
        dv = kept * mean[i, k, 1] - place[j, k, 1]
        w_xx, w_xv, w_vv = weight[j, k, 0], weight[j, k, 1], weight[j, k, 2]
        a, b = 1 + p_xx * w_xx + p_xv * w_xv, p_xx * w_xv + p_xv * w_vv
        c, d = p_xv * w_xx + p_vv * w_xv, 1 + p_xv * w_xv + p_vv * w_vv
        det = a * d - b * c
        inverse = 1 / det
        e_x, e_v = (d * dx - b * dv) * inverse, (a * dv - c * dx) * inverse
        far += dx * (w_xx * e_x + w_xv * e_v) + dv * (w_xv * e_x + w_vv * e_v)
        volume *= det
    m = 2 if weight[j, 0, 2] > 0 else 1
    return constant[j] + _tailed(max(far, 0.0), volume, m, axes, tail)


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _looked(
    mean, cov, i, shift, row, way, frame, table, position, j, noise2, tail, new_mean, new_cov, n
):  # pragma: no cover
    """Log density of j alone, a number of frames after belief i, or before it if `way` is negative.

    The row is the earlier end. Written: new_mean, new_cov at n, the belief with j taken in.
    """
    axes, far, volume, to = mean.shape[1], 0.0, 1.0, at_frame(table, frame[row])[abs(way)]
    for k in range(axes):
        reach, kept = to[k, 0], to[k, 1]
        xx, xv, vv = cov[i, k, 0], cov[i, k, 1], cov[i, k, 2]
        p_xx = xx + 2 * reach * xv + reach * reach * vv + to[k, 2]
        p_xv, p_vv = kept * (xv + reach * vv) + to[k, 3], kept * kept * vv + to[k, 4]
        flown = to[k, 5] * shift[row, k] + to[k, 6]
        x, v = mean[i, k, 0] + (flown if way > 0 else -flown) + reach * mean[i, k, 1], kept * mean[i, k, 1]
        total, away = p_xx + noise2[k], position[j, k] - x
        inverse = 1 / total
        far += away * away * inverse
        volume *= total
        gain_x, gain_v = p_xx * inverse, p_xv * inverse
        new_mean[n, k, 0], new_mean[n, k, 1] = x + gain_x * away, v + gain_v * away
        new_cov[n, k, 0], new_cov[n, k, 1] = (1 - gain_x) * p_xx, (1 - gain_x) * p_xv
        new_cov[n, k, 2] = p_vv - gain_v * p_xv
    return _tailed(far, volume, 1, axes, tail) - axes * _HALF


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _begin(position, i, speed2, noise2, mean, cov, n):  # pragma: no cover
    """Written: mean, cov at n, the belief of a track that begins with i."""
    for k in range(position.shape[1]):
        mean[n, k, 0], mean[n, k, 1] = position[i, k], 0.0
        cov[n, k, 0], cov[n, k, 1], cov[n, k, 2] = noise2[k], 0.0, speed2[k]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _tailed(far, volume, m, axes, tail):  # pragma: no cover
    """Log density at a squared distance, without the constant; m = 2 if velocities are included."""
    if tail[0] > 0:
        power = (tail[0] + m * axes) / 2
        return tail[1 + m] - 0.5 * math.log(volume) - power * math.log(1 + far * tail[1])
    return -0.5 * (math.log(volume) + far)


@njit(nogil=True, cache=True, forceinline=True)
def _link(links, one, new, other, old):  # pragma: no cover
    """Link `one` to `new`, and `other` to `old`; each may be -1 for none."""
    for row, col in ((one, new), (other, old)):
        if row >= 0:
            links[0, row] = col
        if col >= 0:
            links[1, col] = row


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _tell_later(
    i,
    least,
    position,
    frame,
    shift,
    links,
    past_mean,
    past_cov,
    table,
    speed2,
    noise2,
    tail,
    own,
    later,
    mean,
    cov,
):  # pragma: no cover
    """Filter a track from i while beliefs change, and for `least` further detections.

    Written: past_mean, past_cov, and later (N,) where it is to be looked again; own is unknown there.
    """
    for step in range(_FAR):
        if i < 0:
            return
        b = links[1, i]
        if b < 0:
            _begin(position, i, speed2, noise2, mean, cov, 0)
        else:
            _looked(
                past_mean, past_cov, b, shift, b, frame[i] - frame[b], frame, table, position, i, noise2,
                tail, mean, cov, 0,
            )  # fmt: skip
        later[i], own[i] = True, np.nan
        if _taken(mean, cov, past_mean, past_cov, i) and step > least:
            return
        i = links[0, i]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _tell_earlier(
    i, least, position, frame, shift, links, future_mean, future_cov, place, weight, constant, table, speed2,
    noise2, tail, own, later, mean, cov,
):  # pragma: no cover  # fmt: skip
    """Filter a track from i backward in time, while beliefs change; otherwise like _tell_later.

    Written: the future, place, weight, constant, own, later.
    """
    for step in range(_FAR):
        if i < 0:
            return
        f = links[0, i]
        if f < 0:
            _begin(position, i, speed2, noise2, mean, cov, 0)
        else:
            _looked(
                future_mean, future_cov, f, shift, i, frame[i] - frame[f], frame, table, position, i, noise2,
                tail, mean, cov, 0,
            )  # fmt: skip
        same = _taken(mean, cov, future_mean, future_cov, i)
        one = slice(i, i + 1)
        messages(
            position[one], links[0, one] >= 0, future_mean[one], future_cov[one], speed2, noise2, place[one],
            weight[one], constant[one],
        )  # fmt: skip
        later[i], own[i] = True, np.nan
        i = links[1, i]
        if i >= 0:
            later[i], own[i] = True, np.nan  # its link is worth something else now
        if same and step > least:
            return


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _taken(mean, cov, all_mean, all_cov, i):  # pragma: no cover
    """Whether a new belief differs negligibly from the old one. Written: the new belief, at i."""
    same = True
    for k in range(mean.shape[1]):
        same &= abs(mean[0, k, 0] - all_mean[i, k, 0]) <= _SAME * math.sqrt(cov[0, k, 0])
        same &= abs(mean[0, k, 1] - all_mean[i, k, 1]) <= _SAME * math.sqrt(cov[0, k, 2])
        same &= abs(cov[0, k, 2] - all_cov[i, k, 2]) <= _SAME * cov[0, k, 2]
        for m in range(2):
            all_mean[i, k, m] = mean[0, k, m]
        for m in range(3):
            all_cov[i, k, m] = cov[0, k, m]
    return same
