"""CPU kernels of `tree`: a frontier against a shard's own columns. They depend on no order of threads.

A `Columns` holds its arrays; frontier: rows, their roots and bases, of all shards alike.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit

from ..hungarian_cpu import after, far_of, in_parts, least_above

_STRIDE = 64
"""Entries compared at once, as in hungarian_cpu."""
_OPEN, _JOINED = 0, 1


def open_columns(columns, never):
    """Forgets what a search found. Written: slack, state, found_in, bar."""
    columns.slack.fill(never)
    columns.state.fill(_OPEN)
    columns.found_in.fill(0)
    columns.bar.fill(far_of(never))


def scan(columns, frontier, number, tie, workers):
    """Algorithm 4 for a frontier. Written: slack, row_before, root, found_in, bar."""
    c = columns
    arrays = (c.costs, c.first, *frontier, c.dual, tie, number)
    found = (c.slack, c.state, c.row_before, c.root, c.found_in, c.bar)
    in_parts(_scan, len(c.slack), len(frontier[0]) * len(c.slack), workers, *arrays, found)


def join(columns, level, never):
    """Own columns of a slack up to `level`: which, slack, row before, root; and the others' least slack.

    Written: state, bar.
    """
    c = columns
    near = c.slack <= level
    found = np.nonzero(near & (c.state == _OPEN))[0]
    c.state[found] = _JOINED
    c.bar[found] = -far_of(never)
    left = c.slack[c.state == _OPEN]
    least = left.min() if len(left) else never
    return found, c.slack[found], c.row_before[found], c.root[found], least


def lower_duals(columns, level, ends):
    """What a search takes from the duals of the columns it covered; `ends` it reached, but did not cover."""
    c = columns
    covered = c.state == _JOINED
    covered[ends] = False
    c.dual[covered] -= level - c.slack[covered]


@njit(nogil=True, cache=True)
def _scan(costs, offset, joined, roots, bases, dual, tie, number, found, begin, end):  # pragma: no cover
    slack, state, row_before, root, found_in, bar = found
    rows = costs.shape[0]
    for k in range(len(joined)):
        i, base = joined[k], bases[k]
        row = costs[i]
        for start in range(begin, end, _STRIDE):
            stop = min(start + _STRIDE, end)
            if least_above(row[start:stop], bar[start:stop]) > base:
                continue
            for j in range(start, stop):
                if state[j] != _OPEN:
                    continue
                key = dual.dtype.type(row[j] - base - dual[j])
                if key < slack[j] or (
                    key == slack[j]
                    and found_in[j] == number
                    and after(i, offset + j, rows) < after(row_before[j], offset + j, rows)
                ):
                    slack[j], row_before[j], root[j], found_in[j] = key, i, roots[k], number
                    bar[j] = key + dual[j] + tie
