"""CPU kernel of encounters: probabilities of the links of two tracks that meet, summed over exchanges.

In each frame the two tracks, known by their past, take the two detections one way or the other. Each way
through the last frames is a hypothesis, with the Kalman filters of both tracks. Hypotheses that agree about
these frames become one: its links have their mean probabilities. No result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ...compute.kernels import inner_kernel, kernel
from .filter_cpu import FARTHEST, predicted

MEMORY = 4  # guard: frames by whose ways hypotheses are distinguished; before these their states are alike
LEAST_LOG = -12.0  # guard: log weight, relative to the best, below which a hypothesis is dropped
NEVER = -1e300  # log weight of what cannot be


@inner_kernel(error_model="numpy")
def _follow(movie, steps, delay, i, j, weight, state, to_weight, to_state):  # pragma: no cover
    """Log likelihood that detection j follows i, and the filter of the track there; i is -1 where it begins.

    weight (K,) and state (K, D, 5) are those at i; written: to_weight and to_state, those at j.
    """
    position, flow, when, frame = movie
    noise, variance, scale = steps.noise, steps.variance, steps.step_scale
    renewal, share, entry = steps.renewal, steps.share, steps.entry
    classes, axes = variance.shape
    to_state[:] = 0
    if i < 0:
        for c in range(classes):
            to_weight[c] = share[c]
            for d in range(axes):
                to_state[c, d, 2], to_state[c, d, 4] = noise[d], variance[c, d]
        return 0.0
    ahead = frame[j] - frame[i]
    if ahead > len(delay) or not delay[ahead - 1] > 0:
        return NEVER
    lag, start, total, renewed = when[j] - when[i], when[i], 0.0, 0.0
    for c in range(classes):
        to_weight[c] = 0.0
        renewed += weight[c] * (1 - (1 - renewal[c]) ** lag)
    for k in range(2 * classes):
        c, fresh = k // 2, k % 2 == 1
        w = entry[c] * renewed if fresh else weight[c] * (1 - renewal[c]) ** lag
        if not w > 0:
            continue
        quad, det = 0.0, 1.0
        for way in range(2):  # what it is worth first, then the state
            if way == 1:
                if quad > FARTHEST:
                    break
                w *= math.exp(-0.5 * quad) / math.sqrt(det)
                to_weight[c] += w
            for d in range(axes):
                x, s, xx, xs, ss = 0.0, 0.0, noise[d], 0.0, variance[c, d]
                if not fresh:
                    x, s, xx = state[c, d, 0], state[c, d, 1], state[c, d, 2]
                    xs, ss = state[c, d, 3], state[c, d, 4]
                x, s, xx, xs, ss = predicted(
                    steps.correlation[c], variance[c, d], scale, lag, start, 1, x, s, xx, xs, ss
                )
                x += position[i, d] + ahead * flow[i, d] - position[j, d]
                spread = xx + noise[d]
                if way == 0:
                    quad += x * x / spread
                    det *= math.tau * spread
                    continue
                gain, of_step = xx / spread, xs / spread
                s -= of_step * x
                x -= gain * x
                to_state[c, d, 0] += w * x
                to_state[c, d, 1] += w * s
                to_state[c, d, 2] += w * (xx - gain * xx + x * x)
                to_state[c, d, 3] += w * (xs - gain * xs + x * s)
                to_state[c, d, 4] += w * (ss - of_step * xs + s * s)
    for c in range(classes):
        total += to_weight[c]
    if not total > 0:
        return NEVER
    for c in range(classes):
        for d in range(axes):
            of = to_state[c, d]
            if to_weight[c] > 0:
                for k in range(5):
                    of[k] /= to_weight[c]
                of[2] -= of[0] * of[0]
                of[3] -= of[0] * of[1]
                of[4] -= of[1] * of[1]
            else:
                of[:] = 0
                of[2], of[4] = noise[d], variance[c, d]
        to_weight[c] /= total
    return math.log(total) + math.log(delay[ahead - 1])


@kernel(error_model="numpy")
def meet(first, last, movie, steps, delay, tracks, meetings, window, wrong):  # pragma: no cover
    """Write wrong (M, L, 2) f8: probabilities that links into the detections of both tracks are wrong.

    movie is of position and flow (N, D) f8, when and frame (N,) i8; delay (L,) f8; tracks are (N,) i8, the
    next and the previous detection in the track, or -1, and stated (N,) u1 whether the link from the latter
    is; meetings (M, 4) i8: a detection of either track in the first frame, this frame, and the number of
    frames in which they may exchange. Frames without a detection, or one without a predecessor, have 0.
    """
    frame, (after, before, stated) = movie[3], tracks
    classes, axes = steps.variance.shape
    many = 1 << MEMORY
    most = wrong.shape[1]
    weight, state = np.empty((2, many, 2, classes)), np.empty((2, many, 2, classes, axes, 5))
    log_weight, rows = np.empty((2, many)), np.empty((2, many, 2), np.int64)
    broken, sides = np.zeros((2, many, most, 2)), np.zeros((2, many, 2), np.int64)
    w_of, s_of = np.empty((2, 2, classes)), np.empty((2, 2, classes, axes, 5))
    at, path, ended = np.empty(2, np.int64), np.empty(2, np.int64), np.empty(2, np.int64)
    for e in range(first, last):
        begin, frames = meetings[e, 2], meetings[e, 3]
        log_weight[:] = NEVER
        now = 0
        log_weight[0, 0] = 0.0
        broken[:, :, :frames] = 0
        sides[0, 0] = 0
        for side in range(2):  # the pasts
            i = meetings[e, side]
            path[side] = i
            rows[0, 0, side] = -1
            while before[i] >= 0 and begin - frame[before[i]] <= window:
                i = before[i]
            if i == path[side]:
                continue
            _follow(movie, steps, delay, -1, i, weight[0, 0, side], state[0, 0, side], w_of[0, 0], s_of[0, 0])
            while after[i] != path[side]:
                j = after[i]
                _follow(movie, steps, delay, i, j, w_of[0, 0], s_of[0, 0], w_of[0, 1], s_of[0, 1])
                w_of[0, 0], s_of[0, 0] = w_of[0, 1], s_of[0, 1]
                i = j
            rows[0, 0, side], weight[0, 0, side], state[0, 0, side] = i, w_of[0, 0], s_of[0, 0]
        ended[:] = -1
        for t in range(frames + window):
            f = begin + t
            for side in range(2):
                at[side] = -1
                if path[side] >= 0 and frame[path[side]] == f:
                    at[side] = path[side]
                    path[side] = after[path[side]]
                    if path[side] < 0:
                        ended[side] = f
            if at[0] < 0 and at[1] < 0:
                if path[0] < 0 and path[1] < 0:
                    break
                continue
            ends = ended.min() if ended.min() >= 0 else ended.max()
            open_ = t < frames and (ends < 0 or f <= ends + 1)
            then, best = 1 - now, NEVER
            log_weight[then] = NEVER
            for h in range(many):
                if log_weight[now, h] == NEVER:
                    continue
                begun = rows[now, h, 0] >= 0, rows[now, h, 1] >= 0
                last_way = h & 1
                for way in range(2):
                    if way != last_way:
                        if not open_ or not (begun[0] or begun[1]):
                            continue
                        if (at[0] < 0 or at[1] < 0) and not (begun[0] and begun[1]):
                            continue
                    total, refused = log_weight[now, h], False
                    for side in range(2):
                        j = at[side]
                        refused = refused or (j >= 0 and stated[j] and sides[now, h, side] != way)
                    if refused:
                        continue
                    for side in range(2):  # of the hypothesis, which takes the detection of a path
                        j = at[side ^ way]
                        if j >= 0:
                            total += _follow(
                                movie, steps, delay, rows[now, h, side], j, weight[now, h, side],
                                state[now, h, side], w_of[side, 0], s_of[side, 0],
                            )  # fmt: skip
                    if total < best + LEAST_LOG:
                        continue
                    best = max(best, total)
                    g = ((h << 1) | way) & (many - 1) if t < frames else h
                    old = log_weight[then, g]
                    share = 1.0 if old == NEVER else 1 / (1 + math.exp(min(old - total, 700.0)))
                    if t < frames:
                        for k in range(t):
                            for side in range(2):
                                value = broken[now, h, k, side]
                                mixed = broken[then, g, k, side]
                                broken[then, g, k, side] = (
                                    share * value + (1 - share) * mixed if share < 1 else value
                                )
                        for side in range(2):
                            value = 0.0
                            if at[side] >= 0 and before[at[side]] >= 0:
                                value = 1.0 if sides[now, h, side] != way else 0.0
                            mixed = broken[then, g, t, side]
                            broken[then, g, t, side] = (
                                share * value + (1 - share) * mixed if share < 1 else value
                            )
                    else:
                        broken[then, g, :frames] = broken[now, h, :frames]
                    log_weight[then, g] = (
                        total if share == 1.0 else max(total, old) + math.log1p(math.exp(-abs(total - old)))
                    )
                    if share < 0.5:
                        continue
                    for side in range(2):
                        sides[then, g, side] = way if at[side] >= 0 else sides[now, h, side]
                        j = at[side ^ way]
                        if j >= 0:
                            rows[then, g, side] = j
                            weight[then, g, side], state[then, g, side] = w_of[side, 0], s_of[side, 0]
                        else:
                            rows[then, g, side] = rows[now, h, side]
                            weight[then, g, side] = weight[now, h, side]
                            state[then, g, side] = state[now, h, side]
            alive = 0
            for h in range(many):
                if log_weight[then, h] < best + LEAST_LOG:
                    log_weight[then, h] = NEVER
                else:
                    log_weight[then, h] -= best
                    alive += 1
            now = then
            if alive == 1 and t >= frames:
                break
        total = 0.0
        wrong[e] = 0
        for h in range(many):
            if log_weight[now, h] > NEVER:
                w = math.exp(log_weight[now, h])
                total += w
                for k in range(frames):
                    for side in range(2):
                        wrong[e, k, side] += w * broken[now, h, k, side]
        for k in range(frames):
            for side in range(2):
                wrong[e, k, side] /= total
