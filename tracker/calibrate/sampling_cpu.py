"""CPU kernels of sampling: matchings sampled according to their probability.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ..refine.sweep_cpu import transpose


@njit(nogil=True, cache=True)
def _try_each(tried, indptr, indices, gain, follower, before, held, state):  # pragma: no cover
    """Propose one random pair for each of some rows (Metropolis); each move is its own inverse.

    If its column is free, the row moves there or takes it; if both have it, they part; if another row has it,
    the two rows exchange columns, where the other may have that one. tried (T,) i8 rows, each with pairs;
    indptr (R+1,) i8, indices (P,) i4, gain (P,) f8; follower (R,), before (C,) i8; held (R,) f8 gain of the
    pair of each row; state u8: the random number so far. Returns the next.
    """
    for i in tried:
        many = indptr[i + 1] - indptr[i]
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        draw = (state >> np.uint64(11)) * (1.0 / (1 << 53)) * many
        e = indptr[i] + int(draw)
        j, c, chance = indices[e], follower[i], draw - int(draw)
        h, change, other = before[j], gain[e], 0.0
        if c == j:
            change = -change
        elif h < 0:
            if c >= 0:
                change -= held[i]
        else:
            if c < 0:
                continue
            at = indptr[h]
            while at < indptr[h + 1] and indices[at] != c:
                at += 1
            if at == indptr[h + 1]:
                continue
            other = gain[at]
            change += other - held[i] - held[h]
        if change < 0 and chance >= math.exp(change):
            continue
        if c == j:
            follower[i] = before[j] = -1
            continue
        if c >= 0:
            before[c] = h
        if h >= 0:
            follower[h], held[h] = c, other
        follower[i], before[j], held[i] = j, i, gain[e]
    return state


@njit(nogil=True, cache=True)
def _shared(indptr, indices, back):  # pragma: no cover
    """Rows with more than one pair, or whose single pair has a column with further pairs.

    indptr (R+1,) i8, indices (P,) i4 pairs, back (C+1,) i8 of the columns. Returns (T,) i8.
    """
    found, many = np.empty(len(indptr) - 1, np.int64), 0
    for i in range(len(indptr) - 1):
        own = indptr[i + 1] - indptr[i]
        found[many] = i
        many += own > 1 or (own == 1 and back[indices[indptr[i]] + 1] - back[indices[indptr[i]]] > 1)
    return found[:many]


@njit(nogil=True, cache=True)
def sample_matchings(indptr, indices, gain, follower, before, sweeps, waste, seen):  # pragma: no cover
    """Frequency of each pair in matchings sampled with probability proportional to exp(sum of gains).

    Rows and columns are tried in turn; of a pair that excludes no other it is known. indptr (N+1,) i8,
    indices (P,) i4 pairs of N rows with N columns;
    gain (P,) f8; follower, before (N,) i8 the matching to begin with, -1 for none, changed in place; sweeps:
    how often each row and each column is tried; waste: sweeps at first that do not count.
    Written: seen (P,) f8 share of the sweeps.
    """
    count = len(follower)
    back, rows, place = np.empty_like(indptr), np.empty_like(indices), np.empty(len(indices), np.int64)
    transpose(indptr, indices, back, rows, place)
    back_gain, held, back_held = np.empty(len(gain)), np.empty(count), np.empty(count)
    for e in range(len(gain)):
        back_gain[place[e]] = gain[e]
    rows_tried, cols_tried = _shared(indptr, indices, back), _shared(back, rows, indptr)
    for e in range(len(gain)):
        seen[e] = 1 / (1 + math.exp(-gain[e]))
    for i in rows_tried:
        for e in range(indptr[i], indptr[i + 1]):
            seen[e] = 0.0
            if indices[e] == follower[i]:
                held[i] = gain[e]
    state = np.uint64(88172645463325252)
    for sweep in range(sweeps):
        state = _try_each(rows_tried, indptr, indices, gain, follower, before, held, state)
        for i in rows_tried:
            if follower[i] >= 0:
                back_held[follower[i]] = held[i]
        state = _try_each(cols_tried, back, rows, back_gain, before, follower, back_held, state)
        for i in rows_tried:
            for e in range(indptr[i], indptr[i + 1]):
                if indices[e] == follower[i]:
                    held[i] = gain[e]
                    if sweep >= waste:
                        seen[e] += 1 / (sweeps - waste)
