"""Dense problems as sparse ones: few candidates a row and column, then all other pairs priced out."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from .._arrays import kernels
from .auction import Auction
from .bid_and_augment import BidAndAugment
from .dense import DenseMatrix
from .points import matrix_of
from .problem import AssignmentProblem, DenseCosts, PointCosts, SparseCosts, forbidden, largest_cost
from .solver import AbstractAssignmentSolver, Answer


@dataclass(frozen=True)
class Sparsified(AbstractAssignmentSolver):
    """Exact for dense problems and points; looks at all pairs a handful of times, where others do hundreds.

    The pairs of least reduced cost of every row and column are candidates; `BidAndAugment`'s kernels solve
    that sparse problem exactly. One pass over the whole matrix then looks for pairs whose cost is below the
    sum of their duals. Where there is none the answer is optimal for the whole matrix; where there are, they
    become candidates, and only rows whose pair is no longer their best search again (Volgenant's
    core-oriented approach, 1996). If candidates admit no matching, or if pairs keep coming, an auction (of a
    square matrix) and shortest paths over the whole matrix do the work. Sparse problems go to
    `BidAndAugment` as they are.

    Parameters
    ----------
    of_row, of_col : int
        Candidates of each row and of each column; they change the time, never the cost.
    rounds : int
        Passes that add candidates before the rest is left to paths over the whole matrix.

    Examples
    --------
    >>> from outbid.tracker.assign import assign
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> answer = assign(AssignmentProblem(costs), Sparsified())
    >>> answer.col_of_row.tolist(), answer.gap
    ([1, 0, 2], 0)
    """

    of_row: int = 16
    of_col: int = 8
    rounds: int = 20
    works_on_points = True

    def compute(self, problem: AssignmentProblem) -> Answer:
        if isinstance(problem.costs, SparseCosts) or min(problem.shape) == 0:
            return BidAndAugment().compute(problem.with_stored_costs())
        work = _Work(problem, problem.costs)
        work.choose_candidates(self.of_row, self.of_col)
        stuck = work.solve()
        passes = 0
        while stuck < 0 and (passes < self.rounds or not problem.is_perfect):
            passes += 1
            nearest, count = work.violators(self.of_row * passes)
            if not count.any():
                return work.answer(work.col_of_row(), passes)
            work.add(nearest, count)
            stuck = work.search(work.release())
        # What defeats candidates defeats paths too, yet hardly an auction; but it needs free prices.
        stored = problem.with_stored_costs()
        start = Auction().compute(stored) if work.is_square else None
        return work.answer(work.search_everywhere(DenseMatrix(stored.array), start), passes)


class _Work:
    """The candidates, the matching and the duals of one computation."""

    def __init__(self, problem: AssignmentProblem, costs: DenseCosts | PointCosts) -> None:
        self.matrix = matrix_of(costs)
        self.row_unmatched, self.col_unmatched = problem.unmatched()
        self.never = forbidden(self.col_unmatched.dtype)
        self.is_perfect = problem.is_perfect
        # In a square perfect matching any dual will do for a free column: none stays free.
        self.is_square = problem.is_perfect and problem.shape[0] == problem.shape[1]
        # Rounding makes no candidates.
        self.rounding = 0 if problem.is_integer else 1e-14 * largest_cost(problem)
        self.v = self.col_unmatched.copy()
        self.owner = np.full(problem.shape[1], -1, np.int32)
        self.edge = np.full(problem.shape[0], -1, np.int64)
        self.scanned = 0

    def choose_candidates(self, of_row: int, of_col: int) -> None:
        """The least reduced costs of every row and column, from the duals of a reduction."""
        from . import sparsified_cpu

        u = self.row_unmatched.copy()
        if self.is_perfect:
            self.matrix.lower_to_slack(self.v, u)
            u[u >= self.never] = 0
        limit = np.full(len(self.v), self.never) if self.is_perfect else self.col_unmatched
        of_cols, col_count, least = self.matrix.nearest_of_cols(u, limit, of_col)
        if self.is_square:
            self.v = np.where(col_count > 0, least, 0)
        of_rows, row_count = self.matrix.nearest_of_rows(self.v, self.row_unmatched, of_row)
        most = int(row_count.sum()) + int(col_count.sum())
        indptr, indices = np.empty(len(u) + 1, np.int64), np.empty(most, np.int32)
        sparsified_cpu.merge(of_rows, row_count, of_cols, col_count, indptr, indices)
        self._set_candidates(indptr, indices[: indptr[-1]])

    def _set_candidates(self, indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> None:
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        values = self.matrix.pairs(rows, indices)
        narrow = values.dtype == np.int32 and self.v.dtype == np.int64
        self.indptr, self.indices = indptr, indices
        self.values = values if narrow else values.astype(self.v.dtype, copy=False)

    def solve(self) -> int:
        """Bids and paths among the candidates; returns a row that has no path, or -1."""
        free = np.empty(len(self.edge), np.int32)
        left_over, _ = self._sparse().bid(*self._pairs(), BidAndAugment.budget, free)
        return self.search(np.sort(free[:left_over]))

    def search(self, free: NDArray[np.int32]) -> int:
        """Paths from free rows; returns a row that has none, or -1."""
        scanned, stuck = self._sparse().augment(*self._pairs(), free)
        self.scanned += scanned
        return stuck

    def violators(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Of each row the columns with which it breaks its dual most."""
        return self.matrix.nearest_of_rows(self.v, self._least() - self.rounding, most)

    def add(self, nearest: NDArray[np.int32], count: NDArray[np.int32]) -> None:
        """Make pairs candidates."""
        from . import sparsified_cpu

        larger = np.empty_like(self.indptr), np.empty(len(self.indices) + int(count.sum()), np.int32)
        sparsified_cpu.add(nearest, count, self.indptr, self.indices, self.edge, *larger)
        self._set_candidates(*larger)

    def release(self) -> NDArray[np.int32]:
        """Free the rows whose pair is no longer their best; returns all that must search."""
        while True:
            least = self._least()
            matched = np.nonzero(self.edge >= 0)[0]
            held = self.indices[self.edge[matched]]
            loose = self.values[self.edge[matched]] - self.v[held] > least[matched] + self.rounding
            self._free(matched[loose], held[loose])
            if self.is_square or not loose.any():
                break
        return np.nonzero((self.edge < 0) & (least < self.row_unmatched))[0].astype(np.int32)

    def search_everywhere(self, matrix: DenseMatrix, start: Answer | None) -> NDArray[np.int32]:
        """Paths over all pairs, for a perfect matching, from another answer or from what the candidates gave.

        Raises
        ------
        ValueError
            If some row cannot be matched.
        """
        from . import dense_cpu

        col_of_row, loose = self.col_of_row(), np.ones(1, bool)
        if start is not None:
            col_of_row, self.v = start.col_of_row, start.col_dual
            self.owner[col_of_row] = np.arange(len(col_of_row))
        while loose.any():
            u = np.full(len(col_of_row), self.never)
            matrix.lower_to_slack(self.v, u)
            matched = np.nonzero(col_of_row >= 0)[0]
            held = col_of_row[matched]
            loose = matrix.pairs(matched, held) - self.v[held] > u[matched] + self.rounding
            col_of_row[matched[loose]] = -1
            self._free(matched[loose], held[loose])
            if self.is_square:
                break
        free = np.nonzero(col_of_row < 0)[0].astype(np.int32)
        scanned, stuck = dense_cpu.augment(matrix.values, self.never, self.v, self.owner, col_of_row, free)
        self.scanned += scanned
        if stuck >= 0:
            raise ValueError(
                f"The problem is infeasible: not every row can be matched (row {stuck} is left over). "
                "Allow more pairs, or give unmatched costs."
            )
        return col_of_row

    def col_of_row(self) -> NDArray[np.int32]:
        """Column that each row holds, -1 if none."""
        col_of_row = np.full(len(self.edge), -1, np.int32)
        col_of_row[self.edge >= 0] = self.indices[self.edge[self.edge >= 0]]
        return col_of_row

    def answer(self, col_of_row: NDArray[np.int32], passes: int) -> Answer:
        stats = {"passes": passes, "candidates": len(self.indices), "scanned": self.scanned}
        # The same proof with no dual above 0, as the certificate wants them for a perfect matching.
        col_dual = self.v - max(self.v.max(), 0) if self.is_square else self.v
        return Answer(col_of_row, col_dual, stats)

    def _sparse(self) -> ModuleType:
        """The kernels of the sparse solver."""
        return kernels("outbid.tracker.assign.bid_and_augment", self.v)

    def _pairs(self) -> tuple:
        """What the sparse kernels work on."""
        pairs = (self.indptr, self.indices, self.values, self.row_unmatched, self.never)
        return (*pairs, self.v, self.owner, self.edge)

    def _least(self) -> NDArray:
        """Each row's least reduced cost among its candidates and staying unmatched."""
        from . import certificate_cpu

        least = self.row_unmatched.copy()
        certificate_cpu.lower_to_slack(self.indptr, self.indices, self.values, self.v, least)
        return least

    def _free(self, rows: NDArray, cols: NDArray) -> None:
        """Undo pairs."""
        self.edge[rows] = -1
        self.owner[cols] = -1
        if not self.is_square:
            self.v[cols] = self.col_unmatched[cols]
