"""CPU kernels of rates: preparation of pairs for sampling, and rates from sampled pairs.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def split(row, col, chance, follower, least, indptr, order, odds):  # pragma: no cover
    """Select pairs for sampling, and compute the odds of all pairs against no link of their row or column.

    row, col (Q,) i4: pairs, sorted by row; chance (Q,) f8; follower (N,) i8: links, which are always
    selected; least: least chance of other pairs. Written: indptr (N+1,) i8 of the selected pairs; order (Q,)
    u4: indices of these, then of the others; odds (2, Q) f8.
    """
    count, worth, others = len(follower), np.uint64(0), np.uint64(0)
    free, rest = np.ones((2, count)), np.empty(len(row), np.uint32)
    indptr[:] = 0
    for e in range(len(row)):
        free[0, row[e]] -= chance[e]
        free[1, col[e]] -= chance[e]
        drawn = chance[e] > least or follower[row[e]] == col[e]
        indptr[row[e] + 1] += drawn
        # Written in any case: which are worth it, no processor can guess.
        order[worth], rest[others] = e, e
        worth += np.uint64(drawn)
        others += np.uint64(not drawn)
    order[worth:] = rest[:others]
    for i in range(count):
        indptr[i + 1] += indptr[i]
        free[0, i], free[1, i] = max(free[0, i], 1e-9), max(free[1, i], 1e-9)
    for e in range(len(row)):
        odds[0, e], odds[1, e] = chance[e] / free[0, row[e]], chance[e] / free[1, col[e]]


@njit(nogil=True, cache=True)
def weigh(row, col, gap, order, odds, told, more, rest, gain):  # pragma: no cover
    """Log odds of the selected pairs against no link or any pair that is not selected.

    row to odds as in `split`; gap (Q,) i8: frames between the detections; told (Q,) f8: log odds; more (G+1,)
    f8: added to the log odds, by gap. Written: rest (2, N) f8: odds of all other pairs of each row and
    column; gain (W,) f8.
    """
    rest[:] = 0.0
    times, worth = np.exp(more), len(gain)
    for e in order[worth:]:
        rest[0, row[e]] += odds[0, e] * times[gap[e]]
        rest[1, col[e]] += odds[1, e] * times[gap[e]]
    for n in range(worth):
        e = order[n]
        others = (1 + rest[0, row[e]]) * (1 + rest[1, col[e]])
        gain[n] = told[e] + more[gap[e]] - (math.log(others) if others > 1 else 0.0)


@njit(nogil=True, cache=True)
def share(row, gap, order, odds, more, rest, seen, chance):  # pragma: no cover
    """Probabilities of all pairs, given the frequencies of the sampled ones.

    row to rest as in `weigh`; seen (W,) f8. Written: chance (Q,) f8.
    """
    free, times, worth = np.ones(rest.shape[1]), np.exp(more), len(seen)
    for n in range(worth):
        e = order[n]
        chance[e] = seen[n]
        free[row[e]] -= seen[n]
    for e in order[worth:]:
        chance[e] = free[row[e]] / (1 + rest[0, row[e]]) * odds[0, e] * times[gap[e]]


@njit(nogil=True, cache=True)
def count(row, col, gap, chance, frame, early, late, shares):  # pragma: no cover
    """Numbers of links by gap length, and of detections that end or start.

    row, col (Q,) i4, gap (Q,) i8, chance (Q,) f8: pairs; frame (N,) i8; early: last frame in which an end can
    be observed; late: first frame in which a start can be observed. Written: shares (G+1,) f8 by gap. Returns
    (lost, new, how many might be new, alone, how many might be: neither in the first frame nor in the last).
    """
    without = np.ones((2, len(frame)))
    shares[:] = 0.0
    for e in range(len(row)):
        without[0, row[e]] -= chance[e]
        without[1, col[e]] -= chance[e]
        if frame[row[e]] <= early:
            shares[gap[e]] += chance[e]
    lost, new, many, alone, inner = 0.0, 0.0, 0, 0.0, 0
    for i in range(len(frame)):
        if frame[i] <= early:
            lost += without[0, i]
        if frame[i] >= late:
            new += without[1, i]
            many += 1
        if frame[0] < frame[i] < frame[-1]:
            alone += max(without[0, i], 0.0) * max(without[1, i], 0.0)
            inner += 1
    return lost, new, many, alone, inner
