"""Greedy assignment, nearest pairs first: the baseline for comparisons with optimal assignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..points import stored_costs
from ..problem import AssignmentProblem
from ..solver import AbstractAssignmentSolver, Answer


@dataclass(frozen=True)
class Greedy(AbstractAssignmentSolver):
    """Takes pairs in order of their saving (relative to staying unmatched) if both sides are still free.

    This is a heuristic. Its cost is certified like that of any solver, so the gap bounds its error. Ties go
    to the lowest row, then to the lowest column.

    Examples
    --------
    >>> from outbid.assignment import assign, DenseCosts
    >>> answer = assign(AssignmentProblem(DenseCosts(np.array([[1, 2], [2, 9]]))), Greedy())
    >>> answer.col_of_row.tolist(), answer.primal_cost
    ([0, 1], 10)
    """

    is_exact = False

    def compute(self, problem: AssignmentProblem) -> Answer:
        from .greedy_cpu import take_free_pairs

        costs = stored_costs(problem).sparse()
        row_unmatched, col_unmatched = problem.unmatched()
        pair_row = costs.rows
        saving = costs.values - (
            0 if problem.is_perfect else row_unmatched[pair_row] + col_unmatched[costs.indices]
        )
        order = np.lexsort((costs.indices, pair_row, saving))
        if not problem.is_perfect:
            order = order[: np.count_nonzero(saving < 0)]
        col_of_row = np.full(problem.shape[0], -1, dtype=np.int32)
        take_free_pairs(order, pair_row, costs.indices, col_of_row, np.zeros(problem.shape[1], dtype=bool))
        if problem.is_perfect and (col_of_row < 0).any():
            raise ValueError(
                f"Nearest first left row {int(np.argmin(col_of_row))} without a column. "
                "Choose an exact solver, or give unmatched costs."
            )
        return Answer(col_of_row, col_unmatched, {"pairs": len(order)})
