"""Deep Greedy Switching of Naiem & El-Beltagy, sequential and parallel, as Roverso et al. describe it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import (
    array_module,
    free_device_memory,
    free_memory,
    kernels,
    on_device,
    to_device,
    to_host,
)
from ..matrix import readable
from ..points import matrix_of
from ..problem import AssignmentProblem, DenseCosts, PointCosts, SparseCosts, on_host
from ..scales import cost_scales
from ..solver import AbstractAssignmentSolver, Answer

_SWITCHES_A_CALL = 256
"""Number of switches between readings of the clock."""
_PAIRS_A_CALL = 1 << 24, 1 << 32
"""Number of pairs between readings of the clock, on the host and on the GPU."""
_SWEEPS = 12
"""Number of passes over the matrix in search of duals."""
_SHARE = 0.8
"""Share of the time until the deadline that switching may use; the rest is for duals."""


@dataclass(frozen=True)
class GreedySwitching(AbstractAssignmentSolver):
    """A heuristic that always has a complete matching and improves it by exchanges of two columns or rows.

    Each row finds the column, and each column the row, whose exchange would save most (difference evaluation,
    Algorithm 2). The sequential variant then performs the best exchange and evaluates its two rows and two
    columns again (Algorithm 1). The parallel variant performs all exchanges that share no row or column with
    a better one (Algorithms 3, 4). Both repeat this until no exchange lowers the cost.

    The gap is computed from duals that a few Bellman-Ford sweeps find for the matching. It is an upper bound
    on the error, and often many times larger.

    Parameters
    ----------
    parallel : bool
        Whether to use Algorithm 3 in place of Algorithm 1: it is faster on a GPU, but slower on one CPU core.
    start : {"random", "greedy"}
        The first matching: a random permutation, or for each row in turn the nearest free column.
    seed : int
        Seed of the permutation.
    deadline : float, optional
        Time in seconds after which the current matching is returned. A fifth of the time is reserved for the
        duals. The certificate (one pass over all pairs) and the loading of kernels need additional time.
    evaluation : {"shared", "global"}
        Where difference evaluation on a GPU stores the values that it compares (section 5 of the paper): in
        shared memory, or in global memory with one thread per row. The answer is the same.
    mixed : bool
        For costs on a GPU: whether to evaluate on the GPU but switch on the host, as in the mixed variant of
        the paper.

    References
    ----------
    R. Roverso, A. Naiem, M. El-Beltagy, S. El-Ansary: GPU-based heuristic solver for linear sum assignment
    problems under real-time constraints. arXiv:1110.2200.

    Examples
    --------
    >>> from outbid.assignment import assign
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> assign(AssignmentProblem(costs), GreedySwitching()).primal_cost
    5
    """

    parallel: bool = False
    start: str = "random"
    seed: int = 0
    deadline: float | None = None
    evaluation: str = "shared"
    mixed: bool = False

    is_exact = False
    works_on_points = True
    needs_matrix = True
    is_near_linear = False

    def works_on_device(self, problem: AssignmentProblem) -> bool:  # noqa: ARG002
        """GPU kernels exist for all problems."""
        return True

    def compute(self, problem: AssignmentProblem) -> Answer:
        for name, given, known in (
            ("start", self.start, ("random", "greedy")),
            ("evaluation", self.evaluation, ("shared", "global")),
        ):
            if given not in known:
                raise ValueError(f"There is no {name} {given!r}. Choose one of: {', '.join(known)}.")
        xp = array_module(problem.array)
        if 0 in problem.shape:
            return Answer(xp.full(problem.shape[0], -1, np.int32), problem.unmatched()[1])
        if self.deadline is not None:
            replace(self, deadline=None).compute(_of_its_kind(problem))  # loads the kernels
        clock = _Clock(self.deadline)
        is_mixed = self.mixed and on_device(problem.array)
        switching = (_MixedSwitching if is_mixed else _Switching)(problem, self.evaluation)
        is_over = clock.is_over_by(_SHARE)
        if self.start == "greedy":
            switching.take_nearest(is_over)
        else:
            switching.take_any(np.random.default_rng(self.seed))
        stats = self._switch(switching, is_over)
        switching.refuse_or_leave_pairs()
        return Answer(*switching.job_and_col_dual(clock.is_over_by(1)), stats)

    def _switch(self, switching: _Switching, is_over: Callable[[], bool]) -> dict[str, int | float]:
        """Switch until no exchange lowers the cost or the time is over."""
        stats: dict[str, int | float] = {"evaluations": 0, "rounds": 0, "switches": 0}
        improved = True
        while improved and not is_over():
            switching.state.waits[:] = False
            switching.evaluate(is_over)
            stats["evaluations"] += 1
            improved, goes_on = False, True
            while goes_on and not is_over():
                if self.parallel:
                    tried, done = switching.on.switch_at_once(switching.state)
                    goes_on = tried > 0
                    if goes_on:
                        switching.evaluate(is_over)
                else:
                    tried, done = switching.on.switch_best_first(switching.state, _SWITCHES_A_CALL)
                    goes_on = tried == _SWITCHES_A_CALL
                stats["rounds"] += tried
                stats["switches"] += done
                stalled = switching.is_stalled()
                improved |= done > 0 and not stalled
                goes_on &= not stalled
        return stats


class _Clock:
    """A clock that starts now."""

    def __init__(self, deadline: float | None) -> None:
        self.begun, self.deadline = time.monotonic(), deadline

    def is_over_by(self, share: float) -> Callable[[], bool]:
        """A function that returns whether this share of the time is over."""
        if self.deadline is None:
            return lambda: False
        end = self.begun + share * self.deadline
        return lambda: time.monotonic() > end


class State(NamedTuple):
    """The arrays that the kernels work on.

    Parameters
    ----------
    costs, by_col : (R, C) and (C, R) arrays, or tuples
        Finite costs, and the transposed matrix. For points, a tuple: (R, D) float64 points of one side, (D,
        C) float64 coordinates of the other side, and whether distances are squared.
    row_out, col_out : (R,) and (C,) int64 or float64 arrays
        Costs of staying unmatched.
    job, agent : (R,) and (C,) int32 arrays
        Column of each row and row of each column, -1 where unmatched.
    row_held, col_held : (R,) and (C,) arrays
        Current cost of each row and each column.
    row_choice, row_gain, col_choice, col_gain : (R,) and (C,) arrays
        The best switch of each row (int32: a column, -1 for staying unmatched, -2 for none) and its saving;
        the same for each column.
    waits : (R + C,) bool array
        Whether the switch of each row, then of each column, waits for a later round.
    """

    costs: Any
    by_col: Any
    row_out: NDArray
    col_out: NDArray
    job: NDArray[np.int32]
    agent: NDArray[np.int32]
    row_held: NDArray
    col_held: NDArray
    row_choice: NDArray[np.int32]
    row_gain: NDArray
    col_choice: NDArray[np.int32]
    col_gain: NDArray
    waits: NDArray[np.bool_]


class _Switching:
    """The matching of a problem and the operations that change it, on the device of the problem."""

    def __init__(self, problem: AssignmentProblem, evaluation: str) -> None:
        xp, (rows, cols) = array_module(problem.array), problem.shape
        self.problem = problem
        self.costs, row_out, col_out, self.forbidden = _finite(problem)
        self.transposed = self.costs.transposed()
        self.state = State(
            costs=_as_kernels_read(self.costs), by_col=_as_kernels_read(self.transposed),
            row_out=row_out, col_out=col_out, row_held=row_out.copy(), col_held=col_out.copy(),
            job=xp.full(rows, -1, np.int32), agent=xp.full(cols, -1, np.int32),
            row_choice=xp.full(rows, -2, np.int32), row_gain=0 * row_out,
            col_choice=xp.full(cols, -2, np.int32), col_gain=0 * col_out,
            waits=xp.zeros(rows + cols, bool),
        )  # fmt: skip
        self.on = kernels("outbid.assignment.papers.greedy_switching", self.state.job)
        self._evaluate = getattr(self.on, f"evaluate_{evaluation}")
        pairs = _PAIRS_A_CALL[on_device(problem.array)]
        self._step = max(1, pairs // max(rows, cols))
        self._least_gain, self._cost = 2e-15 * cost_scales(problem)[0], np.inf

    def take_any(self, rng: np.random.Generator) -> None:
        """A random matching of the whole smaller side."""
        rows, cols = self.problem.shape
        chosen = rng.permutation(max(rows, cols))[: min(rows, cols)]
        order = np.arange(len(chosen))
        self._match(*((order, chosen) if rows <= cols else (chosen, order)))

    def take_nearest(self, is_over: Callable[[], bool]) -> None:
        """For each row in turn the nearest free column; after the deadline any one, if required."""
        rows, first = self.problem.shape[0], 0
        while first < rows and not is_over():
            last = min(first + self._step, rows)
            self.on.take_nearest(self.state, first, last)
            first = last
        job, agent = to_host(self.state.job), to_host(self.state.agent)
        matched = np.nonzero(job >= 0)[0]
        left = np.arange(first if self.problem.is_perfect else rows, rows)
        free = np.nonzero(agent < 0)[0][: len(left)]
        self._match(np.append(matched, left), np.append(job[matched], free))

    def _match(self, rows: NDArray, cols: NDArray) -> None:
        xp, s = array_module(self.state.job), self.state
        rows, cols = xp.asarray(rows), xp.asarray(cols)
        s.job[rows], s.agent[cols] = cols.astype(np.int32), rows.astype(np.int32)
        s.row_held[rows] = s.col_held[cols] = matrix_of(self.costs).pairs(rows, cols).astype(s.row_out.dtype)

    def evaluate(self, is_over: Callable[[], bool]) -> None:
        """Difference evaluation of all lines that do not wait, or of some of them if the time is over."""
        lines = len(self.state.waits)
        for first in range(0, lines, self._step):
            if is_over():
                return
            self._evaluate(self.state, first, min(first + self._step, lines))
        self._drop_rounding()

    def _drop_rounding(self) -> None:
        """Savings of real costs below this threshold are rounding errors and do not count."""
        if self._least_gain:
            for gain in (self.state.row_gain, self.state.col_gain):
                gain[gain <= self._least_gain] = 0

    def is_stalled(self) -> bool:
        """Whether real costs have not decreased since the last call, so that switches may cycle forever."""
        s, before = self.state, self._cost
        if self._least_gain:
            left = array_module(s.agent).where(s.agent < 0, s.col_out, 0)
            self._cost = sum(float(to_host(cost).sum()) for cost in (s.row_held, left))
        return self._cost >= before and bool(self._least_gain)

    def refuse_or_leave_pairs(self) -> None:
        """Refuse an incomplete perfect matching; otherwise unmatch pairs that do not lower the cost."""
        s = self.state
        xp = array_module(s.job)
        if not self.problem.is_perfect:
            other = xp.maximum(s.job, 0)
            s.job[(s.job >= 0) & (s.row_held >= s.row_out + s.col_out[other])] = -1
            return
        wrong = (s.job < 0) | (s.row_held >= self.forbidden)
        if wrong.any():
            raise ValueError(
                f"Greedy switching left row {int(xp.argmax(wrong))} without a column that it may have. "
                "Choose an exact solver, or give unmatched costs."
            )

    def job_and_col_dual(self, is_over: Callable[[], bool]) -> tuple[NDArray[np.int32], NDArray]:
        """The matching, and the best duals of some sweeps, for which it is nearly tight."""
        s, by_row, by_col = self.state, matrix_of(self.costs), matrix_of(self.transposed)
        xp = array_module(s.job)
        matched = xp.nonzero(s.job >= 0)[0]
        cols = s.job[matched]
        best, best_bound, v = s.col_out, None, s.col_out
        for _ in range(_SWEEPS):
            if best_bound is not None and is_over():
                break
            u = s.row_out.copy()
            by_row.lower_to_slack(v, u)
            bound = u.sum() + v.sum()
            if best_bound is None or bound > best_bound:
                best, best_bound = v, bound
            u[matched] = s.row_held[matched] - v[cols]
            lower = s.col_out.copy()
            by_col.lower_to_slack(u, lower)
            if (lower == v).all():
                break
            v = lower
        return s.job, best


class Evaluation:
    """Difference evaluation (Algorithm 2) alone, from a random matching, in one of its two forms."""

    def __init__(self, problem: AssignmentProblem, form: str = "shared") -> None:
        self._switching = _Switching(problem, form)
        self._switching.take_any(np.random.default_rng(0))

    def evaluated(self) -> NDArray:
        """(R,) saving of the best switch of each row, evaluated again."""
        self._switching.evaluate(lambda: False)
        return self._switching.state.row_gain


class _MixedSwitching(_Switching):
    """Switching on the host with difference evaluation on the GPU."""

    def __init__(self, problem: AssignmentProblem, evaluation: str) -> None:
        super().__init__(on_host(problem), evaluation)
        self.there = _Switching(problem, evaluation)

    def evaluate(self, is_over: Callable[[], bool]) -> None:
        self._copy(("waits", "job", "agent", "row_held", "col_held"), self.state, self.there.state)
        self.there.evaluate(is_over)
        self._copy(("row_choice", "row_gain", "col_choice", "col_gain"), self.there.state, self.state)

    def job_and_col_dual(self, is_over: Callable[[], bool]) -> tuple[NDArray[np.int32], NDArray]:
        self._copy(("job", "row_held"), self.state, self.there.state)
        return self.there.job_and_col_dual(is_over)

    def _copy(self, names: tuple[str, ...], source: State, target: State) -> None:
        for name in names:
            there, here = getattr(target, name), getattr(source, name)
            there[:] = to_device(here) if on_device(there) else to_host(here)


def _of_its_kind(problem: AssignmentProblem) -> AssignmentProblem:
    """A problem with two rows and columns that uses the same kernels."""
    xp, costs = array_module(problem.array), problem.costs
    if isinstance(costs, PointCosts):
        points = xp.zeros((2, costs.source.shape[1]))
        return AssignmentProblem(PointCosts(points, points, costs.metric))
    dtype = problem.unmatched()[0].dtype if isinstance(costs, SparseCosts) else costs.values.dtype
    unmatched = () if problem.is_perfect else [xp.zeros(2, cost.dtype) for cost in problem.unmatched()]
    return AssignmentProblem(DenseCosts(xp.zeros((2, 2), dtype)), *unmatched)


def _as_kernels_read(costs: DenseCosts | PointCosts) -> Any:
    if isinstance(costs, DenseCosts):
        return costs.values
    xp = array_module(costs.source)
    by_axis = xp.ascontiguousarray(costs.target.T)
    return xp.ascontiguousarray(costs.source), by_axis, costs.metric == "squared"


def _finite(
    problem: AssignmentProblem,
) -> tuple[DenseCosts | PointCosts, NDArray, NDArray, int | float]:
    """Costs of all pairs and (R,), (C,) unmatched costs, all finite; and the cost of a forbidden pair."""
    row_out, col_out = problem.unmatched()
    dtype = col_out.dtype
    # Higher than the cost of any matching, yet small enough that sums do not overflow.
    forbidden = dtype.type(4 * (int(cost_scales(problem)[1]) + 1) * (sum(problem.shape) + 1))
    xp, costs = array_module(row_out), problem.costs
    if problem.is_perfect:
        row_out = xp.full_like(row_out, forbidden)
    if isinstance(costs, SparseCosts):
        costs = _filled(costs, forbidden)
    elif isinstance(costs, DenseCosts):
        values = readable(costs.values)
        is_finite = values.dtype.kind != "f" or not xp.isinf(values.max())
        costs = DenseCosts(
            values if is_finite else xp.where(xp.isinf(values), forbidden, values.astype(dtype))
        )
    return costs, row_out, col_out, forbidden


def _filled(costs: SparseCosts, forbidden: np.generic) -> DenseCosts:
    """Sparse costs as a matrix.

    Raises
    ------
    MemoryError
        If two copies do not fit into memory.
    """
    needed = 16 * costs.shape[0] * costs.shape[1]
    if needed > 0.8 * (free_device_memory() if on_device(costs.values) else free_memory()):
        raise MemoryError(
            f"Greedy switching needs all pairs, here {needed / 2**30:.1f} GiB. "
            "Choose solver bid_and_augment for sparse problems."
        )
    full = array_module(costs.values).full(costs.shape, forbidden)
    full[costs.rows, costs.indices] = costs.values
    return DenseCosts(full)
