"""The core of a dense problem: candidate pairs, a matching of them, and duals."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, kernels, on_device, to_device, to_host
from ..bid_and_augment import BidAndAugment
from ..matrix import DenseMatrix
from ..points import matrix_of
from ..problem import AssignmentProblem, DenseCosts, PointCosts, forbidden
from ..scales import cost_scales
from ..solver import Answer
from .monge import solved_by_order

_EPSILONS = (0.3, 0.06, 0.012)
"""The values of epsilon of the first auctions, relative to the mean slack of the candidates."""
_AUCTION = (300, 0.01)
"""Largest number of rounds of an auction, and the share of free rows at which it ends."""
_FALL, _LEAST = 0.2, 0.03
"""With far candidates, epsilon starts at their mean slack and decreases by this factor, down to this share of
the mean slack of the near candidates."""
_AUCTION_WITH_FAR = (2000, 30)
"""Largest number of rounds of such an auction, and the number of free rows at which it ends."""
_TURNS, _MANY = 10, 0.06
"""How often an auction may add candidates, and the share of free rows above which it does."""
_FAR = 0.5
"""Candidates are chosen again if an auction moves the duals by this share of their mean slack."""
_BIDS = (300, 0.001)
"""The same for bids without epsilon; the remaining free rows are left for augmenting paths."""


class Core:
    """Candidates, matching and duals of one computation.

    They are on the GPU if the costs are there and the problem is a square perfect matching, otherwise on the
    host; kernels for a matrix on the GPU are then called from the host. `matrix` makes the object that
    answers questions about all pairs.
    """

    def __init__(
        self,
        problem: AssignmentProblem,
        costs: DenseCosts | PointCosts,
        matrix: Callable[[DenseCosts | PointCosts], Any] = matrix_of,
    ) -> None:
        rows, cols = problem.shape
        # In a square perfect matching any dual is valid for a free column, because none stays free.
        self.is_square = problem.is_perfect and rows == cols
        self.is_perfect = problem.is_perfect
        self.matrix = matrix(costs)
        self.row_unmatched, self.col_unmatched = problem.unmatched()
        self.answer_on_device = on_device(problem.array)
        if self.answer_on_device and not self.is_square:
            asked: Any = import_module("..matrix_gpu", __package__)
            self.matrix = asked.AskedFromHost(self.matrix)
            self.row_unmatched, self.col_unmatched = map(to_host, (self.row_unmatched, self.col_unmatched))
        self.never = forbidden(self.col_unmatched.dtype)
        self.usual, self.largest = cost_scales(problem)
        xp = array_module(self.col_unmatched)
        self.on: Any = kernels("outbid.assignment.dense.perfect", self.col_unmatched)
        of_points = isinstance(costs, PointCosts)
        self.patience = self.on.PATIENCE_WITH_POINTS if of_points else self.on.PATIENCE
        self.far = min(self.on.FAR if of_points else 0, cols - 1)
        self.v = self.col_unmatched.copy()
        self.owner = xp.full(cols, -1, np.int32)
        self.edge = xp.full(rows, -1, np.int64)
        self.indices = np.empty(0, np.int32)
        self.stats: dict[str, int | float] = {"bids": 0, "scanned": 0, "passes": 0}

    def in_order(self) -> Answer | None:
        """The answer, if an ordering of rows and columns solves the problem (see `monge`)."""
        if not self.is_square:
            return None
        answer = solved_by_order(self.matrix, self.row_unmatched, self._rounding())
        return answer and Answer(answer.col_of_row, answer.col_dual, {**self.stats, **answer.stats})

    def begin_again(self, v: NDArray, patience: int) -> None:
        """Free all rows and columns, and set the duals."""
        self.v, self.patience = v, patience
        self.stats["attempts"] = 2
        self._forget()

    def choose_candidates(self, of_row: int, of_col: int) -> None:
        """Choose the pairs of least reduced cost of each row and column, with the duals of a reduction."""
        xp = array_module(self.v)
        u = self.row_unmatched.copy()
        if self.is_perfect:
            self.matrix.lower_to_slack(self.v, u)
            u[u >= self.never] = 0
        limit = xp.full(len(self.v), self.never) if self.is_perfect else self.col_unmatched
        of_cols, col_count, least = self.matrix.nearest_of_cols(u, limit, of_col)
        if self.is_square:
            self.v = xp.where(col_count > 0, least, 0)
        of_rows, row_count = self.matrix.nearest_of_rows(self.v, self.row_unmatched, of_row)
        self._set_candidates(*self.on.merged(of_rows, row_count, of_cols, col_count))
        self._bound_by(of_rows, row_count)

    def _set_candidates(self, indptr: NDArray, rows: NDArray, indices: NDArray) -> None:
        values = self.matrix.pairs(rows, indices)
        narrow = values.dtype == np.int32 and self.v.dtype == np.int64
        self.indptr, self.rows, self.indices = indptr, rows, indices
        self.values = values if narrow else values.astype(self.v.dtype, copy=False)

    def solve(self, of_row: int) -> int:
        """Bids and augmenting paths among the candidates; returns a row without a path, or -1."""
        if not self.is_square:
            free = np.empty(len(self.edge), np.int32)
            left_over, bids = self._sparse().bid(*self._optional_pairs(), BidAndAugment.budget, free)
            self.stats["bids"] += bids
            return self.search(np.sort(free[:left_over]))
        if self.far > 0:
            self._auctions_with_far(of_row)
        elif not self._auctions(of_row):
            return int(array_module(self.v).argmin(self.edge))
        self._forget()
        self._bid(self.v.dtype.type(0), None, *self._share(_BIDS))
        return self.search(None)

    def _auctions(self, of_row: int) -> bool:
        """Auctions with decreasing epsilon; returns whether the candidates suffice for augmenting paths."""
        v, slack = self.v.copy(), self._mean_slack()
        for share in _EPSILONS:
            epsilon = self.v.dtype.type(share * slack)
            if epsilon > 0 and not self._auction(epsilon, of_row) and not self.patience:
                return False
        # Prices far from those of the reduction show better which pairs may matter.
        if slack > 0 and float(((self.v - v) / slack).std()) > _FAR:
            self._choose_again(of_row)
        return True

    def _auction(self, epsilon: int | float, of_row: int) -> bool:
        """Rounds of bids; adds candidates while those of many rows are too costly. Whether this helped."""
        self._forget()
        for _ in range(_TURNS):
            if self._bid(epsilon, self.bound, *self._share(_AUCTION)) < _MANY * len(self.edge):
                self._bid(epsilon, None, *self._share(_AUCTION))
                return True
            self._choose_again(of_row)
        return False

    def _auctions_with_far(self, of_row: int) -> None:
        """Auctions until few rows are free; far pairs show by how much prices of a whole region must rise."""
        slack = self._mean_slack()
        self._add_far()
        epsilon = self._mean_slack()
        while slack > 0 and epsilon > _LEAST * slack:
            self._forget()
            self._bid(epsilon, None, *_AUCTION_WITH_FAR)
            self._add_nearest(of_row)
            epsilon *= _FALL

    def _add_far(self) -> None:
        """Add pairs at fixed offsets in the order of points, so that a perfect matching always exists."""
        xp, size = array_module(self.v), len(self.edge)
        steps = 1 + (xp.arange(self.far) * 2_654_435_761 + size // 2) % (size - 1)
        far = (xp.arange(size)[:, None] + steps) % size
        self.add(far.astype(np.int32), xp.full(size, self.far, np.int32))

    def _choose_again(self, of_row: int) -> None:
        """Add candidates according to the current duals, and compute their price limits."""
        self._bound_by(*self._add_nearest(of_row))

    def _add_nearest(self, of_row: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        nearest, count = self.matrix.nearest_of_rows(self.v, self.row_unmatched, of_row)
        self.add(nearest, count)
        return nearest, count

    def _bound_by(self, nearest: NDArray, count: NDArray) -> None:
        """Reduced cost of each row above which pairs outside the candidates may be better."""
        xp = array_module(self.v)
        self.bound = xp.full(len(count), self.never)
        rows = (
            xp.nonzero((count == nearest.shape[1]) & (count < len(self.v)))[0] if nearest.size else count[:0]
        )
        last = nearest[rows, -1]
        self.bound[rows] = self.matrix.pairs(rows, last) - self.v[last]

    def _forget(self) -> None:
        """Free all rows and columns."""
        self.edge[:] = -1
        self.owner[:] = -1

    def _mean_slack(self) -> float:
        """Mean difference between the reduced cost of a candidate and that of the best in its row."""
        if not len(self.indices):
            return 0.0
        return float((self.values - self.v[self.indices] - self._least()[self.rows]).mean())

    def _share(self, limits: tuple[int, float]) -> tuple[int, int]:
        """Convert limits: rounds, and a share of rows to a number."""
        return limits[0], int(limits[1] * len(self.edge))

    def _bid(self, epsilon: int | float, bound: NDArray | None, rounds: int, few: int) -> int:
        """Rounds of bids, by default without price limits; returns the number of free rows."""
        bound = array_module(self.v).full_like(self.v, self.never) if bound is None else bound
        self.stats["bids"] += self.on.bid(*self._pairs(), bound, epsilon, rounds, few)
        return int((self.edge < 0).sum())

    def search(self, free: NDArray[np.int32] | None) -> int:
        """Augmenting paths from all free rows; returns a row without a path, or -1."""
        if self.is_square:
            # A jump above the reduced cost of every pair, unless the search ends at the first such row.
            highest = 2 * self.largest + float(self.v.max()) - float(self.v.min()) + 1
            jump = self.v.dtype.type(highest if self.patience else 0)
            counts, stuck = self.on.augment(*self._pairs(), jump)
        else:
            scanned, stuck = self._sparse().augment(*self._optional_pairs(), free)
            counts = {"scanned": scanned}
        for name, count in counts.items():
            self.stats[name] = self.stats.get(name, 0) + count
        return stuck

    def violators(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Columns of each row that violate its dual most."""
        return self.matrix.nearest_of_rows(self.v, self._least() - self._rounding(), most)

    def _rounding(self) -> float:
        """Rounding error of real reduced costs, below which a violation is ignored."""
        return self.usual and 1e-14 * min(self.largest, max(self.usual, float(abs(self.v).max())))

    def add(self, nearest: NDArray[np.int32], count: NDArray[np.int32]) -> None:
        """Add pairs to the candidates."""
        pairs = (self.indptr, self.rows, self.indices)
        self._set_candidates(*self.on.added(nearest, count, *pairs, self.edge))

    def release(self) -> NDArray[np.int32]:
        """Free the rows whose pair is no longer their best choice; returns all free rows."""
        xp = array_module(self.v)
        while True:
            least = self._least()
            matched = xp.nonzero(self.edge >= 0)[0]
            held = self.indices[self.edge[matched]]
            loose = self.values[self.edge[matched]] - self.v[held] > least[matched] + self._rounding()
            self._free(matched[loose], held[loose])
            if self.is_square or not loose.any():
                break
        return xp.nonzero((self.edge < 0) & (least < self.row_unmatched))[0].astype(np.int32)

    def search_everywhere(self, matrix: DenseMatrix, start: Answer | None) -> NDArray[np.int32]:
        """Augmenting paths over all pairs, for a perfect matching, starting from `start` or from the core.

        Raises
        ------
        ValueError
            If some row cannot be matched.
        """
        from .. import matrix_cpu

        col_of_row, loose = self.col_of_row(), np.ones(1, bool)
        if start is not None:
            col_of_row, self.v = start.col_of_row, start.col_dual
            self.owner[col_of_row] = np.arange(len(col_of_row))
        while loose.any():
            u = np.full(len(col_of_row), self.never)
            matrix.lower_to_slack(self.v, u)
            matched = np.nonzero(col_of_row >= 0)[0]
            held = col_of_row[matched]
            loose = matrix.pairs(matched, held) - self.v[held] > u[matched] + self._rounding()
            col_of_row[matched[loose]] = -1
            self._free(matched[loose], held[loose])
            if self.is_square:
                break
        free = np.nonzero(col_of_row < 0)[0].astype(np.int32)
        scanned, stuck = matrix_cpu.augment(matrix.values, self.never, self.v, self.owner, col_of_row, free)
        self.stats["scanned"] += scanned
        if stuck >= 0:
            raise ValueError(infeasible(stuck))
        return col_of_row

    def col_of_row(self) -> NDArray[np.int32]:
        """Column of each row, -1 if none."""
        xp = array_module(self.v)
        if not len(self.indices):
            return xp.full(len(self.edge), -1, np.int32)
        return xp.where(self.edge >= 0, self.indices[self.edge], np.int32(-1))

    def answer(self, col_of_row: NDArray[np.int32]) -> Answer:
        stats = self.stats | {"candidates": len(self.indices)}
        # Shifted so that no dual is above 0, as the certificate of a perfect matching requires.
        col_dual = self.v - max(self.v.max(), 0) if self.is_square else self.v
        found = Answer(col_of_row, col_dual, stats)
        return at_device(found) if self.answer_on_device and not self.is_square else found

    def _sparse(self) -> Any:
        """The kernels for problems in which rows and columns may stay unmatched."""
        return kernels("outbid.assignment.bid_and_augment", self.v)

    def _pairs(self) -> tuple:
        """The arrays for the kernels of perfect matchings."""
        return (self.indptr, self.indices, self.values, self.v, self.owner, self.edge)

    def _optional_pairs(self) -> tuple:
        """The arrays for the kernels of problems with optional rows and columns."""
        pairs = (self.indptr, self.indices, self.values, self.row_unmatched, self.never)
        return (*pairs, self.v, self.owner, self.edge)

    def _least(self) -> NDArray:
        """Least reduced cost of each row among its candidates and staying unmatched."""
        least = self.row_unmatched.copy()
        self.on.lower_to_slack(self.indptr, self.indices, self.values, self.v, least)
        return least

    def _free(self, rows: NDArray, cols: NDArray) -> None:
        """Remove pairs from the matching."""
        self.edge[rows] = -1
        self.owner[cols] = -1
        if not self.is_square:
            self.v[cols] = self.col_unmatched[cols]


def at_device(answer: Answer) -> Answer:
    """Copy an answer from the host to the GPU."""
    return Answer(to_device(answer.col_of_row), to_device(answer.col_dual), answer.stats)


def infeasible(row: int) -> str:
    """The error of an infeasible problem, with advice."""
    return (
        f"The problem is infeasible: not every row can be matched (row {row} is left over). "
        "Allow more pairs, or give unmatched costs."
    )
