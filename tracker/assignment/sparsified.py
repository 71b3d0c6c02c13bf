"""Dense problems as sparse ones: few candidates a row and column, then all other pairs priced out."""

from __future__ import annotations

from dataclasses import dataclass

from .._arrays import on_device
from .auction import Auction, rough_duals
from .bid_and_augment import BidAndAugment
from .core import Core, at_device, infeasible
from .dense import DenseMatrix
from .hungarian import Hungarian
from .points import with_stored_costs
from .problem import AssignmentProblem, SparseCosts, on_host
from .solver import AbstractAssignmentSolver, Answer


@dataclass(frozen=True)
class Sparsified(AbstractAssignmentSolver):
    """Exact for dense problems and points; looks at all pairs a handful of times, where others do hundreds.

    The pairs of least reduced cost of every row and column are candidates; `BidAndAugment`'s kernels solve
    that sparse problem exactly. One pass over the whole matrix then looks for pairs whose cost is below the
    sum of their duals. Where there is none the answer is optimal for the whole matrix; where there are, they
    become candidates, and only rows whose pair is no longer their best search again (Volgenant's
    core-oriented approach, 1996). Square perfect matchings begin with a scaled auction, whose prices
    choose better candidates; among points on a GPU far pairs take part. If candidates admit no matching,
    or if pairs keep coming, rough duals of an auction over all pairs choose others. If these do not
    suffice either the whole matrix is searched: on the host from an auction, on a GPU by `Auction`, or by
    `Hungarian` where integers leave no room for an auction's proof. Sparse problems go to `BidAndAugment`
    as they are. Matrices that an order solves (`monge.py`) are known at once.

    Parameters
    ----------
    of_row, of_col : int
        Candidates of each row and of each column; they change the time, never the cost.
    rounds : int
        Passes that add candidates before the rest is left to paths over the whole matrix.

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
            core.begin_again(rough_duals(problem), self.rounds)
            answer = self.from_candidates(problem, core)
        return answer or self._everywhere(problem, core)

    def from_candidates(self, problem: AssignmentProblem, core: Core) -> Answer | None:
        """Candidates by the duals as they are, solved, and more of them while others break the duals."""
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
        """Matrices and points of every kind; sparse costs that `BidAndAugment` takes."""
        return not isinstance(problem.costs, SparseCosts) or BidAndAugment().works_on_device(problem)

    def _at_home(self, problem: AssignmentProblem) -> Answer:
        """Sparse and empty problems."""
        stored = with_stored_costs(problem)
        if not on_device(problem.array) or BidAndAugment().works_on_device(stored):
            return BidAndAugment().compute(stored)
        return at_device(BidAndAugment().compute(on_host(stored)))

    def _everywhere(self, problem: AssignmentProblem, core: Core) -> Answer:
        """What defeats candidates may defeat paths from where they led, yet hardly an auction."""
        stored = with_stored_costs(problem)
        if on_device(problem.array):
            whole = Auction() if Auction().proves(stored) else Hungarian()
            found = whole.compute(stored)
            return Answer(found.col_of_row, found.col_dual, {**core.stats, **found.stats})
        # An auction needs free prices.
        start = Auction().compute(stored) if core.is_square else None
        return core.answer(core.search_everywhere(DenseMatrix(stored.array), start))
