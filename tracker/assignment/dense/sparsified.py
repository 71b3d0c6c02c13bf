"""Solve dense problems as sparse ones: few candidates per row and column, then a check of all other pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...compute.arrays import on_device
from ..bid_and_augment import BidAndAugment
from ..matrix import DenseMatrix
from ..points import with_stored_costs
from ..problem import AssignmentProblem, SparseCosts, on_host
from ..solver import AbstractAssignmentSolver, Answer
from ..variants import solver_named
from .core import Core, at_device, infeasible


@dataclass(frozen=True)
class Sparsified(AbstractAssignmentSolver):
    """Exact for dense problems and points; reads the matrix a few times, other solvers hundreds of times.

    The candidates are the pairs of least reduced cost in each row and each column. The kernels of
    `BidAndAugment` solve this sparse problem exactly. A pass over the whole matrix then searches for pairs
    whose cost is below the sum of their duals. If there are none, the answer is optimal for the whole matrix.
    Otherwise these pairs become candidates, and only rows whose pair is no longer their best choice search
    again (Volgenant's core-oriented approach, 1996). For square perfect matchings, a scaled auction comes
    first, because its prices give better candidates; for points on a GPU, it also uses far pairs. If the
    candidates admit no matching, or if too many passes find new pairs, an auction over all pairs gives rough
    duals for another choice of candidates. If this does not suffice either, the whole matrix is searched: on
    the host by augmenting paths that start from an auction, on a GPU by `Auction`, or by `Hungarian` if the
    integers are too large for an auction to prove optimality. Sparse problems are passed to `BidAndAugment`.
    Matrices that can be solved by sorting (`monge.py`) are recognised first.

    Parameters
    ----------
    of_row, of_col : int
        Number of candidates per row and per column; it affects the time, never the cost.
    rounds : int
        Number of passes that add candidates; after these, paths over the whole matrix are searched.

    Examples
    --------
    >>> import numpy as np
    >>> from outbid.assignment import DenseCosts, assign
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
            return self._at_home(problem)
        core = Core(problem, problem.costs)
        answer = core.in_order() or self.from_candidates(problem, core)
        if answer is None and core.is_square:
            core.begin_again(_auction().rough_duals(problem), self.rounds)
            answer = self.from_candidates(problem, core)
        return answer or self._everywhere(problem, core)

    def from_candidates(self, problem: AssignmentProblem, core: Core) -> Answer | None:
        """Choose candidates with the current duals, solve, and add pairs while some violate the duals."""
        core.choose_candidates(self.of_row, self.of_col)
        stuck, passes = core.solve(self.of_row), 0
        while passes < self.rounds or not problem.is_perfect:
            if stuck >= 0 and passes >= (core.patience if core.is_square else 0):
                break
            passes += 1
            core.stats["passes"] += 1
            nearest, count = core.violators(self.of_row * passes)
            if not count.any():
                if stuck >= 0:
                    raise ValueError(infeasible(stuck))
                return core.answer(core.col_of_row())
            core.add(nearest, count)
            stuck = core.search(core.release())
        return None

    def works_on_device(self, problem: AssignmentProblem) -> bool:
        """GPU kernels exist for all matrices and points, and for sparse costs if `BidAndAugment` has them."""
        return not isinstance(problem.costs, SparseCosts) or BidAndAugment().works_on_device(problem)

    def _at_home(self, problem: AssignmentProblem) -> Answer:
        """Sparse and empty problems."""
        stored = with_stored_costs(problem)
        if not on_device(problem.array) or BidAndAugment().works_on_device(stored):
            return BidAndAugment().compute(stored)
        return at_device(BidAndAugment().compute(on_host(stored)))

    def _everywhere(self, problem: AssignmentProblem, core: Core) -> Answer:
        """Where candidates fail, paths from their duals may be slow as well, but rarely an auction."""
        stored = with_stored_costs(problem)
        if on_device(problem.array):
            whole = _auction() if _auction().proves(stored) else solver_named("hungarian")
            found = whole.compute(stored)
            return Answer(found.col_of_row, found.col_dual, {**core.stats, **found.stats})
        # An auction needs free prices.
        start = _auction().compute(stored) if core.is_square else None
        return core.answer(core.search_everywhere(DenseMatrix(stored.array), start))


def _auction() -> Any:
    """The solver of last resort, which is found by its name: tracking never imports it."""
    return solver_named("auction")
