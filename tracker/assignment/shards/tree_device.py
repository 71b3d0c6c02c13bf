"""`tree_cpu` by whole arrays, for columns on a GPU; the same names, arguments and results, to the bit."""

# mypy: ignore-errors
# CuPy is known to _arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ..._arrays import array_module, to_host

_OPEN, _JOINED = 0, 1
_AT_ONCE = 1 << 25
"""Entries of the frontier's rows that are copied at once."""
_LATEST = 1 << 32
"""Beyond the turn of every row."""


def open_columns(columns, never):
    """Forgets what a search found; see tree_cpu."""
    columns.slack.fill(never)
    columns.state.fill(_OPEN)
    columns.found_in.fill(0)


def scan(columns, frontier, number, tie, workers):  # noqa: ARG001
    """Algorithm 4 for a frontier; see tree_cpu."""
    c, xp = columns, array_module(columns.slack)
    rows, width = c.costs.shape
    if not width:
        return
    joined, roots, bases = map(xp.asarray, frontier)
    root_of = xp.zeros(rows, np.int32)
    root_of[joined] = roots
    turn = _turns(c, xp)
    step = max(1, _AT_ONCE // width)
    for first in range(0, len(joined), step):
        some = joined[first : first + step]
        keys = (c.costs[some] - bases[first : first + step, None] - c.dual).astype(c.slack.dtype)
        least = keys.min(axis=0)
        # Among equally near rows the first after the column's own place.
        turns = (some[:, None].astype(np.int64) - turn) & 0xFFFFFFFF
        turns = xp.where(keys == least, turns, _LATEST).min(axis=0)
        before = (c.row_before - turn) & 0xFFFFFFFF
        ties = (least == c.slack) & (c.found_in == number) & (turns < before)
        wins = (c.state == _OPEN) & ((least < c.slack) | ties)
        row = ((turns + turn) & 0xFFFFFFFF).astype(np.int32)
        c.slack[:] = xp.where(wins, least, c.slack)
        c.row_before[:] = xp.where(wins, row, c.row_before)
        c.root[:] = xp.where(wins, root_of[xp.minimum(row, rows - 1)], c.root)
        c.found_in[:] = xp.where(wins, number, c.found_in)


def join(columns, level, never):
    """Own columns whose slack is at most `level`; see tree_cpu. On the host."""
    c, xp = columns, array_module(columns.slack)
    is_open = c.state == _OPEN
    near = is_open & (c.slack <= level)
    found = xp.nonzero(near)[0]
    c.state[found] = _JOINED
    left = xp.where(is_open & ~near, c.slack, never)
    least = left.min() if len(left) else xp.asarray(never)
    parts = (found, c.slack[found], c.row_before[found], c.root[found])
    return (*map(to_host, parts), to_host(least)[()])


def lower_duals(columns, level, ends):
    """What a search takes from the duals of the columns it covered; see tree_cpu."""
    c, xp = columns, array_module(columns.slack)
    covered = c.state == _JOINED
    covered[xp.asarray(ends)] = False
    c.dual[:] = xp.where(covered, c.dual - (level - c.slack), c.dual)


def _turns(c, xp):
    """(W,) int64: the row at each own column's place."""
    cols = c.first + xp.arange(len(c.slack), dtype=np.int64)
    return xp.where(cols < len(c.costs), cols, cols % len(c.costs))
