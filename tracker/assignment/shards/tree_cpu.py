"""CPU kernels of `tree`: a frontier against a shard's own columns. They depend on no order of threads.

A `Columns` holds its arrays; frontier: rows, their roots and bases, of all shards alike.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..hungarian_cpu import far_of, in_parts
from ..hungarian_cpu import scan as scan_columns

_OPEN, _JOINED = 0, 1


def open_columns(columns, never):
    """Forgets what a search found. Written: slack, state, found_in, bar."""
    columns.slack.fill(never)
    columns.state.fill(_OPEN)
    columns.found_in.fill(0)
    columns.bar.fill(far_of(never))


def scan(columns, frontier, number, tie, team):
    """Algorithm 4 for a frontier. Written: slack, row_before, root, found_in, bar."""
    c, rows = columns, len(frontier[0])
    found = (c.slack, c.state, c.row_before, c.root, c.found_in, c.bar)
    given = (c.costs, c.first, frontier, found, c.dual, tie, 0, rows, number)
    in_parts(scan_columns, len(c.slack), rows * len(c.slack), team, *given)


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
