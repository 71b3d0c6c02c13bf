"""Deep Greedy Switching of Naiem & El-Beltagy, sequential and parallel, as Roverso et al. describe it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays import free_memory, kernels
from .dense import DenseMatrix
from .problem import AssignmentProblem, DenseCosts, SparseCosts, largest_number
from .solver import AbstractAssignmentSolver, Answer

_SWITCHES_A_CALL = 256
"""So many switches later the clock is read."""
_SWEEPS = 12
"""Passes over the matrix that look for duals."""


@dataclass(frozen=True)
class GreedySwitching(AbstractAssignmentSolver):
    """A heuristic that has a complete matching at any time and improves it by exchanges of two.

    Every row finds the column, and every column the row, with which an exchange would save most (difference
    evaluation, Algorithm 2). The sequential variant then does the best exchange known and evaluates again the
    two rows and columns in it (Algorithm 1); the parallel one does all that share no row and no column with
    an earlier one (Algorithms 3, 4). Both repeat until no exchange saves anything.

    The gap comes from duals that a few sweeps of Bellman and Ford find for the matching: it is an upper bound
    on the error, often many times larger than it.

    Parameters
    ----------
    parallel : bool
        Algorithm 3 in place of 1. On one core it takes longer.
    start : {"random", "greedy"}
        The first matching: a permutation, or row after row the nearest free column.
    seed : int
        Of the permutation.
    deadline : float, optional
        Seconds after which the matching at hand is the answer; its duals take some passes over the matrix
        more.

    References
    ----------
    R. Roverso, A. Naiem, M. El-Beltagy, S. El-Ansary: GPU-based heuristic solver for linear sum assignment
    problems under real-time constraints. arXiv:1110.2200.

    Examples
    --------
    >>> from outbid.tracker.assign import assign
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> assign(AssignmentProblem(costs), GreedySwitching()).primal_cost
    5
    """

    parallel: bool = False
    start: str = "random"
    seed: int = 0
    deadline: float | None = None

    def compute(self, problem: AssignmentProblem) -> Answer:
        if self.start not in ("random", "greedy"):
            raise ValueError(f"There is no start {self.start!r}. Choose one of: random, greedy.")
        begun = time.monotonic()
        rows, cols = problem.shape
        costs, row_out, col_out, forbidden = _full(problem)
        job, agent = np.full(rows, -1, np.int32), np.full(cols, -1, np.int32)
        on = kernels("outbid.tracker.assign.greedy_switching", costs)
        if self.start == "greedy":
            on.take_nearest(costs, row_out, col_out, job, agent)
        else:
            rng, size = np.random.default_rng(self.seed), min(rows, cols)
            chosen = rng.permutation(max(rows, cols))[:size].astype(np.int32)
            pairs = (np.arange(size), chosen) if rows <= cols else (chosen, np.arange(size))
            job[pairs[0]], agent[pairs[1]] = pairs[1], pairs[0]
        stats = self._switch(begun, costs, row_out, col_out, job, agent) if min(rows, cols) else {}
        _check_pairs(problem, costs, row_out, col_out, job, forbidden)
        return Answer(job, _col_duals(costs, row_out, col_out, job), stats)

    def _switch(
        self, begun: float, costs: NDArray, row_out: NDArray, col_out: NDArray, job: NDArray, agent: NDArray
    ) -> dict[str, int | float]:
        """Switches until none saves anything or time is over. Written: job, agent."""
        on = kernels("outbid.tracker.assign.greedy_switching", costs)
        by_col = np.ascontiguousarray(costs.T)
        row_held = np.where(job >= 0, costs[np.arange(len(job)), job], row_out)
        col_held = np.where(agent >= 0, by_col[np.arange(len(agent)), agent], col_out)
        choices = [part for held in (row_held, col_held) for part in (_none(held), np.zeros_like(held))]
        waits = np.zeros(len(job), bool), np.zeros(len(agent), bool)
        state = (costs, by_col, row_out, col_out, job, agent, row_held, col_held, *choices)
        stats: dict[str, int | float] = {"evaluations": 0, "rounds": 0, "switches": 0}
        improved = True
        while improved and not self._is_over(begun):
            for wait in waits:
                wait[:] = False
            on.evaluate_all(*state, *waits)
            stats["evaluations"] += 1
            improved, goes_on = False, True
            while goes_on and not self._is_over(begun):
                if self.parallel:
                    on.check_conflicts(job, agent, *choices, *waits)
                    done, tried = on.switch_at_once(*state, *waits), 1
                    on.evaluate_all(*state, *waits)
                    goes_on = any(gain.any() for gain in choices[1::2])
                else:
                    tried, done = on.switch_best_first(*state, _SWITCHES_A_CALL)
                    goes_on = tried == _SWITCHES_A_CALL
                stats["rounds"] += tried
                stats["switches"] += done
                improved |= done > 0
        return stats

    def _is_over(self, begun: float) -> bool:
        return self.deadline is not None and time.monotonic() - begun > self.deadline


def _none(held: NDArray) -> NDArray[np.int32]:
    return np.full(len(held), -2, np.int32)


def _check_pairs(
    problem: AssignmentProblem,
    costs: NDArray,
    row_out: NDArray,
    col_out: NDArray,
    job: NDArray,
    forbidden: float,
) -> None:
    """Refuse what is no perfect matching; leave unmatched what a pair does not help. Written: job."""
    matched = np.nonzero(job >= 0)[0]
    pair_cost = costs[matched, job[matched]]
    if not problem.is_perfect:
        job[matched[pair_cost >= row_out[matched] + col_out[job[matched]]]] = -1
    elif (pair_cost >= forbidden).any() or len(matched) < len(job):
        row = int(matched[np.argmax(pair_cost)]) if len(matched) == len(job) else int(np.argmin(job))
        raise ValueError(
            f"Greedy switching left row {row} without a column that it may have. "
            "Choose an exact solver, or give unmatched costs."
        )


def _full(problem: AssignmentProblem) -> tuple[NDArray, NDArray, NDArray, int | float]:
    """(R,C) costs, (R,) and (C,) unmatched costs, all finite, and the cost of a forbidden pair."""
    row_out, col_out = problem.unmatched()
    dtype = col_out.dtype
    given = [problem.stored_costs.values, col_out] + ([] if problem.is_perfect else [row_out])
    largest = max(largest_number(part) for part in given)
    # Dearer than any matching, yet sums of some are still numbers.
    forbidden = dtype.type(4 * (int(largest) + 1) * (sum(problem.shape) + 1))
    if problem.is_perfect:
        row_out = np.full_like(row_out, forbidden)
    if isinstance(problem.stored_costs, DenseCosts):
        costs = np.ascontiguousarray(problem.stored_costs.values, dtype)
        return np.where(np.isinf(costs), forbidden, costs), row_out, col_out, forbidden
    return _filled(problem.stored_costs, forbidden), row_out, col_out, forbidden


def _filled(costs: SparseCosts, forbidden: np.generic) -> NDArray:
    """Sparse costs as a matrix.

    Raises
    ------
    ValueError
        If it does not fit into memory twice.
    """
    needed = 16 * costs.shape[0] * costs.shape[1]
    if needed > 0.8 * free_memory():
        raise ValueError(
            f"Greedy switching needs all pairs, here {needed / 2**30:.1f} GiB. "
            "Choose solver bid_and_augment for sparse problems."
        )
    full = np.full(costs.shape, forbidden)
    full[costs.rows, costs.indices] = costs.values
    return full


def _col_duals(costs: NDArray, row_out: NDArray, col_out: NDArray, job: NDArray) -> NDArray:
    """Duals with which the matching is nearly tight: the best bound among some sweeps of Bellman and Ford."""
    v = col_out.copy()
    if costs.size == 0:
        return v
    by_row, by_col = DenseMatrix(costs), DenseMatrix(costs.T)
    matched = np.nonzero(job >= 0)[0]
    best, best_bound = v, None
    for _ in range(_SWEEPS):
        u = row_out.copy()
        by_row.lower_to_slack(v, u)
        bound = u.sum() + v.sum()
        if best_bound is None or bound > best_bound:
            best, best_bound = v, bound
        u[matched] = costs[matched, job[matched]] - v[job[matched]]
        lower = col_out.copy()
        by_col.lower_to_slack(u, lower)
        if np.array_equal(lower, v):
            break
        v = lower
    return best
