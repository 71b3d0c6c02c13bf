"""The candidates of a dense problem, their matching and their duals."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module, kernels, on_device, to_device, to_host
from .bid_and_augment import BidAndAugment
from .dense import DenseMatrix
from .monge import solved_by_order
from .points import matrix_of
from .problem import AssignmentProblem, DenseCosts, PointCosts, forbidden
from .scales import cost_scales
from .solver import Answer

_EPSILONS = (0.3, 0.06, 0.012)
"""Of the auctions before the bids, as shares of the candidates' mean slack."""
_AUCTION = (300, 0.01)
"""Rounds of an auction, and the share of free rows at which it ends."""
_FALL, _LEAST = 0.2, 0.03
"""Where there are far candidates, epsilon falls from their mean slack by this factor, down to this share of
that of the near ones."""
_AUCTION_WITH_FAR = (2000, 30)
"""Rounds of such an auction, and the number of free rows at which it ends."""
_TURNS, _MANY = 10, 0.06
"""How often an auction may choose more candidates, and the share of free rows for which it does."""
_FAR = 0.5
"""Candidates are chosen anew if an auction moves the duals by this share of their mean slack."""
_BIDS = (300, 0.001)
"""The same of the bids without epsilon, whose free rows are left for paths."""


class Core:
    """The candidates, the matching and the duals of one computation.

    On a GPU, where the costs are there and the problem is a square perfect matching; else on the host, from
    where a matrix on the GPU is asked. `matrix` makes what answers questions about all pairs.
    """

    def __init__(
        self,
        problem: AssignmentProblem,
        costs: DenseCosts | PointCosts,
        matrix: Callable[[DenseCosts | PointCosts], Any] = matrix_of,
    ) -> None:
        rows, cols = problem.shape
        # In a square perfect matching any dual will do for a free column: none stays free.
        self.is_square = problem.is_perfect and rows == cols
        self.is_perfect = problem.is_perfect
        self.matrix = matrix(costs)
        self.row_unmatched, self.col_unmatched = problem.unmatched()
        self.answer_on_device = on_device(problem.array)
        if self.answer_on_device and not self.is_square:
            asked: Any = import_module(".dense_gpu", __package__)
            self.matrix = asked.AskedFromHost(self.matrix)
            self.row_unmatched, self.col_unmatched = map(to_host, (self.row_unmatched, self.col_unmatched))
        self.never = forbidden(self.col_unmatched.dtype)
        self.usual, self.largest = cost_scales(problem)
        xp = array_module(self.col_unmatched)
        self.on: Any = kernels("outbid.assignment.perfect", self.col_unmatched)
        of_points = isinstance(costs, PointCosts)
        self.patience = self.on.PATIENCE_WITH_POINTS if of_points else self.on.PATIENCE
        self.far = min(self.on.FAR if of_points else 0, cols - 1)
        self.v = self.col_unmatched.copy()
        self.owner = xp.full(cols, -1, np.int32)
        self.edge = xp.full(rows, -1, np.int64)
        self.indices = np.empty(0, np.int32)
        self.stats: dict[str, int | float] = {"bids": 0, "scanned": 0, "passes": 0}

    def in_order(self) -> Answer | None:
        """The answer, if rows and columns can be put in an order that gives it."""
        if not self.is_square:
            return None
        answer = solved_by_order(self.matrix, self.row_unmatched, self._rounding())
        return answer and Answer(answer.col_of_row, answer.col_dual, {**self.stats, **answer.stats})

    def begin_again(self, v: NDArray, patience: int) -> None:
        """Free all rows and columns, and take other duals."""
        self.v, self.patience = v, patience
        self.stats["attempts"] = 2
        self._forget()

    def choose_candidates(self, of_row: int, of_col: int) -> None:
        """The least reduced costs of every row and column, from the duals of a reduction."""
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
        """Bids and paths among the candidates; returns a row that has no path, or -1."""
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
        self._bid(0, None, *self._share(_BIDS))
        return self.search(None)

    def _auctions(self, of_row: int) -> bool:
        """Auctions with less and less epsilon; whether the candidates suffice for paths."""
        v, slack = self.v.copy(), self._mean_slack()
        for share in _EPSILONS:
            epsilon = self.v.dtype.type(share * slack)
            if epsilon > 0 and not self._auction(epsilon, of_row) and not self.patience:
                return False
        # Where prices have moved far from the reduction's they know better which pairs may matter.
        if slack > 0 and float(((self.v - v) / slack).std()) > _FAR:
            self._choose_again(of_row)
        return True

    def _auction(self, epsilon: int | float, of_row: int) -> bool:
        """Rounds of bids; rows get more pairs while many find theirs too dear. Whether that helped."""
        self._forget()
        for _ in range(_TURNS):
            if self._bid(epsilon, self.bound, *self._share(_AUCTION)) < _MANY * len(self.edge):
                self._bid(epsilon, None, *self._share(_AUCTION))
                return True
            self._choose_again(of_row)
        return False

    def _auctions_with_far(self, of_row: int) -> None:
        """Auctions to the last rows, whose far pairs show how dear a whole region must become."""
        slack = self._mean_slack()
        self._add_far()
        epsilon = self._mean_slack()
        while slack > 0 and epsilon > _LEAST * slack:
            self._forget()
            self._bid(epsilon, None, *_AUCTION_WITH_FAR)
            self._add_nearest(of_row)
            epsilon *= _FALL

    def _add_far(self) -> None:
        """Columns at fixed distances in the order of points, so that there always is a perfect matching."""
        xp, size = array_module(self.v), len(self.edge)
        steps = 1 + (xp.arange(self.far) * 2_654_435_761 + size // 2) % (size - 1)
        far = (xp.arange(size)[:, None] + steps) % size
        self.add(far.astype(np.int32), xp.full(size, self.far, np.int32))

    def _choose_again(self, of_row: int) -> None:
        """More candidates, by the duals as they are, and how dear they may become."""
        self._bound_by(*self._add_nearest(of_row))

    def _add_nearest(self, of_row: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        nearest, count = self.matrix.nearest_of_rows(self.v, self.row_unmatched, of_row)
        self.add(nearest, count)
        return nearest, count

    def _bound_by(self, nearest: NDArray, count: NDArray) -> None:
        """Reduced costs above which a row may have better pairs than its candidates."""
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
        """By how much a candidate is dearer than its row's best, on average."""
        if not len(self.indices):
            return 0.0
        return float((self.values - self.v[self.indices] - self._least()[self.rows]).mean())

    def _share(self, limits: tuple[int, float]) -> tuple[int, int]:
        """Rounds, and how many rows a share of them is."""
        return limits[0], int(limits[1] * len(self.edge))

    def _bid(self, epsilon: int | float, bound: NDArray | None, rounds: int, few: int) -> int:
        """Rounds of bids, by default without bounds; how many rows are left."""
        bound = array_module(self.v).full_like(self.v, self.never) if bound is None else bound
        self.stats["bids"] += self.on.bid(*self._pairs(), bound, epsilon, rounds, few)
        return int((self.edge < 0).sum())

    def search(self, free: NDArray[np.int32] | None) -> int:
        """Paths from free rows; returns a row that has none, or -1."""
        if self.is_square:
            # More than any pair's reduced cost, unless nobody would look for others.
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
        """Of each row the columns with which it breaks its dual most."""
        return self.matrix.nearest_of_rows(self.v, self._least() - self._rounding(), most)

    def _rounding(self) -> float:
        """By how much real reduced costs may be off; rounding makes no candidates."""
        return self.usual and 1e-14 * min(self.largest, max(self.usual, float(abs(self.v).max())))

    def add(self, nearest: NDArray[np.int32], count: NDArray[np.int32]) -> None:
        """Make pairs candidates."""
        pairs = (self.indptr, self.rows, self.indices)
        self._set_candidates(*self.on.added(nearest, count, *pairs, self.edge))

    def release(self) -> NDArray[np.int32]:
        """Free the rows whose pair is no longer their best; returns all that must search."""
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
            loose = matrix.pairs(matched, held) - self.v[held] > u[matched] + self._rounding()
            col_of_row[matched[loose]] = -1
            self._free(matched[loose], held[loose])
            if self.is_square:
                break
        free = np.nonzero(col_of_row < 0)[0].astype(np.int32)
        scanned, stuck = dense_cpu.augment(matrix.values, self.never, self.v, self.owner, col_of_row, free)
        self.stats["scanned"] += scanned
        if stuck >= 0:
            raise ValueError(infeasible(stuck))
        return col_of_row

    def col_of_row(self) -> NDArray[np.int32]:
        """Column that each row holds, -1 if none."""
        xp = array_module(self.v)
        if not len(self.indices):
            return xp.full(len(self.edge), -1, np.int32)
        return xp.where(self.edge >= 0, self.indices[self.edge], np.int32(-1))

    def answer(self, col_of_row: NDArray[np.int32]) -> Answer:
        stats = self.stats | {"candidates": len(self.indices)}
        # The same proof with no dual above 0, as the certificate wants them for a perfect matching.
        col_dual = self.v - max(self.v.max(), 0) if self.is_square else self.v
        found = Answer(col_of_row, col_dual, stats)
        return at_device(found) if self.answer_on_device and not self.is_square else found

    def _sparse(self) -> Any:
        """The kernels of problems in which rows and columns may be left over."""
        return kernels("outbid.assignment.bid_and_augment", self.v)

    def _pairs(self) -> tuple:
        """What the kernels of perfect matchings work on."""
        return (self.indptr, self.indices, self.values, self.v, self.owner, self.edge)

    def _optional_pairs(self) -> tuple:
        """What the other kernels work on."""
        pairs = (self.indptr, self.indices, self.values, self.row_unmatched, self.never)
        return (*pairs, self.v, self.owner, self.edge)

    def _least(self) -> NDArray:
        """Each row's least reduced cost among its candidates and staying unmatched."""
        least = self.row_unmatched.copy()
        self.on.lower_to_slack(self.indptr, self.indices, self.values, self.v, least)
        return least

    def _free(self, rows: NDArray, cols: NDArray) -> None:
        """Undo pairs."""
        self.edge[rows] = -1
        self.owner[cols] = -1
        if not self.is_square:
            self.v[cols] = self.col_unmatched[cols]


def at_device(answer: Answer) -> Answer:
    """An answer that was found on the host, in the GPU's memory."""
    return Answer(to_device(answer.col_of_row), to_device(answer.col_dual), answer.stats)


def infeasible(row: int) -> str:
    """What is wrong, and what to do."""
    return (
        f"The problem is infeasible: not every row can be matched (row {row} is left over). "
        "Allow more pairs, or give unmatched costs."
    )
