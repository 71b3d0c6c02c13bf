"""The Hungarian algorithms of Date & Nagi: classical, and with an alternating tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import free_memory, kernels
from .problem import AssignmentProblem, DenseCosts, SparseCosts, forbidden, largest_number
from .solver import AbstractAssignmentSolver, Answer


@dataclass(frozen=True)
class Hungarian(AbstractAssignmentSolver):
    r"""Exact; searches from all unassigned rows at once and augments along vertex-disjoint paths together.

    Each iteration checks how many rows are assigned, searches forward from all that are not along pairs
    without slack, goes back from the unassigned columns it reached, and augments. If it reached none, the
    duals take half of the least slack that the covers leave, :math:`\theta/2`, and new pairs lose theirs. The
    classical variant (Algorithms 1-8) looks for those pairs in the whole matrix after every update and keeps
    them as CSR; the tree variant (Algorithms 4, 9) keeps the least slack of every column and goes on with the
    trees it has.

    What is not a square matrix is made one: staying unmatched at :math:`r_i` makes a pair cost
    :math:`\min(c_{ij} - s_j, r_i)`, and rows of zeros take the columns that are left over.

    Parameters
    ----------
    variant : {"tree", "classical"}

    References
    ----------
    K. Date, R. Nagi: GPU-accelerated Hungarian algorithms for the Linear Assignment Problem. Parallel
    Computing 57 (2016) 52-72.

    Examples
    --------
    >>> from outbid.tracker.assign import assign
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> answer = assign(AssignmentProblem(costs), Hungarian("classical"))
    >>> answer.col_of_row.tolist(), answer.gap
    ([1, 0, 2], 0)
    """

    variant: str = "tree"

    def compute(self, problem: AssignmentProblem) -> Answer:
        if self.variant not in ("tree", "classical"):
            raise ValueError(f"There is no variant {self.variant!r}. Choose one of: tree, classical.")
        rows, cols = problem.shape
        if not problem.is_perfect and rows > cols:
            other = self.compute(problem.transposed())
            return _exchanged(problem, other)
        if rows == 0:
            return Answer(np.empty(0, np.int32), problem.unmatched()[1])
        search = _Search(_square(problem))
        while search.check() < search.size:
            frontier = search.unassigned()
            if self.variant == "tree":
                search.tree_iteration(frontier)
            else:
                search.classical_iteration(frontier)
        # All duals of columns change by the same half or by its negative, so their differences are even.
        v = search.col_dual - search.col_dual.max()
        v = (v // 2 if problem.is_integer else v)[:cols] + problem.unmatched()[1]
        return Answer(_without_unmatched(problem, search.col_of_row[:rows]), v, search.stats)


class _Search:
    """Matching, duals, covers and trees; counts and times of every stage in `stats`."""

    def __init__(self, costs: NDArray) -> None:
        # Twice the costs, so that half of a slack is a whole number.
        self.costs = 2 * costs if costs.dtype == np.int64 else costs
        self.never = 2 * forbidden(np.int64) if costs.dtype == np.int64 else np.float64(np.inf)
        self.size = len(costs)
        self.tie = self.costs.dtype.type(0) if costs.dtype == np.int64 else 2e-13 * largest_number(costs)
        self.on = kernels("outbid.tracker.assign.hungarian", costs)
        self.row_dual, self.col_dual = np.zeros((2, self.size), costs.dtype)
        self.col_of_row, self.row_of_col = np.full((2, self.size), -1, np.int32)
        self.row_covered, self.col_covered = np.zeros((2, self.size), bool)
        self.links = np.full((4, self.size), -1, np.int32)
        self.ends, self.roots = np.empty((2, self.size), np.int32)
        self.pairs: tuple[NDArray, NDArray] | None = None
        self.stats: dict[str, int | float] = {"iterations": 0, "dual_updates": 0, "paths": 0}
        self._timed("initial_reduction", self.costs, self.row_dual, self.col_dual)
        if (self.row_dual >= self.never).any():
            self._refuse(int(np.argmax(self.row_dual)))

    def check(self) -> int:
        """Number of assigned rows; forgets the trees."""
        count = self._timed(
            "optimality_check", self.col_of_row, self.row_covered, self.col_covered, self.links
        )
        self.stats["iterations"] += 1
        return count

    def unassigned(self) -> NDArray[np.int32]:
        """(n,) int32, the unassigned rows first; their number is `waiting`."""
        rows = np.nonzero(self.col_of_row < 0)[0]
        self.waiting = len(rows)
        frontier = np.zeros(self.size, np.int32)
        frontier[: len(rows)] = rows
        return frontier

    def classical_iteration(self, frontier: NDArray[np.int32]) -> None:
        """Algorithms 3, 5, 6, or 7 and 8 if no unassigned column was reached."""
        if self.pairs is None:
            self.pairs = self._timed("compress", self.costs, *self._duals(), self.never, self.tie)
        found = self._timed(
            "forward_pass",
            *(
                *self.pairs,
                self.row_of_col,
                *self._covers(),
                *self.links[:2],
                frontier,
                self.waiting,
                self.ends,
            ),
        )
        if found:
            self._augment(found)
            return
        least = self._timed("dual_update", self.costs, *self._duals(), *self._covers(), self.never)
        self._count_update(least)
        self.pairs = None

    def tree_iteration(self, frontier: NDArray[np.int32]) -> None:
        """Algorithm 4, and 9 until an unassigned column is reached; then 5 and 6."""
        slack = np.full(self.size, self.never, self.costs.dtype)
        found, count = 0, self.waiting
        while True:
            found = self._timed(
                "forward_pass_tree",
                *(self.costs, *self._duals(), self.row_of_col, *self._covers(), *self.links[:2], slack),
                *(frontier, count, self.ends, self.never, self.tie),
            )
            if found:
                break
            count, least = self._timed(
                "dual_update_tree",
                *(*self._duals(), *self._covers(), slack, self.links[1], frontier, self.never, self.tie),
            )
            self._count_update(least)
        self._augment(found)

    def _augment(self, found: int) -> None:
        count = self._timed("reverse_pass", self.ends, found, *self.links, self.roots)
        matching = (self.col_of_row, self.row_of_col)
        self._timed("augmentation_pass", self.roots, count, *self.links[2:], *matching)
        self.stats["paths"] += count

    def _count_update(self, least: int | float) -> None:
        self.stats["dual_updates"] += 1
        if least >= self.never:
            self._refuse(int(np.argmin(self.col_of_row)))

    def _duals(self) -> tuple[NDArray, NDArray]:
        return self.row_dual, self.col_dual

    def _covers(self) -> tuple[NDArray, NDArray]:
        return self.row_covered, self.col_covered

    def _timed(self, stage: str, *given: Any) -> Any:
        kernel: Callable[..., Any] = getattr(self.on, stage)
        start = time.perf_counter()
        result = kernel(*given)
        name = f"{stage}_seconds"
        self.stats[name] = self.stats.get(name, 0.0) + time.perf_counter() - start
        return result

    def _refuse(self, row: int) -> None:
        raise ValueError(
            f"The problem is infeasible: not every row can be matched (row {row} is left over). "
            "Allow more pairs, or give unmatched costs."
        )


def _square(problem: AssignmentProblem) -> NDArray:
    """The costs as a square matrix, forbidden pairs as `forbidden`.

    Raises
    ------
    ValueError
        If it does not fit into memory.
    """
    rows, cols = problem.shape
    row_unmatched, col_unmatched = problem.unmatched()
    never = forbidden(col_unmatched.dtype)
    # With a row of zeros some column stays free, which bounds the duals of optional rows by r_i.
    size = cols + (not problem.is_perfect)
    if 24 * size * size > free_memory():
        raise ValueError(
            f"The Hungarian algorithm needs all pairs, here {24 * size * size / 2**30:.1f} GiB. "
            "Choose solver bid_and_augment for sparse problems."
        )
    square = np.zeros((size, size), col_unmatched.dtype)
    costs = square[:rows]
    costs[:] = never
    if isinstance(problem.stored_costs, DenseCosts):
        costs[:, :cols] = problem.stored_costs.values
    else:
        costs[problem.stored_costs.rows, problem.stored_costs.indices] = problem.stored_costs.values
    if not problem.is_perfect:
        costs[:, :cols] -= col_unmatched
        np.minimum(costs, row_unmatched[:, None], out=costs)
    return square


def _without_unmatched(problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> NDArray[np.int32]:
    """The matching without the pairs that stand for staying unmatched."""
    if problem.is_perfect:
        return col_of_row
    row_unmatched, col_unmatched = problem.unmatched()
    rows = np.nonzero(col_of_row < problem.shape[1])[0]
    cols = col_of_row[rows]
    if isinstance(problem.stored_costs, SparseCosts):
        full = np.full(len(rows), np.inf)
        costs = problem.stored_costs
        taken = costs.indices == np.where(col_of_row < problem.shape[1], col_of_row, -1)[costs.rows]
        pair_cost = dict(zip(costs.rows[taken].tolist(), costs.values[taken].tolist(), strict=True))
        full[:] = [pair_cost.get(int(i), np.inf) for i in rows]
    else:
        full = problem.stored_costs.values[rows, cols]
    helps = full < row_unmatched[rows] + col_unmatched[cols]
    chosen = np.full(len(col_of_row), -1, np.int32)
    chosen[rows[helps]] = cols[helps]
    return chosen


def _exchanged(problem: AssignmentProblem, other: Answer) -> Answer:
    """An answer to the transposed problem as one to the problem; column duals follow from row duals."""
    row_unmatched, v = problem.unmatched()
    col_of_row = np.full(problem.shape[0], -1, np.int32)
    matched = np.nonzero(other.col_of_row >= 0)[0]
    col_of_row[other.col_of_row[matched]] = matched
    u = np.minimum(other.col_dual, row_unmatched)
    costs = problem.stored_costs.sparse()
    np.minimum.at(v, costs.indices, (costs.values - u[costs.rows]).astype(v.dtype))
    return Answer(col_of_row, v, other.stats)
