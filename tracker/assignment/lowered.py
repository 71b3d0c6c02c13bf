"""Problems with costs far above those that are chosen between: the same choice among costs of one size.

Floating-point duals of 1e15 cannot distinguish pairs that differ by .01. So exact solvers get a problem in
which the large costs are lowered. No cost is raised: an answer that pays no lowered cost, or as many as any
other, is optimal for the problem itself, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module
from . import certificate
from .assignment import Assignment
from .problem import AssignmentProblem, DenseCosts
from .scales import FAR, cost_scales, pair_range


@dataclass(frozen=True, eq=False)
class Lowered:
    """A problem whose costs are at most those of another.

    Parameters
    ----------
    problem : AssignmentProblem
    row_shift, col_shift : float
        What every unmatched cost of a row, or of a column, was lowered by; 0 for at least one of the sides.
    """

    problem: AssignmentProblem
    row_shift: float = 0.0
    col_shift: float = 0.0

    def answer_to(self, problem: AssignmentProblem, found: Assignment) -> Assignment | None:
        """The answer to the problem itself, by that to the lowered one; None if it pays a lowered cost.

        Of the larger side every answer leaves at least as many unmatched as it has more. If an answer leaves
        no more, the shift is common to all, and the duals of one problem, shifted, are those of the other.
        """
        if self._pays_lowered_cost(problem, found.col_of_row):
            return None
        if not self.row_shift and not self.col_shift:
            return replace(found, problem=problem)
        shifted = found.col_dual + (self.col_shift - self.row_shift)
        row_dual, col_dual = certificate.feasible_duals(problem, shifted)
        return replace(found, problem=problem, row_dual=row_dual, col_dual=col_dual)

    def _pays_lowered_cost(self, problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> bool:
        """Whether a lowered pair is matched, or one of the smaller side stays unmatched."""
        if not problem.is_perfect:
            return int((col_of_row >= 0).sum()) < min(problem.shape)
        here, there = (certificate.pair_costs(of, col_of_row) for of in (self.problem, problem))
        return bool((here != there).any())


def with_lowered_costs(problem: AssignmentProblem) -> Lowered | None:
    """The problem with real costs far above most others lowered; None where there are none."""
    if problem.is_integer:
        return None
    return _without_outliers(problem) if problem.is_perfect else _with_lower_unmatched(problem)


def _without_outliers(problem: AssignmentProblem) -> Lowered | None:
    """Pairs that cost far more than most, such as numbers for forbidden pairs, lowered to what is usual."""
    if not isinstance(problem.costs, DenseCosts):
        return None
    usual, largest = cost_scales(problem)
    if usual >= largest:
        return None
    xp, values = array_module(problem.array), problem.costs.values
    lower = xp.where(xp.isinf(values), values, xp.minimum(values, usual))
    return Lowered(replace(problem, costs=DenseCosts(lower)))


def _with_lower_unmatched(problem: AssignmentProblem) -> Lowered | None:
    """Unmatched costs that force every match, lowered as far as they still do so.

    One more match raises the costs of pairs by at most m high - (m - 1) low, where m are matched at costs
    from low to high. The smaller side, matched as a whole, pays no unmatched cost; of the larger one all
    answers pay equally many.
    """
    span = pair_range(problem)
    row, col = problem.unmatched()
    if span is None or not len(row) or not len(col):
        return None
    matches = min(problem.shape)
    enough = 2 * max(map(abs, (*span, matches * span[1] - (matches - 1) * span[0])))
    least_row, least_col = float(row.min()), float(col.min())
    if enough == 0 or max(float(row.max()), float(col.max())) < FAR * enough:
        return None
    if min(least_row, least_col) < enough:  # a match may cost more than both stay unmatched do
        return None
    xp, (rows, cols) = array_module(row), problem.shape
    row_shift = _exact_shift(row, least_row - enough) if rows > cols else 0.0
    col_shift = _exact_shift(col, least_col - enough) if cols > rows else 0.0
    row = row - row_shift if rows > cols else xp.minimum(row, enough)
    col = col - col_shift if cols > rows else xp.minimum(col, enough)
    return Lowered(AssignmentProblem(problem.costs, row, col), row_shift, col_shift)


def _exact_shift(cost: NDArray[np.float64], shift: float) -> float:
    """The shift, if no cost lowered by it is rounded (Knuth's TwoSum has no error term); else 0."""
    lower = cost - shift
    part = lower - cost
    return shift if bool(((cost - (lower - part)) + (-shift - part) == 0).all()) else 0.0
