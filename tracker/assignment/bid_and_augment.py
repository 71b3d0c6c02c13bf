"""Bids without epsilon, then shortest augmenting paths: the exact solver for sparse problems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..compute.arrays import kernels
from .points import stored_costs
from .problem import AssignmentProblem, SparseCosts, forbidden
from .solver import AbstractAssignmentSolver, Answer


@dataclass(frozen=True)
class BidAndAugment(AbstractAssignmentSolver):
    """Exact for every problem; designed for sparse ones in which rows and columns may stay unmatched.

    First, each free row bids the difference between its second-best and its best choice, and staying
    unmatched is one of the choices. This is Bertsekas' auction without epsilon, or the augmenting row
    reduction of Jonker & Volgenant (1987). A row that is outbid bids next. Then a shortest augmenting path is
    searched from each row that is still free. A path may also end at a row that becomes unmatched. If many
    rows and columns can stay unmatched, these searches visit only tens of nodes.

    Parameters
    ----------
    budget : int
        Largest number of bids in a chain of rows that outbid each other; the last row is then left for a
        path. On a GPU, where all rows bid at once, 1/32 of the number of rounds.

    Examples
    --------
    >>> from outbid.assignment import assign, SparseCosts
    >>> costs = SparseCosts(np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([1, 2, 1]), (2, 2))
    >>> assign(AssignmentProblem(costs), BidAndAugment()).col_of_row.tolist()
    [1, 0]
    """

    budget: int = 30

    def compute(self, problem: AssignmentProblem) -> Answer:
        on = kernels("outbid.assignment.bid_and_augment", problem.array)
        costs = stored_costs(problem).sparse()
        row_unmatched, col_unmatched = problem.unmatched()
        # 32-bit costs are not converted: their sums with duals have more bits anyway.
        keep = col_unmatched.dtype.kind == "i" and costs.values.dtype == np.int32
        values = costs.values if keep else costs.values.astype(col_unmatched.dtype, copy=False)
        stuck, *answer = on.solve(
            *(costs.indptr, costs.indices, values, row_unmatched, col_unmatched),
            *(forbidden(col_unmatched.dtype), self.budget),
        )
        if stuck >= 0:
            raise ValueError(
                f"The problem is infeasible: not every row can be matched (row {stuck} is left over). "
                "Allow more pairs, or give unmatched costs."
            )
        return Answer(*answer)

    def works_on_device(self, problem: AssignmentProblem) -> bool:
        """Whether packed prices work: sparse int32 costs below 2^29 with optional rows and columns."""
        if problem.row_unmatched is None or problem.col_unmatched is None:
            return False
        is_packed = problem.is_integer and problem.array.dtype == np.int32
        if not (is_packed and isinstance(problem.costs, SparseCosts)):
            return False
        if problem.largest is not None:
            return problem.largest < 2**29
        costs = (problem.array, problem.row_unmatched, problem.col_unmatched)
        return all(int(cost.min()) > -(2**29) and int(cost.max()) < 2**29 for cost in costs if cost.size)
