"""Lower very large costs, so that all costs have the same order of magnitude.

Floating-point duals near 1e15 cannot distinguish pairs whose costs differ by .01. So exact solvers get a
problem in which the large costs are lowered. As no cost is raised, an answer of the lowered problem is also
optimal for the original one if it pays no lowered cost, or if every answer pays equally many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module
from . import certificate
from .assignment import Assignment
from .problem import AssignmentProblem, DenseCosts
from .scales import FAR, cost_scales, pair_range


@dataclass(frozen=True, eq=False)
class Lowered:
    """A problem with some costs lowered.

    Parameters
    ----------
    problem : AssignmentProblem
    row_shift, col_shift : float
        Amount by which all unmatched costs of rows, or of columns, were lowered; at least one of them is 0.
    """

    problem: AssignmentProblem
    row_shift: float = 0.0
    col_shift: float = 0.0

    def answer_to(self, problem: AssignmentProblem, found: Assignment) -> Assignment | None:
        """Convert an answer of the lowered problem to the original one; None if it pays a lowered cost.

        Every answer leaves at least |R - C| lines of the larger side unmatched. If an answer leaves no more
        than that, the shift is the same for all answers, and the shifted duals are valid for the original
        problem.
        """
        if self._pays_lowered_cost(problem, found.col_of_row):
            return None
        if not self.row_shift and not self.col_shift:
            return replace(found, problem=problem)
        shifted = found.col_dual + (self.col_shift - self.row_shift)
        row_dual, col_dual = certificate.feasible_duals(problem, shifted)
        return replace(found, problem=problem, row_dual=row_dual, col_dual=col_dual)

    def _pays_lowered_cost(self, problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> bool:
        """Whether a lowered pair is matched, or a line of the smaller side is unmatched."""
        if not problem.is_perfect:
            return int((col_of_row >= 0).sum()) < min(problem.shape)
        here, there = (certificate.pair_costs(of, col_of_row) for of in (self.problem, problem))
        return bool((here != there).any())


def with_lowered_costs(problem: AssignmentProblem) -> Lowered | None:
    """Lower real costs far above most others; None if there are none."""
    if problem.is_integer:
        return None
    return _without_outliers(problem) if problem.is_perfect else _with_lower_unmatched(problem)


def _without_outliers(problem: AssignmentProblem) -> Lowered | None:
    """Lower pair costs far above most others, such as large numbers that stand for forbidden pairs."""
    if not isinstance(problem.costs, DenseCosts):
        return None
    usual, largest = cost_scales(problem)
    if usual >= largest:
        return None
    xp, values = array_module(problem.array), problem.costs.values
    lower = xp.where(xp.isinf(values), values, xp.minimum(values, usual))
    return Lowered(replace(problem, costs=DenseCosts(lower)))


def _with_lower_unmatched(problem: AssignmentProblem) -> Lowered | None:
    """Lower unmatched costs that force every match, to a value that still forces it.

    With m matches at costs between low and high, one more match raises the sum of pair costs by at most m
    high - (m - 1) low. If the smaller side is completely matched, it pays no unmatched cost, and every answer
    leaves equally many lines of the larger side unmatched.
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
    if min(least_row, least_col) < enough:  # a match may cost more than leaving both unmatched
        return None
    xp, (rows, cols) = array_module(row), problem.shape
    row_shift = _exact_shift(row, least_row - enough) if rows > cols else 0.0
    col_shift = _exact_shift(col, least_col - enough) if cols > rows else 0.0
    row = row - row_shift if rows > cols else xp.minimum(row, enough)
    col = col - col_shift if cols > rows else xp.minimum(col, enough)
    return Lowered(AssignmentProblem(problem.costs, row, col), row_shift, col_shift)


def _exact_shift(cost: NDArray[np.float64], shift: float) -> float:
    """The shift if subtracting it from the costs causes no rounding (by Knuth's TwoSum), else 0."""
    lower = cost - shift
    part = lower - cost
    return shift if bool(((cost - (lower - part)) + (-shift - part) == 0).all()) else 0.0
