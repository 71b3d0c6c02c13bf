"""The auction of Vasconcelos & Rosenhahn: all free rows bid at once, a column takes its highest bidder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from .._arrays import array_module, kernels, to_host
from .dense import readable
from .points import matrix_of, stored_costs
from .problem import AssignmentProblem, DenseCosts, SparseCosts, forbidden
from .scales import largest_cost
from .solver import AbstractAssignmentSolver, Answer

_ROUNDS_A_CALL = 10_000
"""A kernel cannot be interrupted; so many rounds later the computation can."""
_SAMPLE, _LEAST_SAMPLE = 8, 10
"""Rough duals begin with one of so many rows and columns, if they are at least so many."""
_FIRST, _SAMPLED, _ROUGH = 0.4, 0.01, 0.25
"""ε of rough duals as a share of the spread of the costs: the first at most, that after a sample, the last
times n."""


@dataclass(frozen=True)
class Auction(AbstractAssignmentSolver):
    r"""Bertsekas' auction in synchronous rounds, as Vasconcelos & Rosenhahn (2009) laid it out for GPUs.

    In the bidding kernel every free row i finds its best and second-best column, by :math:`c_{ij} - v_j`,
    and bids their difference plus ε on the best (equation 10). In the assignment kernel every column goes to
    its highest bidder (equation 11); its former row is free again. A column once taken stays taken, so the
    auction ends when no row is free. The cost is then at most nε above the optimum. The smaller side bids.

    ε scaling, which the paper does not have, runs the auction with a large ε first and keeps the prices. It
    needs prices of all columns to be free of bounds: problems with optional rows and columns, or with more
    columns than rows, are then written as square ones, with a second copy of all pairs at cost 0. With a
    fixed ε they need none: a column nobody bid for keeps the price it began with, and a row that would rather
    stay unmatched buys a column of its own.

    Parameters
    ----------
    epsilon : float, optional
        The last ε, in units of cost. By default as small as proves the optimum: below 1/n for integers,
        half of the door's tolerance for real costs. Integers that spread over 2**60 / (n² + n) or more leave
        no room for that; then a small gap may remain, and the status says so.
    scaling : float
        Divisor of ε from one auction to the next; 1 is the paper's fixed ε.
    most_rounds : int
        Rounds in all, after which the auction is given up.

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
            # The same proof with no dual above 0, as the certificate wants them for a perfect matching.
            v = v - v.max()
        else:
            v = v[:cols] - v.max() + problem.unmatched()[1]
        return Answer(col_of_row, v, sale.stats)

    def works_on_device(self, problem: AssignmentProblem) -> bool:  # noqa: ARG002
        """All problems."""
        return True

    def proves(self, problem: AssignmentProblem) -> bool:
        """Whether ε may be as small as a proof needs: always, unless integers spread too far."""
        size = sum(problem.shape)
        return not problem.is_integer or _room(2 * int(largest_cost(problem)), size) > size

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


def rough_duals(problem: AssignmentProblem) -> NDArray:
    """(C,) duals with which a square matrix's perfect matching is nearly tight; cheap, also for hard costs.

    A sample of rows and columns is auctioned first. From its row duals u every column gets the largest dual
    that is feasible for the sample, min_i (c_ij - u_i). With those the whole is auctioned, until ε is small
    enough to show which pairs may matter.

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
    """Duals after auctions from given ones, or from 0, with ε from a share of the spread to a rough one."""
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
    """Costs, prices and holders; integer costs are multiplied so that an ε of 1 is below 1/n."""

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
        """An auction with the duals of the one before.

        Raises
        ------
        RuntimeError
            If it takes too many rounds.
        """
        on = kernels("outbid.assignment.auction", self.values)
        number = self.v.dtype.type
        self.col_of_row[:] = -1
        owner = array_module(self.v).full(len(self.v), -1, np.int32)
        given = (self.low, number(self.scale), self.v, self.col_of_row, owner)
        left = 1
        while left:
            # A bid below the spacing of real duals would change none, for ever.
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
        """Duals in units of cost. Of integer costs they are integers that prove the optimum.

        With an ε below 1/n some residue modulo the scale is no dual's. Rounding down from there, no two
        duals change their difference by 1 - ε or more, so that every row's column stays its best.
        """
        if not self.is_integer:
            return self.v
        residue = np.unique(to_host(self.v % self.scale))
        unused = np.setdiff1d(np.arange(min(self.scale, len(residue) + 1)), residue)
        return (self.v - (int(unused[0]) if len(unused) else 0)) // self.scale


def _room(spread: int, rows: int) -> int:
    """The largest factor of integer costs: duals may fall to minus 2n times the spread."""
    return 2**61 // ((spread + 1) * 2 * rows)


def _with_own_columns(problem: AssignmentProblem) -> SparseCosts:
    """The problem as a perfect matching of R rows and C + R columns, the last ones a row's own.

    Columns begin at what they cost unmatched.
    """
    rows, cols = problem.shape
    i, j, value = _helpful_pairs(problem)
    row_unmatched, col_unmatched = problem.unmatched()
    own = array_module(i).arange(rows)
    pairs = (i, own), (j, cols + own), (value - col_unmatched[j], row_unmatched)
    return _sparse(*pairs, (rows, rows + cols))


def _squared(problem: AssignmentProblem) -> SparseCosts:
    """The problem as a perfect matching of R + C rows and columns.

    Behind the rows stand copies of the columns, behind the columns copies of the rows. A row that stays
    unmatched takes its own copy, a column its own; the copies of matched ones take each other, at cost 0.
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
    """Rows, columns and costs, of the type of the duals, of the pairs that a matching may want."""
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
    """Pairs in any order as `SparseCosts`, columns ascending."""
    xp = array_module(row[0])
    i, j = xp.concatenate(row), xp.concatenate(col)
    order = xp.argsort(i * shape[1] + j)
    indptr = xp.zeros(shape[0] + 1, np.int64)
    indptr[1:] = xp.cumsum(xp.bincount(i, minlength=shape[0]))
    return SparseCosts(indptr, j[order].astype(np.int32), xp.concatenate(value)[order], shape)


def _refuse_infeasible(costs: DenseCosts | SparseCosts) -> None:
    """An auction without end is one in which no perfect matching exists."""
    if isinstance(costs, DenseCosts) and costs.extremes[1] < np.inf:
        return
    pairs = costs.sparse()
    ones = np.ones(len(pairs.indices), np.int8)
    graph = csr_array((ones, to_host(pairs.indices), to_host(pairs.indptr)), shape=costs.shape)
    matched = maximum_bipartite_matching(graph, perm_type="column")
    if (matched < 0).any():
        raise ValueError(
            "The problem is infeasible: not every row can be matched "
            f"(row {int(np.argmin(matched))} is left over). Allow more pairs, or give unmatched costs."
        )


def _row_duals(costs: SparseCosts, v: NDArray) -> NDArray:
    """min_j (c_ij - v_j) of square sparse costs, in which every row has a pair."""
    u = array_module(v).full(len(v), forbidden(v.dtype))
    on = kernels("outbid.assignment.certificate", v)
    on.lower_to_slack(costs.indptr, costs.indices, costs.values, v, u)
    return u
