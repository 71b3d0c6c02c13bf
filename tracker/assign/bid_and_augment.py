"""Bids without epsilon, then shortest augmenting paths: the exact solver of sparse problems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import AssignmentProblem, forbidden
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
        Bids in a chain of rows that outbid each other before the last is left for a path.

    Examples
    --------
    >>> from outbid.tracker.assign import assign, SparseCosts
    >>> costs = SparseCosts(np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([1, 2, 1]), (2, 2))
    >>> assign(AssignmentProblem(costs), BidAndAugment()).col_of_row.tolist()
    [1, 0]
    """

    budget: int = 30

    def compute(self, problem: AssignmentProblem) -> Answer:
        from . import bid_and_augment_cpu as kernels

        costs = problem.costs.sparse()
        rows, cols = problem.shape
        row_unmatched, v = problem.unmatched()
        dtype = v.dtype if v.dtype.kind == "f" or costs.values.dtype != np.int32 else np.dtype(np.int32)
        pairs = (
            costs.indptr,
            costs.indices,
            costs.values.astype(dtype, copy=False),
            row_unmatched,
            forbidden(v.dtype),
        )
        owner = np.full(cols, -1, dtype=np.int32)
        edge = np.full(rows, -1, dtype=np.int64)
        free = np.empty(rows, dtype=np.int32)
        left_over, bids = kernels.bid(*pairs, v, owner, edge, self.budget, free)
        # In the order of rows, which is that of space, the trees of one search warm the next one's cache.
        free = np.sort(free[:left_over])
        scanned, stuck = kernels.augment(*pairs, v, owner, edge, free)
        if stuck >= 0:
            raise ValueError(
                f"The problem is infeasible: not every row can be matched (row {stuck} is left over). "
                "Allow more pairs, or give unmatched costs."
            )
        col_of_row = np.where(edge >= 0, costs.indices[edge], -1) if len(costs.indices) else np.full(rows, -1)
        return Answer(col_of_row.astype(np.int32), v, {"bids": bids, "paths": left_over, "scanned": scanned})
