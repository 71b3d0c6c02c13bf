"""Proof of optimality in exact arithmetic: every float is an integer multiple of a power of two.

A matching is optimal if its residual graph has no cycle of negative cost; shortest distances in this graph
are then dual variables (Bellman-Ford). Python integers make every sum exact.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import to_host
from .points import stored_costs
from .problem import AssignmentProblem, SparseCosts, on_host


def holds(problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> bool:
    """Whether this matching is optimal.

    Parameters
    ----------
    problem : AssignmentProblem
        If a perfect matching is required, with at most as many rows as columns.
    col_of_row : (R,) int32 array
        A valid matching.

    Examples
    --------
    >>> from .problem import DenseCosts
    >>> problem = AssignmentProblem(DenseCosts(np.array([[0.1, 0.2], [0.2, 0.4]])))
    >>> holds(problem, np.array([0, 1], np.int32)), holds(problem, np.array([1, 0], np.int32))
    (False, True)
    """
    problem, held = on_host(problem), to_host(col_of_row)
    costs, row_unmatched, col_unmatched = _whole(problem)
    matched = np.nonzero(held >= 0)[0]
    free = np.setdiff1d(np.arange(problem.shape[1]), held[matched])
    # First upper bounds of the column duals: from unmatched costs and from unmatched rows.
    pays = np.array([costs[row, held[row]] for row in matched], dtype=object)
    first = col_unmatched.copy()
    for row in np.nonzero(held < 0)[0]:
        first = np.minimum(first, costs[row] - row_unmatched[row])
    if len(free) and (first[free] < col_unmatched[free]).any():
        return False
    dual = first
    for _ in range(len(matched) + 1):
        reach = dual[held[matched]] - pays
        through = np.min(costs[matched] + reach[:, None], axis=0) if len(matched) else dual
        lower = np.minimum(dual, through)
        if (lower[free] < col_unmatched[free]).any() or (
            pays - row_unmatched[matched] > lower[held[matched]]
        ).any():
            return False
        if (lower == dual).all():
            return True
        dual = lower
    return False


def _whole(problem: AssignmentProblem) -> tuple[NDArray, NDArray, NDArray]:
    """Costs (R, C) and unmatched costs (R,), (C,) as integers in one unit; forbidden ones are largest."""
    stored, (rows, cols) = stored_costs(problem), problem.shape
    if isinstance(stored, SparseCosts):
        dense = np.full(problem.shape, np.inf)
        dense[stored.rows, stored.indices] = stored.values
    else:
        dense = stored.values.astype(np.float64)
    sides = problem.unmatched()
    flat = [Fraction(v) for v in np.concatenate([dense.ravel(), *sides]).tolist() if v < np.inf]
    unit = max((v.denominator for v in flat), default=1)
    never = 2 * (rows + cols + 1) * int(max((abs(v) for v in flat), default=Fraction(0)) * unit + 1)
    given = [dense.ravel(), *sides]
    whole = [[int(Fraction(v) * unit) if v < np.inf else never for v in of.tolist()] for of in given]
    table, row, col = (np.array(of, dtype=object) for of in whole)
    return table.reshape(problem.shape), row, col
