"""CPU kernels of candidates: lists of pairs joined row by row, and cut to those that matter.

Serial, without the GIL; no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def place_rows(rows, cols, indptr, indices, at, placed):  # pragma: no cover
    """Write the pairs of each row where the row's pairs go, and move on there.

    rows (R,) i8 row of each row of the pairs; cols (C,) i8 likewise; indptr (R+1,) i8, indices (P,) i4.
    Written: placed (Q,) i4 and at (N,) i8, where the next pair of each row goes.
    """
    for i in range(len(rows)):
        to = at[rows[i]]
        for e in range(indptr[i], indptr[i + 1]):
            placed[to] = cols[indices[e]]
            to += 1
        at[rows[i]] = to


@njit(nogil=True, cache=True)
def take_above(indptr, indices, gain, least, kept_indptr, col, place, kept_gain):  # pragma: no cover
    """Take the pairs with gain > least: indptr (R+1,) i8, indices (P,) i4, gain (P,) f8.

    Written: kept_indptr (R+1,) i8; of those kept col (P+1,) i4, place (P+1,) i8 among the pairs and
    kept_gain (P+1,) f8, and behind them no matter what.
    """
    to = np.uint64(0)
    kept_indptr[0] = 0
    for i in range(len(indptr) - 1):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            # Written in any case: which pairs are kept, no processor can guess.
            col[to], place[to], kept_gain[to] = indices[e], e, gain[e]
            to += np.uint64(gain[e] > least)
        kept_indptr[i + 1] = to


@njit(nogil=True, cache=True)
def places(indptr, indices, follower, place):  # pragma: no cover
    """Where the pair of each row and its follower stands, -1 for none.

    indptr (R+1,) i8, indices (P,) i4; follower (R,) i8 or -1. Written: place (R,) i8.
    """
    for i in range(len(follower)):
        place[i] = -1
        if follower[i] < 0:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] == follower[i]:
                place[i] = e
                break


@njit(nogil=True, cache=True)
def looked_up(row, col, known_row, known_col, known, found):  # pragma: no cover
    """What is known of pairs, both lists row by row and in the same order within a row; 0 of strangers.

    row, col (K,) i8; known_row, known_col (Q,) i8; known (Q,) f8 or f4. Written: found (K,) alike.
    """
    begin = 0
    for k in range(len(row)):
        while begin < len(known) and known_row[begin] < row[k]:
            begin += 1
        at = begin
        while at < len(known) and known_row[at] == row[k] and known_col[at] != col[k]:
            at += 1
        there = at < len(known) and known_row[at] == row[k]
        found[k] = known[at] if there else 0.0
        if there:
            begin = at + 1
