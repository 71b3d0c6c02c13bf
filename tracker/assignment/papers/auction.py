"""The auction of Vasconcelos & Rosenhahn: all free rows bid at once; each column takes the highest bid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from ...compute.arrays import array_module, kernels, to_host
from ..matrix import readable
from ..points import matrix_of, stored_costs
from ..problem import AssignmentProblem, DenseCosts, SparseCosts, forbidden
from ..scales import largest_cost
from ..solver import AbstractAssignmentSolver, Answer

_ROUNDS_A_CALL = 10_000
"""Rounds per kernel call: Ctrl-C acts only between calls."""
_SAMPLE, _LEAST_SAMPLE = 8, 10
"""Rough duals start from a sample of one in this many rows and columns, if there are at least so many."""
_FIRST, _SAMPLED, _ROUGH = 0.4, 0.01, 0.25
"""ε for rough duals, relative to the spread of the costs: limit of the first ε, first ε after a sample, and
last ε times n."""


@dataclass(frozen=True)
class Auction(AbstractAssignmentSolver):
    r"""Bertsekas' auction in synchronous rounds, as Vasconcelos & Rosenhahn (2009) laid it out for GPUs.

    In the bidding kernel, each free row i finds its best and second-best column by :math:`c_{ij} - v_j`, and
    bids their difference plus ε on the best one (equation 10). In the assignment kernel, each column goes to
    its highest bidder (equation 11), and its former row becomes free. A column that has been taken remains
    taken, so the auction ends when no row is free. The cost is then at most nε above the optimum. The smaller
    side bids.

    ε scaling, which is not in the paper, first runs the auction with a large ε and keeps the prices. It
    requires that column prices have no bounds. So problems with optional rows and columns, or with more
    columns than rows, are converted to square ones, which contain a second copy of all pairs at cost 0. A
    fixed ε does not need this copy: a column without a bid keeps its initial price, and each row has an
    additional column that stands for staying unmatched.

    Parameters
    ----------
    epsilon : float, optional
        The last ε, in units of cost. The default is small enough to prove optimality: below 1/n for integers,
        and half of the tolerance of `assign` for real costs. Integers with a spread of 2**60 / (n² + n) or
        more do not allow such an ε; then a small gap may remain, and the status says so.
    scaling : float
        Factor by which ε decreases from one auction to the next; 1 is the fixed ε of the paper.
    most_rounds : int
        Largest total number of rounds, after which the auction fails.

    References
    ----------
    C. N. Vasconcelos, B. Rosenhahn: Bipartite graph matching computation on GPU. EMMCVPR 2009.

    Examples
    --------
    >>> from outbid.assignment import assign
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> answer = assign(AssignmentProblem(costs), Auction())
    >>> answer.col_of_row.tolist(), answer.gap
    ([1, 0, 2], 0)
    """

    epsilon: float | None = None
    scaling: float = 5.0
    most_rounds: int = 1 << 40

    is_near_linear = False

    def compute(self, problem: AssignmentProblem) -> Answer:
        xp = array_module(problem.array)
        rows, cols = problem.shape
        if rows == 0 or cols == 0:
            if rows and problem.is_perfect:
                raise ValueError("The problem is infeasible: there are rows but no columns.")
            return Answer(xp.full(rows, -1, np.int32), problem.unmatched()[1])
        is_squared = self.scaling > 1 and not (problem.is_perfect and rows == cols)
        costs: DenseCosts | SparseCosts
        if is_squared:
            costs = pairs = _squared(problem)
        else:
            costs = stored_costs(problem) if problem.is_perfect else _with_own_columns(problem)
        if problem.is_perfect:
            _refuse_infeasible(costs)
        sale = _Sale(costs, problem.is_integer)
        for epsilon in self._epsilons(sale):
            sale.hold(epsilon, self.most_rounds)
        v, col_of_row = sale.col_dual(), sale.col_of_row[:rows]
        col_of_row = xp.where(col_of_row < cols, col_of_row, -1).astype(np.int32)
        if is_squared:
            v = v[:cols] + _row_duals(pairs, v)[rows:]
        elif problem.is_perfect:
            # Shifted so that no dual is above 0, as the certificate of a perfect matching requires.
            v = v - v.max()
        else:
            v = v[:cols] - v.max() + problem.unmatched()[1]
        return Answer(col_of_row, v, sale.stats)

    def works_on_device(self, problem: AssignmentProblem) -> bool:  # noqa: ARG002
        """GPU kernels exist for all problems."""
        return True

    @staticmethod
    def rough_duals(problem: AssignmentProblem) -> NDArray:
        """See the function `rough_duals`."""
        return rough_duals(problem)

    def proves(self, problem: AssignmentProblem) -> bool:
        """Whether ε can be small enough for a proof: always, unless the spread of integers is too large."""
        size = sum(problem.shape)
        return not problem.is_integer or _room(2 * int(largest_cost(problem)), size) > size

    def _epsilons(self, sale: _Sale) -> list[int | float]:
        """The sequence of ε from large to small, in scaled units."""
        last = sale.smallest_epsilon if self.epsilon is None else self.epsilon * sale.scale
        if sale.is_integer:
            last = max(1, int(last))
        epsilons = [last]
        while self.scaling > 1 and epsilons[-1] * self.scaling < sale.spread / 2:
            larger = epsilons[-1] * self.scaling
            epsilons.append(int(np.ceil(larger)) if sale.is_integer else larger)
        return epsilons[::-1]


def rough_duals(problem: AssignmentProblem) -> NDArray:
    """(C,) duals for which a perfect matching of a square matrix is nearly tight; cheap even for hard costs.

    The first auction uses a sample of rows and columns. From its row duals u, each column gets the largest
    dual that is feasible for the sample, min_i (c_ij - u_i). An auction of the whole problem starts from
    these duals and ends when ε is small enough to show which pairs may matter.

    Raises
    ------
    ValueError
        If no perfect matching exists.
    """
    costs = stored_costs(problem)
    assert isinstance(costs, DenseCosts)
    _refuse_infeasible(costs)
    size, xp = costs.shape[0], array_module(costs.values)
    if size < _SAMPLE * _LEAST_SAMPLE or costs.extremes[1] == np.inf:
        return _auctioned(costs, problem.is_integer, None, _FIRST)
    some = xp.arange(size // _SAMPLE) * size // (size // _SAMPLE)
    rows = DenseCosts(xp.ascontiguousarray(costs.values[some]))
    sample = DenseCosts(xp.ascontiguousarray(rows.values[:, some]))
    v = _auctioned(sample, problem.is_integer, None, _FIRST)
    u = xp.full(len(some), forbidden(v.dtype))
    matrix_of(sample).lower_to_slack(v, u)
    _, _, v = matrix_of(rows).nearest_of_cols(u, xp.full(size, forbidden(v.dtype)), 1)
    return _auctioned(costs, problem.is_integer, v - v.max(), _SAMPLED)


def _auctioned(costs: DenseCosts, is_integer: bool, v: NDArray | None, most: float) -> NDArray:
    """Duals after auctions that start from given duals, or from 0, with ε relative to the spread of costs."""
    sale = _Sale(costs, is_integer)
    if v is not None:
        sale.v = v * sale.v.dtype.type(sale.scale)
    shares = [_ROUGH / len(sale.v)]
    while shares[-1] * Auction.scaling < most:
        shares.append(shares[-1] * Auction.scaling)
    for share in reversed(shares):
        epsilon = max(share * sale.spread, sale.smallest_epsilon)
        sale.hold(int(epsilon) if is_integer else epsilon, Auction.most_rounds)
    return sale.v // sale.scale if is_integer else sale.v


class _Sale:
    """Costs, prices and owners; integer costs are scaled so that ε = 1 stands for less than 1/n."""

    def __init__(self, costs: DenseCosts | SparseCosts, is_integer: bool) -> None:
        xp = array_module(costs.values)
        self.costs, self.is_integer = costs, is_integer
        dtype = np.dtype(np.int64 if is_integer else np.float64)
        self.values = readable(costs.values)
        if isinstance(costs, DenseCosts):
            low, high = costs.extremes
        else:
            low, high = self.values.min().item(), self.values.max().item()
        if high == np.inf:
            high = self.values[self.values < high].max().item()
        rows, cols = costs.shape
        spread = high - low
        self.scale = max(1, min(rows + 1, _room(int(spread), rows))) if is_integer else 1
        self.smallest_epsilon = 1 if is_integer else max(5e-13 * max(abs(low), abs(high)), 1e-300)
        self.low = dtype.type(int(low) if is_integer else 0)
        self.spread = spread * self.scale
        self.v = xp.zeros(cols, dtype)
        self.col_of_row = xp.full(rows, -1, np.int32)
        self.stats = {"rounds": 0, "bids": 0, "phases": 0}

    def hold(self, epsilon: int | float, most_rounds: int) -> None:
        """Run an auction, starting from the duals of the previous one.

        Raises
        ------
        RuntimeError
            If it needs too many rounds.
        """
        on = kernels("outbid.assignment.papers.auction", self.values)
        number = self.v.dtype.type
        self.col_of_row[:] = -1
        owner = array_module(self.v).full(len(self.v), -1, np.int32)
        given = (self.low, number(self.scale), self.v, self.col_of_row, owner)
        left = 1
        while left:
            # A bid below the floating-point spacing would never change a dual.
            least = 0 if self.is_integer else 4 * np.spacing(-float(self.v.min()))
            limits = number(max(epsilon, least)), 4 * forbidden(self.v.dtype), number(self.spread)
            rounds = min(_ROUNDS_A_CALL, most_rounds - self.stats["rounds"])
            if isinstance(self.costs, DenseCosts):
                left, rounds, bids = on.dense_rounds(self.values, *given, *limits, rounds)
            else:
                pairs = (self.costs.indptr, self.costs.indices, self.values)
                left, rounds, bids = on.sparse_rounds(*pairs, *given, *limits, rounds)
            self.stats["rounds"] += rounds
            self.stats["bids"] += bids
            if left and self.stats["rounds"] >= most_rounds:
                raise RuntimeError(
                    f"The auction was not over after {most_rounds} rounds. "
                    "Choose another solver, a larger epsilon, or raise most_rounds."
                )
        self.stats["phases"] += 1

    def col_dual(self) -> NDArray:
        """Duals in units of cost. For integer costs, they are integers that prove optimality.

        With ε below 1/n, some residue modulo the scale does not occur among the duals. If duals are rounded
        down at this residue, no difference of two duals changes by 1 - ε or more, so the column of each row
        remains its best.
        """
        if not self.is_integer:
            return self.v
        residue = np.unique(to_host(self.v % self.scale))
        unused = np.setdiff1d(np.arange(min(self.scale, len(residue) + 1)), residue)
        return (self.v - (int(unused[0]) if len(unused) else 0)) // self.scale


def _room(spread: int, rows: int) -> int:
    """The largest scale factor of integer costs: duals may fall to minus 2n times the spread."""
    return 2**61 // ((spread + 1) * 2 * rows)


def _with_own_columns(problem: AssignmentProblem) -> SparseCosts:
    """The problem as a perfect matching of R rows and C + R columns; each row has one additional column.

    Column duals start at the unmatched costs.
    """
    rows, cols = problem.shape
    i, j, value = _helpful_pairs(problem)
    row_unmatched, col_unmatched = problem.unmatched()
    own = array_module(i).arange(rows)
    pairs = (i, own), (j, cols + own), (value - col_unmatched[j], row_unmatched)
    return _sparse(*pairs, (rows, rows + cols))


def _squared(problem: AssignmentProblem) -> SparseCosts:
    """The problem as a perfect matching of R + C rows and columns.

    The rows are followed by copies of the columns, and the columns by copies of the rows. An unmatched row or
    column is matched with its own copy. The copies of matched rows and columns are matched with each other at
    cost 0.
    """
    rows, cols = problem.shape
    i, j, value = _helpful_pairs(problem)
    row_unmatched, col_unmatched = problem.unmatched()
    xp = array_module(i)
    own, other = xp.arange(0 if problem.is_perfect else rows), xp.arange(cols)
    return _sparse(
        (i, own, rows + other, rows + j),
        (j, cols + own, other, cols + i),
        (value, row_unmatched[own], col_unmatched, xp.zeros_like(value)),
        (rows + cols, rows + cols),
    )


def _helpful_pairs(problem: AssignmentProblem) -> tuple[NDArray, NDArray, NDArray]:
    """Rows, columns and costs (with the dtype of the duals) of the pairs that can improve a matching."""
    costs = stored_costs(problem).sparse()
    row_unmatched, col_unmatched = problem.unmatched()
    i, j = costs.rows, costs.indices.astype(np.int64)
    value = costs.values.astype(col_unmatched.dtype)
    if problem.is_perfect:
        return i, j, value
    helps = value < row_unmatched[i] + col_unmatched[j]
    return i[helps], j[helps], value[helps]


def _sparse(
    row: tuple[NDArray, ...], col: tuple[NDArray, ...], value: tuple[NDArray, ...], shape: tuple[int, int]
) -> SparseCosts:
    """Sort pairs into `SparseCosts` with ascending columns."""
    xp = array_module(row[0])
    i, j = xp.concatenate(row), xp.concatenate(col)
    order = xp.argsort(i * shape[1] + j)
    indptr = xp.zeros(shape[0] + 1, np.int64)
    indptr[1:] = xp.cumsum(xp.bincount(i, minlength=shape[0]))
    return SparseCosts(indptr, j[order].astype(np.int32), xp.concatenate(value)[order], shape)


def _refuse_infeasible(costs: DenseCosts | SparseCosts) -> None:
    """Raise an error if no perfect matching exists: the auction would never end."""
    if isinstance(costs, DenseCosts) and costs.extremes[1] < np.inf:
        return
    pairs = costs.sparse()
    # SciPy before 1.14 matches graphs with indices of 32 bits alone; more pairs need those of 64.
    index = np.int32 if len(pairs.indices) < np.iinfo(np.int32).max else np.int64
    indices, indptr = (to_host(each).astype(index) for each in (pairs.indices, pairs.indptr))
    graph = csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=costs.shape)
    matched = maximum_bipartite_matching(graph, perm_type="column")
    if (matched < 0).any():
        raise ValueError(
            "The problem is infeasible: not every row can be matched "
            f"(row {int(np.argmin(matched))} is left over). Allow more pairs, or give unmatched costs."
        )


def _row_duals(costs: SparseCosts, v: NDArray) -> NDArray:
    """min_j (c_ij - v_j) for square sparse costs in which each row has at least one pair."""
    u = array_module(v).full(len(v), forbidden(v.dtype))
    on = kernels("outbid.assignment.certificate", v)
    on.lower_to_slack(costs.indptr, costs.indices, costs.values, v, u)
    return u
