"""CPU kernels of `tree`: compare a frontier with the own columns of a shard. No result depends on threads.

The arrays are those of `Columns`; frontier: rows with roots and bases, the same in all shards.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..hungarian_cpu import far_of, in_parts
from ..hungarian_cpu import scan as scan_columns

_OPEN, _JOINED = 0, 1


def open_columns(columns, never):
    """Reset the columns before a search. Written: slack, state, found_in, bar."""
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
    """Own columns with slack up to `level`: index, slack, previous row, root; least slack of the others.

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
    """Subtract a search from the duals of covered columns; `ends` were reached but not covered."""
    c = columns
    covered = c.state == _JOINED
    covered[ends] = False
    c.dual[covered] -= level - c.slack[covered]
