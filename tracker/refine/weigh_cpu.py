"""CPU kernels of weighing: Kalman filter along tracks, and likelihoods of pairs.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_HOPELESS = -100.0  # log odds of all pairs that are less likely


@njit(nogil=True, cache=True, forceinline=True)
def at_frame(table, frame):  # pragma: no cover
    """Transitions (G+1, A, 7) f8 from one frame, in a table (F, G+1, A, 7), or (1, ...) for all frames."""
    return table[min(frame, len(table) - 1)]


@njit(nogil=True, cache=True, error_model="numpy")
def filter_tracks(
    position, frame, before, shift, trust, table, speed2, noise2, backward, mean, cov
):  # pragma: no cover
    """Filter every track from its first detection, or from its last one if `backward`.

    position (N, A) f8; frame (N,) i8; before (N,) i8: the detection that comes before in the chosen
    direction, or -1; shift (N, A) f8 known displacement in a frame from each, forward in time; trust (N,) f8
    probability that the link that leaves each, forward in time, is right: the belief is the mixture of that
    and of a new particle, as one Gaussian of the same mean and covariance; table as at_frame takes it;
    speed2, noise2 (A,) f8 variances.
    Written: mean (N, A, 2) f8, cov (N, A, 3) f8, with each detection itself taken in.
    """
    count, axes = position.shape
    for step in range(count):
        i = count - 1 - step if backward else step
        b = before[i]
        if b < 0:
            for k in range(axes):
                mean[i, k, 0], mean[i, k, 1] = position[i, k], 0.0
                cov[i, k, 0], cov[i, k, 1], cov[i, k, 2] = noise2[k], 0.0, speed2[k]
            continue
        earlier = i if backward else b
        gap = abs(frame[i] - frame[b])
        q, row = trust[earlier], at_frame(table, frame[earlier])[gap]
        for k in range(axes):
            reach, kept, q_xx, q_xv, q_vv, ahead, more = row[k]
            xx, xv, vv = cov[b, k, 0], cov[b, k, 1], cov[b, k, 2]
            # Relative to the position seen, so that large coordinates cost no digits.
            flown = ahead * shift[earlier, k] + more
            x = mean[b, k, 0] + (-flown if backward else flown) + reach * mean[b, k, 1] - position[i, k]
            v = kept * mean[b, k, 1]
            p_xx = xx + 2 * reach * xv + reach * reach * vv + q_xx
            p_xv = kept * (xv + reach * vv) + q_xv
            p_vv = kept * kept * vv + q_vv
            inverse = 1 / (p_xx + noise2[k])
            gain_x, gain_v = p_xx * inverse, p_xv * inverse
            x, v = x - gain_x * x, v - gain_v * x
            mean[i, k, 0] = position[i, k] + q * x
            mean[i, k, 1] = q * v
            cov[i, k, 0] = q * (1 - gain_x) * p_xx + (1 - q) * (noise2[k] + q * x * x)
            cov[i, k, 1] = q * (1 - gain_x) * p_xv + q * (1 - q) * x * v
            cov[i, k, 2] = q * (p_vv - gain_v * p_xv) + (1 - q) * (speed2[k] + q * v * v)


@njit(nogil=True, cache=True, error_model="numpy")
def messages(position, followed, mean, cov, speed2, noise2, place, weight, constant):  # pragma: no cover
    """Likelihood of the state at a detection, from it and its future: a Gaussian, possibly flat in velocity.

    position (N, A) f8; followed (N,) bool; mean, cov as filter_tracks writes them backward (its
    velocities run backward in time). Dividing the belief by the prior of the velocity leaves the
    likelihood. Written: place (N, A, 2) f8 its peak, weight (N, A, 3) f8 its inverse covariance,
    constant (N,) f8 its log at the peak.
    """
    count, axes = position.shape
    lone = 0.0
    for k in range(axes):
        lone -= 0.5 * math.log(2 * math.pi * noise2[k])
    for i in range(count):
        if not followed[i]:
            for k in range(axes):
                place[i, k, 0], place[i, k, 1] = position[i, k], 0.0
                weight[i, k, 0], weight[i, k, 1], weight[i, k, 2] = 1 / noise2[k], 0.0, 0.0
            constant[i] = lone
            continue
        rest, volume = 0.0, 1.0
        for k in range(axes):
            # Relative to the position seen, so that large coordinates cost no digits.
            x, v = mean[i, k, 0] - position[i, k], -mean[i, k, 1]
            xx, xv, vv = cov[i, k, 0], -cov[i, k, 1], cov[i, k, 2]
            det = xx * vv - xv * xv
            inverse = 1 / det
            w_xx, w_xv, w_vv = vv * inverse, -xv * inverse, xx * inverse
            h_x, h_v = w_xx * x + w_xv * v, w_xv * x + w_vv * v
            volume *= 2 * math.pi * det / speed2[k]
            rest -= h_x * x + h_v * v
            w_vv -= 1 / speed2[k]
            det = w_xx * w_vv - w_xv * w_xv
            if w_vv <= 1e-9 / speed2[k] or det <= 1e-12 * w_xx * w_vv:
                w_xv, w_vv, peak_v = 0.0, 0.0, 0.0
                peak_x = h_x / w_xx
            else:
                peak_x = (w_vv * h_x - w_xv * h_v) / det
                peak_v = (w_xx * h_v - w_xv * h_x) / det
            rest += h_x * peak_x + h_v * peak_v
            place[i, k, 0], place[i, k, 1] = position[i, k] + peak_x, peak_v
            weight[i, k, 0], weight[i, k, 1], weight[i, k, 2] = w_xx, w_xv, w_vv
        constant[i] = 0.5 * (rest - math.log(volume))


@njit(nogil=True, cache=True, error_model="numpy")
def weigh_pairs(
    first,
    last,
    indptr,
    indices,
    frame,
    mean,
    cov,
    shift,
    place,
    weight,
    constant,
    table,
    gain_of_gap,
    gain_of_row,
    gain_of_col,
    freedom,
    scale,
    distance2,
    gain,
):  # pragma: no cover
    """Log odds that two detections are one particle against an end and a start, rows first..last-1.

    indptr (R+1,) i8, indices (P,) i4 pairs; frame (N,) i4; mean, cov (N, A, .) f8 filtered forward up to
    each row; shift (N, A) f8 known displacement in a frame from each row; place, weight, constant as
    messages writes them, of the columns; table as at_frame takes it; gain_of_gap (G+1,), gain_of_row,
    gain_of_col (N,) f8 logs; freedom, scale f8: Student's t instead of the Gaussian where freedom > 0.
    Written: distance2 (P,) f8 squared Mahalanobis distance, gain (P,) f8, finite.
    """
    axes = mean.shape[1]
    p = np.empty((axes, 5))
    heavy, narrow = freedom > 0, 1 / (freedom * scale)
    t_constant = np.zeros(3)  # for a future of one detection (1), or of more, which tells the velocity (2)
    if heavy:
        for m in range(1, 3):
            t_constant[m] = math.lgamma((freedom + m * axes) / 2) - math.lgamma(freedom / 2)
            t_constant[m] -= m * axes / 2 * math.log(freedom * scale / 2)
    for i in range(first, last):
        predicted = -1
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            gap = frame[j] - frame[i]
            if gap != predicted:
                predicted, row = gap, at_frame(table, frame[i])[gap]
                for k in range(axes):
                    reach, kept, q_xx, q_xv, q_vv, ahead, more = row[k]
                    xx, xv, vv = cov[i, k, 0], cov[i, k, 1], cov[i, k, 2]
                    p[k, 0] = mean[i, k, 0] + (ahead * shift[i, k] + more) + reach * mean[i, k, 1]
                    p[k, 1] = kept * mean[i, k, 1]
                    p[k, 2] = xx + 2 * reach * xv + reach * reach * vv + q_xx
                    p[k, 3] = kept * (xv + reach * vv) + q_xv
                    p[k, 4] = kept * kept * vv + q_vv
            far, volume = 0.0, 1.0
            for k in range(axes):
                dx, dv = p[k, 0] - place[j, k, 0], p[k, 1] - place[j, k, 1]
                w_xx, w_xv, w_vv = weight[j, k, 0], weight[j, k, 1], weight[j, k, 2]
                a = 1 + p[k, 2] * w_xx + p[k, 3] * w_xv
                b = p[k, 2] * w_xv + p[k, 3] * w_vv
                c = p[k, 3] * w_xx + p[k, 4] * w_xv
                d = 1 + p[k, 3] * w_xv + p[k, 4] * w_vv
                det = a * d - b * c
                inverse = 1 / det
                ex, ev = (d * dx - b * dv) * inverse, (a * dv - c * dx) * inverse
                far += dx * (w_xx * ex + w_xv * ev) + dv * (w_xv * ex + w_vv * ev)
                volume *= det
            far = max(far, 0.0)
            distance2[e] = far
            log_density = constant[j] - 0.5 * math.log(volume)
            if heavy:
                m = 2 if weight[j, 0, 2] > 0 else 1
                log_density += t_constant[m] - (freedom + m * axes) / 2 * math.log(1 + far * narrow)
            else:
                log_density -= 0.5 * far
            value = log_density + gain_of_gap[gap] + gain_of_col[j]
            # Where rounding leaves no determinant there is no number.
            gain[e] = gain_of_row[i] + (value if value > _HOPELESS else _HOPELESS)  # noqa: FURB136


@njit(nogil=True, cache=True, error_model="numpy")
def weigh_still(
    indptr, indices, frame, position, reach, step2, gain_of_col, freedom, scale, gain
):  # pragma: no cover
    """Log odds that two detections are one particle, from their distance alone.

    indptr (R+1,) i8, indices (P,) i4 pairs; frame (N,) i8; position (N, A) f8; reach (F,) f8 how far
    particles go from each frame, in what is usual, or (1,), from every one; step2 (A,) f8 mean square of that
    along each axis; gain_of_col (N,) f8; freedom, scale f8 as in weigh_pairs. Written: gain (P,) f8.
    """
    axes = len(step2)
    inverse, constant, power, narrow = 1 / step2, 0.0, (freedom + axes) / 2, 1 / (freedom * scale)
    for k in range(axes):
        constant -= 0.5 * math.log(2 * math.pi * step2[k])
    if freedom > 0:
        constant += math.lgamma(power) - math.lgamma(freedom / 2) - axes / 2 * math.log(freedom * scale / 2)
    for i in range(len(indptr) - 1):
        here = reach[min(frame[i], len(reach) - 1)]
        slower, wider = 1 / (here * here), axes * math.log(here)
        for e in range(indptr[i], indptr[i + 1]):
            j, far = indices[e], 0.0
            for k in range(axes):
                far += (position[j, k] - position[i, k]) ** 2 * inverse[k]
            far *= slower
            tail = power * math.log(1 + far * narrow) if freedom > 0 else 0.5 * far
            gain[e] = constant - wider - tail + gain_of_col[j]


@njit(nogil=True, cache=True, error_model="numpy")
def pair_probabilities(indptr, indices, columns, gain, rounds, still, probability):  # pragma: no cover
    """Belief propagation over all matchings, weighted by exp(sum of gains).

    indptr (R+1,), indices (P,) whole pairs, columns their number; gain (P,) f8; at most so many rounds
    after the first, fewer once no message changes by more than still. Row after row hears what those before
    it have said in the same round: four such rounds come as near as seven in which all speak at once.
    Written: probability (P,) f8 that each pair is in the matching.
    """
    pairs, many = len(indices), 0
    odds, said = np.empty(pairs), np.empty(pairs)  # said: odds, as far as the row has no other pair
    free = np.ones(pairs)  # how free the pair's column is, as far as other pairs are concerned
    total, wanted = np.ones(columns), np.zeros(columns, np.int32)
    open_rows = np.empty(len(indptr) - 1, np.int64)
    for e in range(pairs):
        odds[e] = math.exp(min(gain[e], 200.0))
        wanted[indices[e]] += 1
    for i in range(len(indptr) - 1):
        whole, shared = 1.0, False
        for e in range(indptr[i], indptr[i + 1]):
            whole += odds[e]
            shared |= wanted[indices[e]] > 1
        for e in range(indptr[i], indptr[i + 1]):
            said[e] = odds[e] / max(whole - odds[e], 1.0)
            total[indices[e]] += said[e]
        # A row of one pair says always the same, and so does one whose columns are its own.
        open_rows[many] = i
        many += shared and indptr[i + 1] > indptr[i] + 1
    for _ in range(rounds):
        most = 0.0
        for n in range(many):
            i, whole, change = open_rows[n], 1.0, 0.0
            for e in range(indptr[i], indptr[i + 1]):
                heard = 1 / max(total[indices[e]] - said[e], 1.0)
                change = max(change, abs(heard - free[e]))
                free[e] = heard
                whole += odds[e] * heard
            most = max(most, change)
            if change <= still:
                continue
            for e in range(indptr[i], indptr[i + 1]):
                says = odds[e] / max(whole - odds[e] * free[e], 1.0)
                total[indices[e]] += says - said[e]
                said[e] = says
        if most <= still:
            break
    for e in range(pairs):
        both = said[e] / max(total[indices[e]] - said[e], 1.0)
        probability[e] = both / (1 + both)
