"""CPU kernels of encounters: probabilities of the links of two tracks that meet, summed over exchanges.

Each track has a Kalman filter. Where two are near each other, they may exchange detections in some frame if
the odds of it, by both filters, are not negligible. Then all ways through the frames are summed: in each, the
two tracks take the two detections one way or the other. Each way through the last frames is a hypothesis,
with the filters of both tracks. Hypotheses that agree about these frames become one: its links have their
mean probabilities. No result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ...compute.kernels import inner_kernel, kernel
from .filter_cpu import FARTHEST, add_state, match_moments, predicted, state_of
from .records import Hypotheses

MEMORY = 4  # guard: frames by whose ways hypotheses are distinguished; before these their states are alike
LEAST_LOG = -8.0  # guard: log odds, relative to the best, below which an exchange or hypothesis is dropped
NEVER = -1e300  # log weight of what cannot be


@inner_kernel(error_model="numpy")
def _begin(steps, to, weight, state):  # pragma: no cover
    """Write the filter of a track that begins, in row `to`."""
    for c in range(len(steps.share)):
        weight[to, c] = steps.share[c]
        for d in range(len(steps.noise)):
            state[to, c, d, 0] = state[to, c, d, 1] = state[to, c, d, 3] = 0.0
            state[to, c, d, 2], state[to, c, d, 4] = steps.noise[d], steps.variance[c, d]


@inner_kernel(error_model="numpy")
def _copy(weight, state, at, weight_to, state_to, to):  # pragma: no cover
    """Write the filter in row `at` to row `to`."""
    for c in range(weight.shape[1]):
        weight_to[to, c] = weight[at, c]
        for d in range(state.shape[2]):
            for k in range(5):
                state_to[to, c, d, k] = state[at, c, d, k]


@inner_kernel(error_model="numpy")
def _followed(movie, steps, delay, i, j, at, to, weight, state, room):  # pragma: no cover
    """Log likelihood that detection j follows i, whose filter is in row `at`; that of j goes to row `to`.

    No filter is written where `to` is -1. room is stay, mass (K,), part (D, 5) and total (K, D, 5), all f8.
    """
    position, flow, when, frame = movie
    noise, variance = steps.noise, steps.variance
    classes, axes = variance.shape
    stay, mass, part, total = room
    ahead, lag, start = frame[j] - frame[i], when[j] - when[i], when[i]
    renewed, likelihood = 0.0, 0.0
    for c in range(classes):
        stay[c], mass[c] = 1.0, 0.0
        for _ in range(lag):
            stay[c] *= 1 - steps.renewal[c]
        renewed += weight[at, c] * (1 - stay[c])
        for d in range(axes):
            for m in range(5):
                total[c, d, m] = 0.0
    may = ahead <= len(delay) and delay[ahead - 1] != NEVER
    for k in range(2 * classes if may else 0):
        c, fresh = k // 2, k % 2 == 1
        w = steps.entry[c] * renewed if fresh else weight[at, c] * stay[c]
        if not w > 0:
            continue
        quad, det = 0.0, 1.0
        for d in range(axes):
            x, s, xx, xs, ss = state_of(state, -1 if fresh else at, c, d, noise[d], variance[c, d])
            x, s, xx, xs, ss = predicted(
                steps.correlation[c], variance[c, d], steps.step_scale, lag, start, 1, x, s, xx, xs, ss
            )
            x += position[i, d] + ahead * flow[i, d] - position[j, d]
            quad += x * x * (1 / (xx + noise[d]))
            det *= math.tau * (xx + noise[d])
            part[d, 0], part[d, 1], part[d, 2], part[d, 3], part[d, 4] = x, s, xx, xs, ss
        if quad > FARTHEST:
            continue
        w *= math.exp(-0.5 * quad) / math.sqrt(det)
        likelihood += w
        mass[c] += w
        for d in range(axes if to >= 0 else 0):
            x, s, xx, xs, ss = part[d, 0], part[d, 1], part[d, 2], part[d, 3], part[d, 4]
            precision = 1 / (xx + noise[d])
            gain, of_step = xx * precision, xs * precision
            s -= of_step * x
            x -= gain * x
            add_state(total, c, d, w, x, s, xx - gain * xx, xs - gain * xs, ss - of_step * xs)
    if to >= 0:
        for c in range(classes):
            weight[to, c] = mass[c] / likelihood if likelihood > 0 else steps.share[c]
        match_moments(to, noise, variance, mass, total, state)
    return math.log(likelihood) + delay[ahead - 1] if likelihood > 0 else NEVER


@kernel(error_model="numpy")
def follow_tracks(first, last, movie, steps, delay, after, starts, own, weight, state):  # pragma: no cover
    """Write own (N,) f8, log likelihoods of links into detections, and filters (N, K), (N, K, D, 5) f4.

    movie is of position and flow (N, D) f8, when and frame (N,) i8; delay (L,) f8; after (N,) i8 is the next
    detection in the track, or -1; starts (T,) i8 are the first ones, of which these are first:last.
    """
    classes, axes = steps.variance.shape
    room = np.empty(classes), np.empty(classes), np.empty((axes, 5)), np.empty((classes, axes, 5))
    at, count = starts[first:last].copy(), last - first
    for t in range(count):
        _begin(steps, at[t], weight, state)
        own[at[t]] = 0.0
    while count:  # all go on by one detection at a time: those of a frame lie side by side in memory
        left = 0
        for t in range(count):
            i = at[t]
            j = after[i]
            if j >= 0:
                own[j] = _followed(movie, steps, delay, i, j, i, j, weight, state, room)
                at[left] = j
                left += 1
        count = left


@kernel(error_model="numpy")
def may_exchange(
    first, last, movie, steps, delay, single, tracks, pairs, own, weight, state, likely
):  # pragma: no cover
    """Write likely (P,) b1: whether the tracks of pairs (P, 2) i8 may exchange as they meet or as they part.

    tracks are (N,) i8, the next and the previous detection in the track; pairs are of detections in a frame.
    single is as `meet` has it.
    """
    frame, (after, before) = movie[3], tracks
    classes, axes = steps.variance.shape
    room = np.empty(classes), np.empty(classes), np.empty((axes, 5)), np.empty((classes, axes, 5))
    came, to = np.empty(2, np.int64), np.empty(2, np.int64)
    for k in range(first, last):
        likely[k] = False
        for parting in range(2):
            for side in range(2):
                row = pairs[k, side]
                came[side], to[side] = (row, after[row]) if parting else (before[row], row)
            for side in range(2):  # the one that goes on first has the other's place for itself
                if to[side] >= 0 and to[1 - side] >= 0 and frame[to[side]] > frame[to[1 - side]]:
                    to[side] = -1
            if max(came[0], came[1]) < 0 or max(to[0], to[1]) < 0:
                continue
            # Log odds of exchanged ways; a track that begins or ends there may leave a detection alone.
            odds = single if min(came[0], came[1], to[0], to[1]) < 0 else 0.0
            for side in range(2):
                i, j = came[1 - side], to[side]
                if j >= 0:
                    odds -= own[j]
                    if i >= 0:
                        odds += _followed(movie, steps, delay, i, j, i, -1, weight, state, room)
            if odds >= LEAST_LOG:
                likely[k] = True
                break


@inner_kernel(error_model="numpy")
def _mix(share, t, led, turned, wrong, now, h, then, g):  # pragma: no cover
    """Mix what hypothesis h says of links up to frame t, with a share, into what g says.

    led (2,) b1 is whether links lead to the detections of frame t, turned (2,) b1 whether these are wrong.
    """
    for side in range(2):
        for k in range(t + 1):
            value = wrong[now, h, k, side]
            if k == t:
                value = 1.0 if led[side] and turned[side] else 0.0
            if share < 1:
                value = share * value + (1 - share) * wrong[then, g, k, side]
            wrong[then, g, k, side] = value


@inner_kernel(error_model="numpy")
def _go_on(t, may, movie, steps, delay, single, tracks, at, known, now, room):  # pragma: no cover
    """Make the hypotheses after the detections (2,) of frame t, or -1; returns how many are left.

    may is whether tracks may exchange there.
    """
    many, then, best, left = known.log_weight.shape[1], 1 - now, NEVER, 0
    led, turned = np.zeros(2, np.bool_), np.zeros(2, np.bool_)
    for side in range(2):
        led[side] = at[side] >= 0 and tracks[1][at[side]] >= 0
    for g in range(many):
        known.log_weight[then, g] = NEVER
    for h in range(many):
        if known.log_weight[now, h] == NEVER:
            continue
        begun = min(known.row[now, h, 0] + 1, 1) + min(known.row[now, h, 1] + 1, 1)
        needed = 2 if at[0] < 0 or at[1] < 0 else 1
        for way in range(2):
            if way != (h & 1) and (not may or begun < needed):
                continue
            total = known.log_weight[now, h]
            for side in range(2):
                turned[side] = known.way[now, h, side] != way
                if at[side] >= 0 and tracks[2][at[side]] and turned[side]:
                    total = NEVER
            for side in range(2):  # of the hypothesis, which takes the detection of a path
                j, i, to = at[side ^ way], known.row[now, h, side], 4 * many + side
                if j < 0 or total == NEVER:
                    continue
                if i < 0:
                    _begin(steps, to, known.weight, known.state)
                    total += single
                else:
                    total -= single * known.alone[now, h, side]
                    own = (now * many + h) * 2 + side
                    total += _followed(movie, steps, delay, i, j, own, to, known.weight, known.state, room)
            if total < best + LEAST_LOG:
                continue
            best, g = max(best, total), ((h << 1) | way) & (many - 1)
            old = known.log_weight[then, g]
            share = 1.0 if old == NEVER else 1 / (1 + math.exp(min(old - total, 700.0)))
            both = total if share == 1.0 else max(total, old) + math.log1p(math.exp(-abs(total - old)))
            known.log_weight[then, g] = both
            _mix(share, t, led, turned, known.wrong, now, h, then, g)
            if share < 0.5:
                continue
            for side in range(2):
                j, own, to = at[side ^ way], (now * many + h) * 2 + side, (then * many + g) * 2 + side
                known.way[then, g, side] = way if at[side] >= 0 else known.way[now, h, side]
                first = known.row[now, h, side] < 0
                known.alone[then, g, side] = first if j >= 0 else known.alone[now, h, side]
                known.row[then, g, side] = j if j >= 0 else known.row[now, h, side]
                own = 4 * many + side if j >= 0 else own
                _copy(known.weight, known.state, own, known.weight, known.state, to)
    for g in range(many):
        if known.log_weight[then, g] < best + LEAST_LOG:
            known.log_weight[then, g] = NEVER
        else:
            known.log_weight[then, g] -= best
            left += 1
    return left


@kernel(error_model="numpy")
def meet(
    first, last, movie, steps, delay, single, tracks, meetings, begin, filters, window, rows, wrong
):  # pragma: no cover
    """Write the probabilities that links into the detections of both tracks are wrong.

    tracks are (N,) i8, the next and the previous detection in the track, or -1, and stated (N,) b1 whether
    the link from the latter is; meetings (M, 4) i8: a detection of either track in the first frame, this
    frame, and the number of frames in which they may exchange; begin (M,) i8 where each begins in rows i8 and
    wrong f8 (L,), which have a detection and a probability for each frame and side. filters are those of
    `follow_tracks`; single is the log weight of a detection alone, over that of a track's start and end.
    """
    many, most = 1 << MEMORY, 1
    classes, axes = steps.variance.shape
    room = np.empty(classes), np.empty(classes), np.empty((axes, 5)), np.empty((classes, axes, 5))
    for e in range(first, last):
        most = max(most, meetings[e, 3] + window)
    known = Hypotheses(
        np.empty((2, many)), np.zeros((2, many, 2), np.int64), np.zeros((2, many, 2), np.int64),
        np.zeros((2, many, 2), np.int64), np.zeros((2, many, most, 2)),
        np.empty((4 * many + 2, classes), np.float32),
        np.empty((4 * many + 2, classes, axes, 5), np.float32),
    )  # fmt: skip
    at, path, ended = np.empty(2, np.int64), np.empty(2, np.int64), np.empty(2, np.int64)
    for e in range(first, last):
        start, frames, now, left = meetings[e, 2], meetings[e, 3], 0, 0
        for h in range(many):
            known.log_weight[0, h] = NEVER
        known.log_weight[0, 0] = 0.0
        for side in range(2):
            path[side], ended[side] = meetings[e, side], -1
            known.row[0, 0, side], known.way[0, 0, side] = tracks[1][path[side]], 0
            known.alone[0, 0, side] = 0
            if known.row[0, 0, side] >= 0:
                known.alone[0, 0, side] = tracks[1][known.row[0, 0, side]] < 0
                _copy(filters[0], filters[1], known.row[0, 0, side], known.weight, known.state, side)
        for t in range(frames + window):
            for side in range(2):
                at[side] = -1
                if path[side] >= 0 and movie[3][path[side]] == start + t:
                    at[side] = path[side]
                    path[side] = tracks[0][at[side]]
                    ended[side] = start + t if path[side] < 0 else -1
                for h in range(many):
                    known.wrong[now, h, t, side] = 0.0
                if t < frames:
                    rows[begin[e] + 2 * t + side] = max(at[side], 0)
            if at[0] < 0 and at[1] < 0:
                continue
            ends = min(ended[0], ended[1]) if min(ended[0], ended[1]) >= 0 else max(ended[0], ended[1])
            may = t < frames and (ends < 0 or start + t <= ends + 1)
            left = _go_on(t, may, movie, steps, delay, single, tracks, at, known, now, room)
            now = 1 - now
            if left == 1 and t >= frames:
                break
        total = 0.0
        for k in range(2 * frames):
            wrong[begin[e] + k] = 0.0
        for h in range(many):
            if known.log_weight[now, h] > NEVER:
                total += math.exp(known.log_weight[now, h])
        for h in range(many):
            if known.log_weight[now, h] == NEVER:
                continue
            share = math.exp(known.log_weight[now, h]) / total
            for k in range(2 * frames):
                wrong[begin[e] + k] += share * known.wrong[now, h, k // 2, k % 2]
