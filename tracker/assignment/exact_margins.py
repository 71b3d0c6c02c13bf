"""Exact margins: by how much the optimum rises if a pair is forbidden, for all pairs of an answer.

Without its pair a row and a column have to do something else. What changes is an alternating path through the
pair, whose two arms end where a row or column stays unmatched or one that was becomes matched, or an
alternating cycle through it. With optimal duals all slacks are 0 or more, and both are shortest paths; so the
problem is solved anew for every pair by looking around it alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._arrays import to_host
from .assignment import Assignment, Status
from .points import stored_costs
from .problem import SparseCosts, forbidden, on_host


def exact_margins(answer: Assignment) -> NDArray:
    """(R,) by how much the optimum rises if a row's pair is forbidden; 0 if it is unmatched.

    Beside `Assignment.margin`, which is a lower bound of it and known at once.

    Parameters
    ----------
    answer : Assignment
        On the host or on a GPU; what is returned is on the host. An optimum that needs a pair rises to what
        no matching can reach: infinity, or 2**60 for integers.

    Raises
    ------
    ValueError
        If it is not proved to be optimal.

    Examples
    --------
    >>> from . import AssignmentProblem, DenseCosts, assign
    >>> costs, nine = DenseCosts(np.array([[1, 4], [2, 3]])), np.array([9, 9])
    >>> answer = assign(AssignmentProblem(costs, nine, nine))
    >>> answer.col_of_row.tolist(), exact_margins(answer).tolist(), answer.margin.tolist()
    ([0, 1], [2, 2], [2, 2])
    """
    from . import exact_margins_cpu as kernels

    if answer.status is not Status.OPTIMAL:
        raise ValueError("Exact margins are those of an optimum. Let an exact solver find it.")
    problem = on_host(answer.problem)
    held, holder, u, v = map(
        to_host, (answer.col_of_row, answer.row_of_col, answer.row_dual, answer.col_dual)
    )
    row_unmatched, col_unmatched = problem.unmatched()
    if problem.is_perfect and problem.shape[0] > problem.shape[1]:  # rows are those that may be left over
        row_unmatched, col_unmatched = np.zeros_like(u), np.full_like(v, forbidden(v.dtype))
    pairs = stored_costs(problem).sparse()
    slack = np.maximum(pairs.values.astype(u.dtype) - u[pairs.rows] - v[pairs.indices], 0)
    back = SparseCosts(pairs.indptr, pairs.indices, np.arange(len(slack)), pairs.shape).transposed()
    place = np.empty_like(back.values)
    place[back.values] = np.arange(len(slack))
    of_row, of_col = np.empty_like(u), np.empty_like(v)
    kernels.displaced(
        pairs.indptr, pairs.indices, slack, held, holder, row_unmatched - u, back.indptr, back.indices,
        back.values, of_row,
    )  # fmt: skip
    kernels.displaced(
        back.indptr, back.indices, slack[back.values], holder, held, col_unmatched - v, pairs.indptr,
        pairs.indices, place, of_col,
    )  # fmt: skip
    margin, matched = np.zeros_like(u), np.nonzero(held >= 0)[0]
    margin[matched] = of_row[matched] + of_col[held[matched]]
    kernels.shorten_by_cycles(pairs.indptr, pairs.indices, slack, held, holder, margin)
    margin[margin > forbidden(u.dtype) / 2] = forbidden(u.dtype)
    return margin
