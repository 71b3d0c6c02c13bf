"""The Hungarian algorithms of Date & Nagi: the classical variant and the alternating tree variant."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, free_device_memory, free_memory, kernels, on_device, to_host
from ...compute.threads import Team
from ...compute.timing import Stopwatch
from ..matrix import readable
from ..points import matrix_of, stored_costs
from ..problem import AssignmentProblem, DenseCosts, SparseCosts, forbidden
from ..solver import AbstractAssignmentSolver, Answer

_WAITING, _ENDS, _PATHS, _ROUNDS, _UPDATES, _SCANNED, _SEARCH_TIME, _UPDATE_TIME = range(8)
"""Indices of the counters in `Forest.words`."""
_NARROW = 2**28
"""Bound below which integers and their slacks are stored as int32."""
_NEVER = {"i4": 2**31 - 1, "i8": 2**59, "f8": np.inf}
"""By dtype, a value above the slack of every allowed pair."""
_FIVES = 10
"""Number of groups of five iterations that are counted separately."""


@dataclass(frozen=True)
class Hungarian(AbstractAssignmentSolver):
    r"""Exact; searches from all unassigned rows at once and augments along vertex-disjoint paths in parallel.

    Each iteration lists the unassigned rows (Algorithm 2), searches from all of them along pairs with zero
    slack until it reaches unassigned columns, keeps one such column per tree (5) and augments along its path
    (6). If a search reaches none, the duals change by the least slack :math:`\theta` between the trees and
    the other columns, so that further pairs get zero slack. After each update, the classical variant finds
    these pairs in the whole matrix and stores them as CSR for the search (3, 7, 8). The tree variant stores
    the least slack of each column and extends the existing trees (4, 9).

    In the paper, a dual update adds :math:`\theta/2` to rows of trees and subtracts it from other rows, and
    does the opposite for columns. Here rows and columns of trees change by :math:`\theta` and the others do
    not change: the slacks are the same and remain integers. A fixed rule decides all races, so the result
    depends neither on threads nor on the device. The matrix need not be square: if there are more columns
    than rows, unassigned columns keep the dual 0. If rows can stay unmatched at :math:`r_i`, a pair costs
    :math:`\min(c_{ij} - s_j, r_i)`.

    Parameters
    ----------
    variant : {"tree", "classical"}
    workers : int, optional
        Number of threads on the CPU, by default one per available processor. Results do not depend on it.

    References
    ----------
    K. Date, R. Nagi: GPU-accelerated Hungarian algorithms for the Linear Assignment Problem. Parallel
    Computing 57 (2016) 52-72.

    Examples
    --------
    >>> from outbid.assignment import assign
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> answer = assign(AssignmentProblem(costs), Hungarian("classical"))
    >>> answer.col_of_row.tolist(), answer.gap
    ([1, 0, 2], 0)
    >>> answer.stats["paths"], answer.stats["initial_assignments"]
    (3, 2)
    """

    variant: str = "tree"
    workers: int | None = None

    needs_matrix = True
    is_near_linear = False

    def works_on_device(self, problem: AssignmentProblem) -> bool:  # noqa: ARG002
        """GPU kernels exist for all problems; sparse costs are converted to a matrix."""
        return True

    def with_workers(self, workers: int) -> Hungarian:
        return self if self.workers else replace(self, workers=workers)

    def compute(self, problem: AssignmentProblem) -> Answer:
        if self.variant not in ("tree", "classical"):
            raise ValueError(f"There is no variant {self.variant!r}. Choose one of: tree, classical.")
        return answered(problem, self._searched)

    def _searched(self, problem: AssignmentProblem) -> Matching:
        with Team(self.workers or processors()) as team:
            search = _Search(to_match_all_rows(problem), team)
            if self.variant == "tree":
                search.tree()
            else:
                search.classical()
        return Matching(search.forest.col_of_row, search.forest.col_dual, search.stats())


class Matching(NamedTuple):
    """A matching of all rows, the column duals and the counters."""

    col_of_row: NDArray[np.int32]
    col_dual: NDArray
    stats: dict[str, int | float]


def answered(problem: AssignmentProblem, search: Callable[[AssignmentProblem], Matching]) -> Answer:
    """Solve by a search that matches all rows; there must be at least as many columns."""
    rows, cols = problem.shape
    if not problem.is_perfect and rows > cols:
        return _exchanged(problem, answered(problem.transposed(), search))
    if rows == 0:
        return Answer(array_module(problem.array).empty(0, np.int32), problem.unmatched()[1])
    found = search(problem)
    # If rows and columns are equally many, no column needs the dual 0.
    v = found.col_dual.astype(problem.unmatched()[1].dtype)
    v -= v.max() if rows == cols else 0
    return Answer(_without_unmatched(problem, found.col_of_row), v + problem.unmatched()[1], found.stats)


@dataclass(frozen=True, eq=False)
class Forest:
    """Matching, duals, and trees rooted at unassigned rows; in the same memory as the costs.

    Parameters
    ----------
    row_dual, col_dual : (R,), (C,) arrays
        int32 or int64 for integer costs, float64 for real ones.
    col_of_row, row_of_col : (R,), (C,) int32 arrays
        -1 where unassigned.
    waiting : (R,) int32 array
        Unassigned rows; the first `words[0]` elements are valid.
    joined, roots : (R,) int32 arrays
        Rows of all trees in the order in which they joined, and the roots of their trees.
    entries, bases : (C,) int64 and dual arrays
        On a GPU, indexed by the column through which a row joined: the row with its root, and its dual minus
        the sum of dual updates at that time.
    row_before : (R,) int32 array
        The row from which the column of each row was reached.
    col_before, col_root : (C,) int32 arrays
        For each unassigned column that was reached: the row from which it was reached, and the root of that
        tree.
    ends : (C,) int32 array
        Unassigned columns that were reached; the first `words[1]` elements are valid.
    end_of_root : (R,) int32 array
        The one of these columns that each tree keeps.
    claim, gathered, covered : (C,) int64, int32 and bool arrays
        For the classical variant: the row that may take each column, and the columns that trees reached.
    words : (3104,) int64 array
        Counters of one iteration; from the 16th on, messages between the blocks of a GPU.
    """

    row_dual: NDArray
    col_dual: NDArray
    col_of_row: NDArray[np.int32]
    row_of_col: NDArray[np.int32]
    waiting: NDArray[np.int32]
    joined: NDArray[np.int32]
    roots: NDArray[np.int32]
    entries: NDArray[np.int64]
    bases: NDArray
    row_before: NDArray[np.int32]
    col_before: NDArray[np.int32]
    col_root: NDArray[np.int32]
    ends: NDArray[np.int32]
    end_of_root: NDArray[np.int32]
    claim: NDArray[np.int64]
    gathered: NDArray[np.int32]
    covered: NDArray[np.bool_]
    words: NDArray[np.int64]


def unmatched_forest(row_dual: NDArray, col_dual: NDArray) -> Forest:
    """A forest without pairs and trees, in the memory of the duals."""
    xp, rows, cols = array_module(row_dual), len(row_dual), len(col_dual)
    of_rows, of_cols = iter(xp.full((6, rows), -1, np.int32)), iter(xp.full((5, cols), -1, np.int32))
    return Forest(
        row_dual=row_dual, col_dual=col_dual, col_of_row=next(of_rows), row_of_col=next(of_cols),
        waiting=next(of_rows), joined=next(of_rows), roots=next(of_rows), row_before=next(of_rows),
        entries=xp.empty(cols, np.int64), bases=xp.empty(cols, row_dual.dtype), col_before=next(of_cols),
        col_root=next(of_cols), ends=next(of_cols), end_of_root=next(of_rows), gathered=next(of_cols),
        claim=xp.empty(cols, np.int64), covered=xp.empty(cols, bool), words=xp.empty(3104, np.int64),
    )  # fmt: skip


class _Search:
    """The stages of the algorithm, with counters and times."""

    def __init__(self, costs: NDArray, team: Team) -> None:
        self.team = team
        self.on: Any = kernels("outbid.assignment.papers.hungarian", costs)
        self.clock = Stopwatch(costs)
        self.costs, self.forest = self._reduced(costs)
        self.clock.lap("initial_reduction")
        self.waiting, self.waiting_first = len(costs), len(costs)
        self.paths: list[int] = []
        self.totals = np.zeros(16, np.int64)

    def _reduced(self, costs: NDArray) -> tuple[NDArray, Forest]:
        """Algorithm 1. If columns outnumber rows, some stay unassigned, so all column duals stay 0."""
        xp, (rows, cols) = array_module(costs), costs.shape
        low, high = xp.empty((2, rows), costs.dtype)
        limit = np.finfo(costs.dtype).max if costs.dtype.kind == "f" else np.iinfo(costs.dtype).max
        self.on.row_extremes(costs, low, high, costs.dtype.type(limit), self.team)
        types = types_of(costs.dtype, max(abs(float(low.min())), abs(float(high.max()))))
        key, self.never, self.tie = types.key, types.never, types.tie
        if types.is_narrow:
            costs = costs.astype(key, copy=False)
        if bool((low >= self.never).any()):
            refuse(int(xp.argmax(low)))
        row_dual, col_dual = low.astype(key), xp.zeros(cols, key)
        if rows == cols:
            self.on.column_reduction(costs, row_dual, col_dual, self.team)
            col_dual[col_dual >= self.never] = 0
        return costs, unmatched_forest(row_dual, col_dual)

    def tree(self) -> None:
        """Tree variant: a search continues, through dual updates, until it reaches a free column."""
        while self.waiting:
            self._check()
            self.on.grow_trees(self.costs, self.forest, self.never, self.tie, self.team)
            self.clock.lap("search")
            self._augment()

    def classical(self) -> None:
        """Classical variant: after a search without a free column, update the duals and compress again."""
        pairs = None
        while self.waiting:
            if pairs is None:
                pairs = self.on.compress(
                    self.costs, self.forest, tie_of_duals(self.tie, self.forest), self.team
                )
                self.clock.lap("compress")
            self._check()
            self.on.forward_pass(*pairs, self.forest)
            self.clock.lap("forward_pass")
            if int(self.forest.words[_ENDS]):
                self._augment()
                continue
            self.on.dual_update(self.costs, self.forest, self.never, self.team)
            self.clock.lap("dual_update")
            self._count(_UPDATES)
            pairs = None

    def _check(self) -> None:
        self.on.optimality_check(self.forest)
        self.clock.lap("optimality_check")

    def _augment(self) -> None:
        self.on.reverse_pass(self.forest)
        self.clock.lap("reverse_pass")
        self.on.augmentation_pass(self.forest, self.team)
        self.clock.lap("augmentation_pass")
        self.paths.append(self._count(_PATHS))
        self.waiting -= self.paths[-1]

    def _count(self, wanted: int) -> int:
        """Add up the counters of an iteration; raise an error if the required one is zero."""
        words = to_host(self.forest.words[:16])
        if not words[wanted]:
            refuse(int(self.forest.waiting[0]))
        if not self.totals[_UPDATES]:
            self.waiting_first = self.waiting if words[_UPDATES] else 0
        self.totals += words
        return int(words[wanted])

    def stats(self) -> dict[str, int | float]:
        """Counters, and seconds of each stage, as in Tables 2 and 3 of the paper."""
        seconds = self.clock.seconds()
        if "search" in seconds:
            search, update = (int(self.totals[place]) for place in (_SEARCH_TIME, _UPDATE_TIME))
            share = seconds.pop("search") / max(search + update, 1)
            seconds |= {"forward_pass": share * search, "dual_update": share * update}
        counts = counts_of(self.paths, self.totals, len(self.costs) - self.waiting_first)
        return counts | {f"{name}_seconds": value for name, value in seconds.items()}


class Types(NamedTuple):
    """Dtype of slacks, a value above the slack of every allowed pair, and the tolerance for zero."""

    key: np.dtype
    never: Any
    tie: Any
    is_narrow: bool


def types_of(dtype: np.dtype, largest: float) -> Types:
    """Types for costs of a dtype with absolute values of at most `largest`.

    Examples
    --------
    >>> types_of(np.dtype(np.int64), 1000.0).key
    dtype('int32')
    """
    key: Any = np.dtype(np.float64 if dtype.kind == "f" else np.int64)
    is_narrow = key.kind == "i" and largest < _NARROW
    if is_narrow:
        key = np.dtype(np.int32)
    # Above the rounding error of every slack; slacks are differences of rounded sums.
    tie = key.type(2e-13 * largest if key.kind == "f" else 0)
    return Types(key, key.type(_NEVER[key.str[1:]]), tie, is_narrow)


def tie_of_duals(tie: Any, forest: Forest) -> Any:
    """The largest slack that counts as zero: the rounding error for a pair with exactly zero slack."""
    if not tie:
        return tie
    duals = forest.row_dual, forest.col_dual
    return type(tie)(2e-13 * sum(float(abs(dual).max()) for dual in duals))


def counts_of(paths: list[int], totals: NDArray[np.int64], initial: int) -> dict[str, int | float]:
    """Counters of a search: `paths` per iteration, `totals` as in `Forest.words`, rows matched initially."""
    counts: dict[str, int | float] = {
        "iterations": len(paths),
        "paths": sum(paths),
        "initial_assignments": initial,
        "dual_updates": int(totals[_UPDATES]),
        "passes": int(totals[_ROUNDS]),
        "rows_scanned": int(totals[_SCANNED]),
    }
    later = paths[int(np.searchsorted(np.cumsum(paths), initial)) + (initial > 0) :]
    fives = [sum(later[start : start + 5]) for start in range(0, len(later), 5)]
    return counts | {f"paths_{5 * k + 1}_to_{5 * k + 5}": count for k, count in enumerate(fives[:_FIVES])}


def refuse(row: int) -> NoReturn:
    """Raise the error about a row that cannot be matched."""
    raise ValueError(
        f"The problem is infeasible: not every row can be matched (row {row} is left over). "
        "Allow more pairs, or give unmatched costs."
    )


def to_match_all_rows(problem: AssignmentProblem) -> NDArray:
    """Costs of an equivalent problem in which all rows are matched; staying unmatched is part of the costs.

    Raises
    ------
    MemoryError
        If they do not fit into memory.
    """
    rows, cols = problem.shape
    stored = stored_costs(problem)
    if problem.is_perfect and isinstance(stored, DenseCosts):
        return readable(stored.values)
    row_unmatched, col_unmatched = problem.unmatched()
    xp, dtype = array_module(col_unmatched), col_unmatched.dtype
    needed = 2 * dtype.itemsize * rows * cols
    if needed > (free_device_memory() if on_device(col_unmatched) else free_memory()):
        raise MemoryError(
            f"The Hungarian algorithm needs all pairs, here {needed / 2**30:.1f} GiB. "
            "Choose solver bid_and_augment for sparse problems."
        )
    if isinstance(stored, DenseCosts):
        costs = stored.values.astype(dtype, order="C")
    else:
        costs = xp.full((rows, cols), forbidden(dtype))
        costs[stored.rows, stored.indices] = stored.values
    if not problem.is_perfect:
        costs -= col_unmatched
        xp.minimum(costs, row_unmatched[:, None], out=costs)
    return costs


def _without_unmatched(problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> NDArray[np.int32]:
    """Remove the pairs that stand for staying unmatched."""
    if problem.is_perfect:
        return col_of_row
    row_unmatched, col_unmatched = problem.unmatched()
    xp, stored = array_module(col_of_row), stored_costs(problem)
    if isinstance(stored, DenseCosts):
        rows = xp.arange(len(col_of_row))
        cost = stored.values[rows, col_of_row]
    else:
        taken = stored.indices == col_of_row[stored.rows]
        cost = xp.full(len(col_of_row), forbidden(row_unmatched.dtype))
        cost[stored.rows[taken]] = stored.values[taken]
    return xp.where(cost < row_unmatched + col_unmatched[col_of_row], col_of_row, np.int32(-1))


def _exchanged(problem: AssignmentProblem, other: Answer) -> Answer:
    """Transpose an answer to the transposed problem; column duals are computed from row duals."""
    xp, (row_unmatched, v) = array_module(problem.array), problem.unmatched()
    col_of_row = xp.full(problem.shape[0], -1, np.int32)
    matched = xp.nonzero(other.col_of_row >= 0)[0]
    col_of_row[other.col_of_row[matched]] = matched
    u = xp.minimum(other.col_dual, row_unmatched)
    v = v.copy()
    if isinstance(problem.costs, SparseCosts):
        transposed, on = problem.costs.transposed(), kernels("outbid.assignment.certificate", v)
        on.lower_to_slack(transposed.indptr, transposed.indices, readable(transposed.values), u, v)
    else:
        matrix_of(problem.costs.transposed()).lower_to_slack(u, v)
    return Answer(col_of_row, v, other.stats)


def processors() -> int:
    """Number of processors available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
