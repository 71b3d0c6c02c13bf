"""CPU kernels of `greedy_switching`; serial, so that no result depends on an order of threads.

Shapes: costs (R,C), by_col the same transposed and contiguous, both i8 or f8, finite; row_out (R,), col_out
(C,) costs of staying unmatched; job (R,) i4 column of each row, agent (C,) i4 row of each column, -1 where
unmatched; row_held (R,), col_held (C,) what that costs now. The best switch of each row: row_choice (R,) i4,
a column, -1 to stay unmatched, -2 none; row_gain (R,), what it saves. Of each column likewise col_choice, a
row, and col_gain.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def evaluate(costs, by_col, row_out, col_out, job, agent, col_held, i, choice, gain):  # pragma: no cover
    """Agent difference evaluation (Algorithm 2): the switch of row i that saves most.

    Whoever held the column that row i takes gets what row i held. With rows and columns exchanged in all
    arguments it is the job difference evaluation, for the switches are the same.
    """
    old = job[i]
    most, best = costs.dtype.type(0), -2
    row = costs[i]
    if old >= 0:
        base, other_row = row[old], by_col[old]
        alone = base - row_out[i] - col_out[old]
        if alone > most:
            most, best = alone, -1
        for j in range(len(row)):
            other = agent[j]
            saved = base + col_held[j] - row[j] - (other_row[other] if other >= 0 else col_out[old])
            if saved > most:
                most, best = saved, j
    else:
        for j in range(len(row)):
            saved = row_out[i] + col_held[j] - row[j]
            if agent[j] >= 0:
                saved -= row_out[agent[j]]
            if saved > most:
                most, best = saved, j
    choice[i], gain[i] = best, most


@njit(nogil=True, cache=True)
def evaluate_all(
    costs,
    by_col,
    row_out,
    col_out,
    job,
    agent,
    row_held,
    col_held,
    row_choice,
    row_gain,
    col_choice,
    col_gain,
    row_waits,
    col_waits,
):  # pragma: no cover
    """Difference evaluation of every row and column that does not wait."""
    for i in range(len(job)):
        if not row_waits[i]:
            evaluate(costs, by_col, row_out, col_out, job, agent, col_held, i, row_choice, row_gain)
    for j in range(len(agent)):
        if not col_waits[j]:
            evaluate(by_col, costs, col_out, row_out, agent, job, row_held, j, col_choice, col_gain)


@njit(nogil=True, cache=True)
def _saved(costs, row_out, col_out, job, agent, row_held, col_held, i, j):  # pragma: no cover
    """What is saved now if row i takes column j (-1: none) and the row that held j what i held."""
    old, other = job[i], agent[j] if j >= 0 else -1
    before = row_held[i] + (col_held[j] if j >= 0 else 0)
    after = costs[i, j] if j >= 0 else row_out[i]
    if other >= 0:
        after += costs[other, old] if old >= 0 else row_out[other]
    elif old >= 0:
        after += col_out[old]
    return before - after


@njit(nogil=True, cache=True)
def _switch(costs, row_out, col_out, job, agent, row_held, col_held, i, j):  # pragma: no cover
    """Row i takes column j (-1: none), and the row that held j what i held; returns that column and row."""
    old, other = job[i], agent[j] if j >= 0 else -1
    job[i] = j
    row_held[i] = costs[i, j] if j >= 0 else row_out[i]
    if j >= 0:
        agent[j], col_held[j] = i, row_held[i]
    if other >= 0:
        job[other] = old
        row_held[other] = costs[other, old] if old >= 0 else row_out[other]
    if old >= 0:
        agent[old] = other
        col_held[old] = row_held[other] if other >= 0 else col_out[old]
    return old, other


@njit(nogil=True, cache=True)
def switch_best_first(
    costs,
    by_col,
    row_out,
    col_out,
    job,
    agent,
    row_held,
    col_held,
    row_choice,
    row_gain,
    col_choice,
    col_gain,
    most,
):  # pragma: no cover
    """The switching of Algorithm 1, at most `most` times: the best switch known, if it still saves anything.

    Returns the number of switches tried, below `most` if none is left, and of those done.
    """
    tried, done = 0, 0
    while tried < most:
        best_row, best_col = np.argmax(row_gain), np.argmax(col_gain)
        if row_gain[best_row] <= 0 and col_gain[best_col] <= 0:
            break
        tried += 1
        if row_gain[best_row] > col_gain[best_col]:
            i, j = best_row, np.int64(row_choice[best_row])
            row_gain[best_row] = 0
        else:
            i, j = np.int64(col_choice[best_col]), best_col
            col_gain[best_col] = 0
            if i < 0:
                i, j = np.int64(agent[j]), np.int64(-1)
        # A choice may be of another time: what it was based on has been given away.
        if i < 0 or _saved(costs, row_out, col_out, job, agent, row_held, col_held, i, j) <= 0:
            continue
        done += 1
        old, other = _switch(costs, row_out, col_out, job, agent, row_held, col_held, i, j)
        for k in range(2):
            row, col = (i, j) if k == 0 else (np.int64(other), np.int64(old))
            if row >= 0:
                evaluate(costs, by_col, row_out, col_out, job, agent, col_held, row, row_choice, row_gain)
            if col >= 0:
                evaluate(by_col, costs, col_out, row_out, agent, job, row_held, col, col_choice, col_gain)
    return tried, done


@njit(nogil=True, cache=True)
def _switch_of(k, agent, row_choice, row_gain, col_choice, col_gain):  # pragma: no cover
    """Row and column (-1: none) of the k-th switch, those of rows first; the row is -1 if there is none."""
    rows = len(row_gain)
    if k < rows:
        return (np.int64(k) if row_gain[k] > 0 else np.int64(-1)), np.int64(row_choice[k])
    if col_gain[k - rows] <= 0:
        return np.int64(-1), np.int64(-1)
    if col_choice[k - rows] < 0:
        return np.int64(agent[k - rows]), np.int64(-1)
    return np.int64(col_choice[k - rows]), np.int64(k - rows)


@njit(nogil=True, cache=True)
def check_conflicts(
    job, agent, row_choice, row_gain, col_choice, col_gain, row_waits, col_waits
):  # pragma: no cover
    """Algorithm 4: switches that share a row or a column with an earlier one wait; rows first, then columns.

    Written: row_waits (R,), col_waits (C,) bool.
    """
    rows, cols = len(job), len(agent)
    # The last place stands for no row and no column, of which there are enough for all.
    row_taken, col_taken = np.zeros(rows + 1, np.bool_), np.zeros(cols + 1, np.bool_)
    for k in range(rows + cols):
        i, j = _switch_of(k, agent, row_choice, row_gain, col_choice, col_gain)
        waits = False
        if i >= 0:
            old, other = job[i], agent[j] if j >= 0 else -1
            waits = row_taken[i] or row_taken[other] or col_taken[j] or col_taken[old]
            if not waits:
                row_taken[i] = row_taken[other] = col_taken[j] = col_taken[old] = True
                row_taken[rows] = col_taken[cols] = False
        if k < rows:
            row_waits[k] = waits
        else:
            col_waits[k - rows] = waits


@njit(nogil=True, cache=True)
def switch_at_once(
    costs,
    by_col,  # noqa: ARG001
    row_out,
    col_out,
    job,
    agent,
    row_held,
    col_held,
    row_choice,
    row_gain,
    col_choice,
    col_gain,
    row_waits,
    col_waits,
):  # pragma: no cover
    """Algorithm 3's switches: all that do not wait and still save anything. Returns their number."""
    done = 0
    rows, cols = len(job), len(agent)
    row_of, col_of = np.empty(rows + cols, np.int64), np.empty(rows + cols, np.int64)
    for k in range(rows + cols):
        row_of[k], col_of[k] = _switch_of(k, agent, row_choice, row_gain, col_choice, col_gain)
        if row_waits[k] if k < rows else col_waits[k - rows]:
            row_of[k] = -1
    for k in range(rows + cols):
        i, j = row_of[k], col_of[k]
        if i >= 0 and _saved(costs, row_out, col_out, job, agent, row_held, col_held, i, j) > 0:
            _switch(costs, row_out, col_out, job, agent, row_held, col_held, i, j)
            done += 1
    return done


@njit(nogil=True, cache=True)
def take_nearest(costs, row_out, col_out, job, agent):  # pragma: no cover
    """Greedy start: row after row takes the free column that saves most. Written: job, agent, -1 at first."""
    for i in range(len(job)):
        least, at = row_out[i], -1
        for j in range(len(agent)):
            if agent[j] < 0 and costs[i, j] - col_out[j] < least:
                least, at = costs[i, j] - col_out[j], j
        if at >= 0:
            job[i], agent[at] = at, i
