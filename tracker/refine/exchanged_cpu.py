"""CPU kernels for detections that two close tracks may have exchanged: pairs and odds.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

from numba import njit

from .weigh_cpu import at_frame


@njit(nogil=True, cache=True)
def near_in_frame(position, frame, along, radius, row, col):  # pragma: no cover
    """Pairs of detections in the same frame within `radius`, each once.

    position (K, A) f8, frame (K,) i8, both by frame, then along the axis `along`; radius.
    Written as far as there is room: row, col (P,) i8. Returns how many there are.
    """
    found, (count, axes) = 0, position.shape
    for i in range(count):
        for j in range(i + 1, count):
            if position[j, along] - position[i, along] > radius or frame[j] != frame[i]:
                break
            far = 0.0
            for axis in range(axes):
                far += (position[j, axis] - position[i, axis]) ** 2
            if far <= radius * radius:
                if found < len(row):
                    row[found], col[found] = i, j
                found += 1
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def expect(
    inner, before, after, frame, past, past_cov, future, future_cov, shift, table, usual, noise2, least,
    expected, variance,
):  # pragma: no cover  # fmt: skip
    """Positions predicted from previous and next detections, and variances of observations.

    inner, before, after (K,) i8 rows; frame (N,) i8; past, future (N, A, 2), past_cov, future_cov (N, A, 3)
    f8: beliefs from either side; shift (N, A) f8 foretold in a frame; table as weigh_cpu.at_frame takes it;
    usual, noise2 (A,) f8: inverse variance of velocities, variance of the noise; least: share of its parts
    that a difference is at least. Written: expected, variance (K, A) f8.
    """
    for n in range(len(inner)):
        i, j, k = before[n], inner[n], after[n]
        for axis in range(shift.shape[1]):
            # Inverse covariance, and that times the mean, of the state there.
            w_xx, w_xv, w_vv, told_x, told_v = 0.0, 0.0, 0.0, 0.0, 0.0
            for sign in (1, -1):
                mean, cov = (
                    (past[i, axis], past_cov[i, axis]) if sign > 0 else (future[k, axis], future_cov[k, axis])
                )
                gap = frame[j] - frame[i] if sign > 0 else frame[k] - frame[j]
                earlier = i if sign > 0 else j
                reach, kept, q_xx, q_xv, q_vv, ahead, more = at_frame(table, frame[earlier])[gap, axis]
                x = mean[0] + sign * (ahead * shift[earlier, axis] + more) + reach * mean[1]
                v = sign * kept * mean[1]
                xx = cov[0] + 2 * reach * cov[1] + reach * reach * cov[2] + q_xx
                xv = sign * (kept * (cov[1] + reach * cov[2]) + q_xv)
                vv = kept * kept * cov[2] + q_vv
                det = xx * vv - xv * xv
                w_xx += vv / det
                w_xv -= xv / det
                w_vv += xx / det
                told_x += (vv * x - xv * v) / det
                told_v += (xx * v - xv * x) / det
            # Both sides know how fast particles are. What is a mixture of two may know less than that.
            w_vv = max(w_vv - usual[axis], least * w_vv)
            det = max(w_xx * w_vv - w_xv * w_xv, least * w_xx * w_vv)
            expected[n, axis] = (w_vv * told_x - w_xv * told_v) / det
            variance[n, axis] = w_vv / det + noise2[axis]


@njit(nogil=True, cache=True, error_model="numpy")
def add_odds(position, row, col, a, b, expected, variance, most, odds):  # pragma: no cover
    """Odds that the detections of two tracks are exchanged, summed over all pairs of each detection.

    position (N, A) f8; row, col (P,) i8 of the two, a, b (P,) i8 their places among expected, variance
    (K, A) f8, where their tracks expect them; most: the largest log odds. Added to: odds (K,) f8.
    """
    for p in range(len(row)):
        gain = 0.0
        for axis in range(position.shape[1]):
            x, y = position[row[p], axis], position[col[p], axis]
            here, there = expected[a[p], axis], expected[b[p], axis]
            gain += ((x - here) ** 2 - (y - here) ** 2) / variance[a[p], axis]
            gain += ((y - there) ** 2 - (x - there) ** 2) / variance[b[p], axis]
        chance = math.exp(min(max(gain / 2, -most), most))
        odds[a[p]] += chance
        odds[b[p]] += chance
