"""The auction of Vasconcelos & Rosenhahn: all free rows bid at once, a column takes its highest bidder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from .._arrays import kernels
from .problem import AssignmentProblem, DenseCosts, SparseCosts, forbidden
from .solver import AbstractAssignmentSolver, Answer

_ROUNDS_A_CALL = 10_000
"""A kernel cannot be interrupted; so many rounds later the computation can."""


@dataclass(frozen=True)
class Auction(AbstractAssignmentSolver):
    r"""Bertsekas' auction in synchronous rounds, as Vasconcelos & Rosenhahn (2009) laid it out for GPUs.

    In the bidding kernel every free row i finds its best and second-best column, by :math:`c_{ij} - v_j`,
    and bids their difference plus ε on the best. In the assignment kernel every column goes to its highest
    bidder; whoever held it is free again. A column once taken stays taken, so the auction ends when no row
    is free. The cost is then at most nε above the optimum.

    ε scaling, which the paper does not have, runs the auction with a large ε first and keeps the prices. It
    needs prices of all columns to be free of bounds: problems with optional rows and columns, or with more
    columns than rows, are written as square ones, with a second copy of all pairs at cost 0.

    Parameters
    ----------
    epsilon : float, optional
        The last ε, in units of cost. By default as small as proves the optimum: below 1/n for integers,
        half of the door's tolerance for real costs.
    scaling : float
        Divisor of ε from one auction to the next; 1 is the paper's fixed ε.
    most_rounds : int
        Rounds in all, after which the auction is given up.

    References
    ----------
    C. N. Vasconcelos, B. Rosenhahn: Bipartite graph matching computation on GPU. EMMCVPR 2009.

    Examples
    --------
    >>> from outbid.tracker.assign import assign
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> answer = assign(AssignmentProblem(costs), Auction())
    >>> answer.col_of_row.tolist(), answer.gap
    ([1, 0, 2], 0)
    """

    epsilon: float | None = None
    scaling: float = 5.0
    most_rounds: int = 1 << 40

    def compute(self, problem: AssignmentProblem) -> Answer:
        rows, cols = problem.shape
        if rows == 0 or cols == 0:
            if rows and problem.is_perfect:
                raise ValueError("The problem is infeasible: there are rows but no columns.")
            return Answer(np.full(rows, -1, np.int32), problem.unmatched()[1])
        is_square = problem.is_perfect and rows == cols
        costs = problem.stored_costs if is_square else _squared(problem)
        if isinstance(costs, DenseCosts) and np.isinf(costs.values.max()):
            costs = costs.sparse()
        if isinstance(costs, SparseCosts) and problem.is_perfect:
            _refuse_infeasible(costs)
        sale = _Sale(costs, problem.is_integer)
        for epsilon in self._epsilons(sale):
            sale.hold(epsilon, self.most_rounds)
        v, col_of_row = sale.col_dual(), sale.col_of_row
        if is_square:
            # The same proof with no dual above 0, as the certificate wants them for a perfect matching.
            return Answer(col_of_row, v - max(v.max(), 0), sale.stats)
        return Answer(
            np.where(col_of_row[:rows] < cols, col_of_row[:rows], -1).astype(np.int32),
            v[:cols] + _row_duals(costs, v)[rows:],
            sale.stats,
        )

    def _epsilons(self, sale: _Sale) -> list[int | float]:
        """From large to small, in the units of the sale."""
        last = sale.smallest_epsilon if self.epsilon is None else self.epsilon * sale.scale
        if sale.is_integer:
            last = max(1, int(last))
        epsilons = [last]
        while self.scaling > 1 and epsilons[-1] * self.scaling < sale.spread / 2:
            larger = epsilons[-1] * self.scaling
            epsilons.append(int(np.ceil(larger)) if sale.is_integer else larger)
        return epsilons[::-1]


class _Sale:
    """Square costs, prices and holders; integer costs are multiplied so that an ε of 1 is below 1/n."""

    def __init__(self, costs: DenseCosts | SparseCosts, is_integer: bool) -> None:
        self.is_integer = is_integer
        size = costs.shape[0]
        dtype = np.dtype(np.int64 if is_integer else np.float64)
        values = np.ascontiguousarray(costs.values, dtype)
        low, high = values.min(), values.max()
        self.spread = high - low
        # Duals may fall to minus 2n times the spread.
        self.scale = (
            int(max(1, min(size + 1, 2**61 // ((int(self.spread) + 1) * 2 * size)))) if is_integer else 1
        )
        self.smallest_epsilon = 1 if is_integer else max(5e-13 * max(abs(low), abs(high)), 1e-300)
        self.values = (values - low) * self.scale if is_integer else values
        self.spread *= self.scale
        self.costs = costs
        self.v = np.zeros(size, dtype)
        self.col_of_row = np.full(size, -1, np.int32)
        self.stats = {"rounds": 0, "bids": 0, "phases": 0}

    def hold(self, epsilon: int | float, most_rounds: int) -> None:
        """An auction with the duals of the one before.

        Raises
        ------
        RuntimeError
            If it takes too many rounds.
        """
        on = kernels("outbid.tracker.assign.auction", self.values)
        self.col_of_row[:] = -1
        owner = np.full_like(self.col_of_row, -1)
        never, lone = forbidden(self.v.dtype), self.spread
        given = (self.v, self.col_of_row, owner, np.asarray(epsilon, self.v.dtype)[()], 4 * never, lone)
        left = 1
        while left:
            if isinstance(self.costs, DenseCosts):
                left, rounds, bids = on.dense_rounds(self.values, *given, _ROUNDS_A_CALL)
            else:
                pairs = (self.costs.indptr, self.costs.indices, self.values)
                left, rounds, bids = on.sparse_rounds(*pairs, *given, _ROUNDS_A_CALL)
            self.stats["rounds"] += rounds
            self.stats["bids"] += bids
            if left and self.stats["rounds"] >= most_rounds:
                raise RuntimeError(
                    f"The auction was not over after {most_rounds} rounds. "
                    "Choose another solver, a larger epsilon, or raise most_rounds."
                )
        self.stats["phases"] += 1

    def col_dual(self) -> NDArray:
        """Duals in units of cost. Of integer costs they are integers that prove the optimum.

        With an ε below 1/n some residue modulo the scale is no dual's. Rounding down from there, no two
        duals change their difference by 1 - ε or more, so that every row's column stays its best.
        """
        if not self.is_integer:
            return self.v
        residue = np.unique(self.v % self.scale)
        unused = np.setdiff1d(np.arange(min(self.scale, len(residue) + 1)), residue)
        return (self.v - (int(unused[0]) if len(unused) else 0)) // self.scale


def _squared(problem: AssignmentProblem) -> SparseCosts:
    """The problem as a perfect matching of R + C rows and columns.

    Behind the rows stand copies of the columns, behind the columns copies of the rows. A row that stays
    unmatched takes its own copy, a column its own; the copies of matched ones take each other, at cost 0.
    """
    rows, cols = problem.shape
    costs = problem.stored_costs.sparse()
    row_unmatched, col_unmatched = problem.unmatched()
    i, j = costs.rows, costs.indices.astype(np.int64)
    value = costs.values.astype(col_unmatched.dtype)
    if not problem.is_perfect:
        helps = value < row_unmatched[i] + col_unmatched[j]
        i, j, value = i[helps], j[helps], value[helps]
    own = np.arange(0 if problem.is_perfect else rows)
    other = np.arange(cols)
    row = np.concatenate([i, own, rows + other, rows + j])
    col = np.concatenate([j, cols + own, other, cols + i])
    every = np.concatenate([value, row_unmatched[own], col_unmatched, np.zeros_like(value)])
    order = np.lexsort((col, row))
    count = np.bincount(row, minlength=rows + cols)
    indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    return SparseCosts(indptr, col[order].astype(np.int32), every[order], (rows + cols, rows + cols))


def _refuse_infeasible(costs: SparseCosts) -> None:
    """An auction without end is one in which no perfect matching exists."""
    ones = np.ones(len(costs.indices), np.int8)
    graph = csr_array((ones, costs.indices, costs.indptr), shape=costs.shape)
    matched = maximum_bipartite_matching(graph, perm_type="column")
    if (matched < 0).any():
        raise ValueError(
            "The problem is infeasible: not every row can be matched "
            f"(row {int(np.argmin(matched))} is left over). Allow more pairs, or give unmatched costs."
        )


def _row_duals(costs: SparseCosts | DenseCosts, v: NDArray) -> NDArray:
    """min_j (c_ij - v_j) of square sparse costs, in which every row has a pair."""
    pairs = costs.sparse()
    return np.minimum.reduceat(pairs.values - v[pairs.indices], pairs.indptr[:-1]).astype(v.dtype)
