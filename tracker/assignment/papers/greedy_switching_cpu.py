"""CPU kernels of `greedy_switching`.

Difference evaluation runs in threads, independently for each line. Everything else is serial, so no result
depends on threads. All kernels take a `greedy_switching.State`.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from ...compute.kernels import inner_kernel, kernel
from ..matrix import in_blocks


def _line(costs, i, scratch):  # pragma: no cover
    """Costs of line i with all lines of the other side."""


@overload(_line)
def _line_of(costs, i, scratch):  # noqa: ARG001  # pragma: no cover
    return _stored_line if isinstance(costs, types.Array) else _distances


def _stored_line(costs, i, scratch):  # noqa: ARG001  # pragma: no cover
    return costs[i]


def _distances(costs, i, scratch):  # pragma: no cover
    points, by_axis, squared = costs
    scratch[:] = 0.0
    for axis in range(len(by_axis)):
        x = points[i, axis]
        for j in range(len(scratch)):
            difference = x - by_axis[axis, j]
            scratch[j] += difference * difference
    if not squared:
        for j in range(len(scratch)):
            scratch[j] = np.sqrt(scratch[j])
    return scratch


def _pair(costs, i, j):  # pragma: no cover
    """Cost of one pair."""


@overload(_pair)
def _pair_of(costs, i, j):  # noqa: ARG001  # pragma: no cover
    return _stored_pair if isinstance(costs, types.Array) else _distance


def _stored_pair(costs, i, j):  # pragma: no cover
    return costs[i, j]


def _distance(costs, i, j):  # pragma: no cover
    points, by_axis, squared = costs
    distance = 0.0
    for axis in range(len(by_axis)):
        difference = points[i, axis] - by_axis[axis, j]
        distance += difference * difference
    return distance if squared else np.sqrt(distance)


@inner_kernel
def _evaluate(
    costs, by_col, row_out, col_out, job, agent, col_held, i, choice, gain, scratch
):  # pragma: no cover
    """Agent difference evaluation (Algorithm 2): the switch of row i that saves most.

    Row i takes a column, and the row that had it gets the column of row i. With rows and columns exchanged in
    all arguments, the function is the job difference evaluation. scratch (R + C,): for points, the costs of
    one line of each side.
    """
    rows, cols = len(job), len(agent)
    old = job[i]
    most, best = col_held.dtype.type(0), -2
    row = _line(costs, i, scratch[:cols])
    if old >= 0:
        base, other_row = row[old], _line(by_col, old, scratch[cols : rows + cols])
        alone = base - row_out[i] - col_out[old]
        if alone > most:
            most, best = alone, -1
        for j in range(cols):
            other = agent[j]
            saved = base + col_held[j] - row[j] - (other_row[other] if other >= 0 else col_out[old])
            if saved > most:
                most, best = saved, j
    else:
        for j in range(cols):
            saved = row_out[i] + col_held[j] - row[j]
            if agent[j] >= 0:
                saved -= row_out[agent[j]]
            if saved > most:
                most, best = saved, j
    choice[i], gain[i] = best, most


@inner_kernel
def _evaluate_row(s, i, scratch):  # pragma: no cover
    out, held = (s.row_out, s.col_out), (s.job, s.agent)
    _evaluate(s.costs, s.by_col, *out, *held, s.col_held, i, s.row_choice, s.row_gain, scratch)


@inner_kernel
def _evaluate_col(s, j, scratch):  # pragma: no cover
    out, held = (s.col_out, s.row_out), (s.agent, s.job)
    _evaluate(s.by_col, s.costs, *out, *held, s.row_held, j, s.col_choice, s.col_gain, scratch)


@kernel
def _evaluate_lines(s, start, first, last):  # pragma: no cover
    """Difference evaluation of some lines, numbered from `start`: rows first, then columns."""
    rows = len(s.job)
    scratch = np.empty(rows + len(s.agent), s.row_held.dtype)
    for k in range(start + first, start + last):
        if not s.waits[k]:
            if k < rows:
                _evaluate_row(s, k, scratch)
            else:
                _evaluate_col(s, k - rows, scratch)


def evaluate_shared(state, first, last):
    """Difference evaluation of lines first to last that do not wait: rows, then columns."""
    work = (last - first) * max(len(state.job), len(state.agent))
    in_blocks(_evaluate_lines, last - first, state, first, work=work)


evaluate_global = evaluate_shared  # only the GPU has two forms


@inner_kernel
def _saved(s, i, j):  # pragma: no cover
    """Saving if row i takes column j (-1: none) and the previous row of j takes the column of i."""
    old, other = s.job[i], s.agent[j] if j >= 0 else -1
    before = s.row_held[i] + (s.col_held[j] if j >= 0 else 0)
    after = _pair(s.costs, i, j) if j >= 0 else s.row_out[i]
    if other >= 0:
        after += _pair(s.costs, other, old) if old >= 0 else s.row_out[other]
    elif old >= 0:
        after += s.col_out[old]
    return before - after


@inner_kernel
def _switch(s, i, j):  # pragma: no cover
    """Row i takes column j (-1: none), and the previous row of j the column of i; returns these two."""
    old, other = s.job[i], s.agent[j] if j >= 0 else -1
    s.job[i] = j
    s.row_held[i] = _pair(s.costs, i, j) if j >= 0 else s.row_out[i]
    if j >= 0:
        s.agent[j], s.col_held[j] = i, s.row_held[i]
    if other >= 0:
        s.job[other] = old
        s.row_held[other] = _pair(s.costs, other, old) if old >= 0 else s.row_out[other]
    if old >= 0:
        s.agent[old] = other
        s.col_held[old] = s.row_held[other] if other >= 0 else s.col_out[old]
    return old, other


@kernel
def switch_best_first(s, most):  # pragma: no cover
    """Algorithm 1, up to `most` switches: perform the best known switch if it still lowers the cost.

    Returns the number of switches tried (below `most` if none is left) and of switches performed.
    """
    scratch = np.empty(len(s.job) + len(s.agent), s.row_held.dtype)
    tried, done = 0, 0
    while tried < most:
        best_row, best_col = np.argmax(s.row_gain), np.argmax(s.col_gain)
        if s.row_gain[best_row] <= 0 and s.col_gain[best_col] <= 0:
            break
        tried += 1
        if s.row_gain[best_row] > s.col_gain[best_col]:
            i, j = best_row, np.int64(s.row_choice[best_row])
            s.row_gain[best_row] = 0
        else:
            i, j = np.int64(s.col_choice[best_col]), best_col
            s.col_gain[best_col] = 0
            if i < 0:
                i, j = np.int64(s.agent[j]), np.int64(-1)
        # A choice may be outdated, because later switches changed the matching.
        if i < 0 or _saved(s, i, j) <= 0:
            continue
        done += 1
        old, other = _switch(s, i, j)
        for row in (i, np.int64(other)):
            if row >= 0:
                _evaluate_row(s, row, scratch)
        for col in (j, np.int64(old)):
            if col >= 0:
                _evaluate_col(s, col, scratch)
    return tried, done


@inner_kernel
def _switch_of(s, k):  # pragma: no cover
    """Row and column (-1: none) of the k-th switch, rows first; the row is -1 if there is no switch."""
    rows = len(s.row_gain)
    if k < rows:
        return (np.int64(k) if s.row_gain[k] > 0 else np.int64(-1)), np.int64(s.row_choice[k])
    if s.col_gain[k - rows] <= 0:
        return np.int64(-1), np.int64(-1)
    if s.col_choice[k - rows] < 0:
        return np.int64(s.agent[k - rows]), np.int64(-1)
    return np.int64(s.col_choice[k - rows]), np.int64(k - rows)


@inner_kernel
def _check_conflicts(s):  # pragma: no cover
    """Algorithm 4: a switch that shares a row or column with an earlier one waits; rows first, then columns.

    Returns whether there is any switch.
    """
    rows, cols = len(s.job), len(s.agent)
    # The last element stands for no row or column, which any number of switches may use.
    row_taken, col_taken = np.zeros(rows + 1, np.bool_), np.zeros(cols + 1, np.bool_)
    found = False
    for k in range(rows + cols):
        i, j = _switch_of(s, k)
        waits = False
        if i >= 0:
            found = True
            old, other = s.job[i], s.agent[j] if j >= 0 else -1
            waits = row_taken[i] or row_taken[other] or col_taken[j] or col_taken[old]
            if not waits:
                row_taken[i] = row_taken[other] = col_taken[j] = col_taken[old] = True
                row_taken[rows] = col_taken[cols] = False
        s.waits[k] = waits
    return found


@kernel
def switch_at_once(s):  # pragma: no cover
    """Conflict check (Algorithm 4) and switches (Algorithm 3) that do not wait and still lower the cost.

    Written: waits, and the matching. Returns 1, or 0 if there was no switch, and the number performed.
    """
    if not _check_conflicts(s):
        return 0, 0
    done = 0
    lines = len(s.waits)
    row_of, col_of = np.empty(lines, np.int64), np.empty(lines, np.int64)
    for k in range(lines):
        row_of[k], col_of[k] = _switch_of(s, k)
        if s.waits[k]:
            row_of[k] = -1
    for k in range(lines):
        i, j = row_of[k], col_of[k]
        if i >= 0 and _saved(s, i, j) > 0:
            _switch(s, i, j)
            done += 1
    return 1, done


@kernel
def take_nearest(s, first, last):  # pragma: no cover
    """Greedy start of rows first to last: each takes the free column that saves most.

    Written: job, agent, -1 at first.
    """
    scratch = np.empty(len(s.agent), s.row_held.dtype)
    for i in range(first, last):
        row = _line(s.costs, i, scratch)
        least, at = s.row_out[i], -1
        for j in range(len(s.agent)):
            if s.agent[j] < 0 and row[j] - s.col_out[j] < least:
                least, at = row[j] - s.col_out[j], j
        if at >= 0:
            s.job[i], s.agent[at] = at, i
