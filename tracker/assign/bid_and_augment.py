"""Bids without epsilon, then shortest augmenting paths: the exact solver of sparse problems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import array_module, kernels, lap
from .problem import AssignmentProblem, SparseCosts, forbidden
from .solver import AbstractAssignmentSolver, Answer


@dataclass(frozen=True)
class BidAndAugment(AbstractAssignmentSolver):
    """Exact for every problem; made for sparse ones in which rows and columns may stay unmatched.

    First every free row bids the difference between its second best and best choice (Bertsekas'
    auction without epsilon, which is the augmenting row reduction of Jonker & Volgenant 1987);
    staying unmatched is one of the choices. A row that is outbid bids next. Then each row that is
    still free searches a shortest augmenting path, which may also end at a row that rather stays
    unmatched; where particles appear and vanish, such searches stay as small as tens of nodes.

    Parameters
    ----------
    budget : int
        Bids in a chain of rows that outbid each other before the last is left for a path. On a GPU, where all
        rows bid at once, the 32nd part of the rounds.

    Examples
    --------
    >>> from outbid.tracker.assign import assign, SparseCosts
    >>> costs = SparseCosts(np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([1, 2, 1]), (2, 2))
    >>> assign(AssignmentProblem(costs), BidAndAugment()).col_of_row.tolist()
    [1, 0]
    """

    budget: int = 30

    def compute(self, problem: AssignmentProblem) -> Answer:
        on = kernels("outbid.tracker.assign.bid_and_augment", problem.array)
        xp = array_module(problem.array)
        costs = problem.stored_costs.sparse()
        rows, cols = problem.shape
        row_unmatched, v = problem.unmatched()
        dtype = v.dtype if v.dtype.kind == "f" or costs.values.dtype != np.int32 else np.dtype(np.int32)
        never = forbidden(v.dtype)
        pairs = (costs.indptr, costs.indices, costs.values.astype(dtype, copy=False), row_unmatched, never)
        owner = xp.full(cols, -1, dtype=np.int32)
        edge = xp.full(rows, -1, dtype=np.int64)
        free = xp.empty(rows, dtype=np.int32)
        left_over, bids = on.bid(*pairs, v, owner, edge, self.budget, free)
        lap("bids", v)
        # In the order of rows, which is that of space, the trees of one search warm the next one's cache.
        scanned, stuck = on.augment(*pairs, v, owner, edge, xp.sort(free[:left_over]))
        lap("paths", v)
        if stuck >= 0:
            raise ValueError(
                f"The problem is infeasible: not every row can be matched (row {stuck} is left over). "
                "Allow more pairs, or give unmatched costs."
            )
        col_of_row = xp.where(edge >= 0, costs.indices[edge], -1) if len(costs.indices) else xp.full(rows, -1)
        stats = {"bids": bids, "paths": left_over, "scanned": scanned}
        return Answer(col_of_row.astype(np.int32), v, stats)

    def works_on_device(self, problem: AssignmentProblem) -> bool:
        """Sparse int32 costs with optional rows and columns, all below 2^29: what fits the packed prices."""
        if problem.row_unmatched is None or problem.col_unmatched is None:
            return False
        costs = (problem.array, problem.row_unmatched, problem.col_unmatched)
        return (
            isinstance(problem.costs, SparseCosts)
            and problem.is_integer
            and problem.array.dtype == np.int32
            and all(int(cost.min()) > -(2**29) and int(cost.max()) < 2**29 for cost in costs if cost.size)
        )
