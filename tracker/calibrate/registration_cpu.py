"""CPU kernels of registration: soft matches of two frames, and linear fits to neighbours.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .flow_cpu import _WIDE

_FAITH = 1e-3  # matches' worth of belief in no displacement and no slope
_NONE = 1e-9  # matches that are none


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def register(
    first_frame, last_frame, frame_start, position, axis, near, distance2, later, width, crowd, rounds, stray,
    stiff, fewest, ahead, met,
):  # pragma: no cover  # fmt: skip
    """Displacements from frames first to last - 1 to the next ones, and how well they fit.

    frame_start (F+1,) i8; position (N, A) f8; axis: a tuple as long as there are axes, which tells the
    compiler how many; near (N, K) i4 rows of the neighbours in the same frame,
    nearest first, -1 for none; distance2 (N, K) f8 squared distances to them; later (N, C) i4 detections of
    the next frame that each may be, or -1; width (S + 1,) f8 of the matches of S stages, and of those that
    are met at last, in medians of the distance to the nearest neighbour; crowd neighbours that move together;
    rounds, stray, stiff as in `registration`; fewest detections of a frame.
    Written: ahead (N, A) f8, from what is guessed, and met (N,) f8, the log of how well each meets what the
    next frame has; in frames of too few neither.
    """
    axes, stages = len(axis), len(width) - 1
    for f in range(first_frame, last_frame):
        first, last = frame_start[f], frame_start[f + 1]
        if f + 2 >= len(frame_start) or min(last - first, frame_start[f + 2] - last) < fewest:
            continue
        spacing = math.sqrt(np.median(distance2[first:last, 0]))
        if not 0 < spacing < math.inf:
            continue
        likely, heard = np.zeros((last - first, later.shape[1])), np.empty(frame_start[f + 2] - last)
        matched, step = np.empty(last - first), np.empty((last - first, axes))
        for stage in range(stages + 1):
            narrow = 0.5 / (width[stage] * spacing) ** 2
            for i in range(first, last):
                for c in range(later.shape[1]):
                    j, away = later[i, c], 0.0
                    if j < 0:
                        break
                    for k in range(axes):
                        away += (position[i, k] + ahead[i, k] - position[j, k]) ** 2
                    likely[i - first, c] = math.exp(-narrow * away)
            if stage == stages:
                break
            _match(rounds, stray, first, last, later, likely, heard)
            for i in range(first, last):
                step[i - first], matched[i - first] = 0.0, 0.0
                for c in range(later.shape[1]):
                    j, share = later[i, c], likely[i - first, c]
                    if j < 0:
                        break
                    matched[i - first] += share
                    for k in range(axes):
                        step[i - first, k] += share * (position[j, k] - position[i, k])
                for k in range(axes):
                    step[i - first, k] /= max(matched[i - first], _NONE)
            _follow(first, last, position, axis, near, distance2, crowd, stiff, matched, step, ahead)
        for i in range(first, last):
            met[i] = math.log(stray + likely[i - first].sum())


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _match(rounds, stray, first, last, later, likely, heard):  # pragma: no cover
    """Normalise the soft matches of each detection of both frames to 1, with weight `stray` for no match.

    likely (R, C) f8 of the pairs of rows first to last-1, shared out so; heard (N,) f8 is room.
    """
    heard[:] = 1.0
    total = np.empty(len(heard))
    for _ in range(rounds):
        total[:] = stray
        for i in range(last - first):
            whole = stray
            for c in range(later.shape[1]):
                if later[first + i, c] < 0:
                    break
                whole += likely[i, c] * heard[later[first + i, c] - last]
            for c in range(later.shape[1]):
                if later[first + i, c] < 0:
                    break
                total[later[first + i, c] - last] += likely[i, c] / whole
        heard[:] = 1 / total
    for i in range(last - first):
        whole = stray
        for c in range(later.shape[1]):
            if later[first + i, c] < 0:
                break
            likely[i, c] *= heard[later[first + i, c] - last]
            whole += likely[i, c]
        likely[i] /= whole


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _follow(
    first, last, position, axis, near, distance2, crowd, stiff, matched, step, ahead
):  # pragma: no cover
    """Smooth displacements: for each detection, a linear fit to the steps of its neighbours.

    matched (C,), step (C, A) f8 how much each of rows first to last-1 is matched, and how far it goes then.
    Written: ahead.
    """
    axes = len(axis)
    square, mixed, x = np.empty((axes + 1, axes + 1)), np.empty((axes + 1, axes)), np.ones(axes + 1)
    for i in range(first, last):
        many = 0
        while many < crowd and near[i, many] >= 0:
            many += 1
        wide2 = _WIDE * distance2[i, many - 1] if many > 0 else 0.0
        square[:], mixed[:], narrow = 0.0, 0.0, 1 / wide2 if wide2 > 0 else 0.0
        for n in range(near.shape[1]):
            j, left = near[i, n], 1 - narrow * distance2[i, n]
            if j < 0 or left <= 0:
                break
            weight = left * left * left * matched[j - first]
            for k in range(axes):
                x[k + 1] = position[j, k] - position[i, k]
            for k in range(axes + 1):
                for m in range(k + 1):
                    square[k, m] += weight * x[k] * x[m]
                for m in range(axes):
                    mixed[k, m] += weight * x[k] * step[j - first, m]
        if square[0, 0] < _NONE:
            continue  # nobody near tells anything: as before
        slope = (stiff * square[0, 0] + _FAITH) * wide2 / 4
        square[0, 0] += _FAITH
        for k in range(1, axes + 1):
            square[k, k] += slope if slope > 0 else 1.0
        _solve_first(square, mixed)
        for k in range(axes):
            ahead[i, k] = mixed[0, k]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def _solve_first(square, mixed):  # pragma: no cover
    """First row of X in square X = mixed; square is symmetric positive definite, its lower half given.

    Written: mixed[0]; the other rows are overwritten.
    """
    size = len(square)
    for k in range(size - 1, 0, -1):  # the last unknowns are put out first
        for m in range(k):
            share = square[k, m] / square[k, k]
            for n in range(m + 1):
                square[m, n] -= share * square[k, n]
            for n in range(mixed.shape[1]):
                mixed[m, n] -= share * mixed[k, n]
    for n in range(mixed.shape[1]):
        mixed[0, n] /= square[0, 0]
