"""Exact margins: the rise of the optimal cost if a pair is forbidden, for each pair of an answer.

If a pair is forbidden, the new optimum differs from the old one by an alternating cycle through the pair, or
by an alternating path through it. Each end of this path is a row or column that becomes unmatched, or one
that was unmatched and becomes matched. With optimal duals all slacks are at least 0, so the best cycle and
the best path follow from shortest-path searches around the pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import to_host
from .assignment import Assignment, Status
from .points import stored_costs
from .problem import SparseCosts, forbidden, on_host


def exact_margins(answer: Assignment) -> NDArray:
    """(R,) rise of the optimal cost if the pair of a row is forbidden; 0 if the row is unmatched.

    `Assignment.margin` is a lower bound of this that needs no search.

    Parameters
    ----------
    answer : Assignment
        On the host or on a GPU; the result is on the host. If no matching exists without a pair, its margin
        is infinity, or 2**60 for integers.

    Raises
    ------
    ValueError
        If the answer is not proved to be optimal.

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
    if problem.is_perfect and problem.shape[0] > problem.shape[1]:  # now the rows may stay unmatched
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
