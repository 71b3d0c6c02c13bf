"""Lower bounds from duals: the certificate of every assignment.

The bound holds for any column values v: set v_j := min(v_j, col_unmatched_j), then
u_i := min(row_unmatched_i, min_j (c_ij - v_j)). The sum of u and v is a lower bound on the cost of
every matching (weak duality), so the solver need not be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module, kernels, to_host
from . import exact_proof
from .matrix import readable
from .points import matrix_of
from .problem import AssignmentProblem, SparseCosts, forbidden

TOLERANCE = 1e-12
"""Tolerance for real costs, relative to the cost: the gap that about a thousand roundings may leave."""
_NEAR = 1e-6
"""Gap, relative to the cost, above which refining the duals cannot give a proof."""
_ROUNDS = 100
"""Largest number of refinement rounds: chains of rows are short."""
_FEW = 1 << 12
"""Largest number of pairs for a proof in exact arithmetic, which then takes some ten milliseconds."""


def feasible_duals(problem: AssignmentProblem, col_dual: NDArray) -> tuple[NDArray, NDArray]:
    """The largest feasible duals (R,), (C,) with column duals of at most `col_dual`."""
    row_unmatched, col_unmatched = problem.unmatched()
    xp = array_module(problem.array)
    v = xp.minimum(col_dual.astype(col_unmatched.dtype, copy=False), col_unmatched)
    u = row_unmatched.copy()
    if not isinstance(problem.costs, SparseCosts):
        matrix_of(problem.costs).lower_to_slack(v, u)
    else:
        _kernels(problem).lower_to_slack(*_stored(problem.costs), v, u)
    return u, v


def pair_costs(problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> NDArray:
    """(R,) cost of the pair of each row, 0 if unmatched.

    Raises
    ------
    ValueError
        If the matching uses a column twice or a pair that is not allowed.
    """
    cost, _, wrong = _paid(problem, col_of_row)
    _refuse(wrong)
    return array_module(cost).where(col_of_row >= 0, cost, cost.dtype.type(0))


def cost_and_bound(
    problem: AssignmentProblem, col_of_row: NDArray[np.int32], row_dual: NDArray, col_dual: NDArray
) -> tuple[int | float, int | float]:
    """Cost of a matching, including unmatched rows and columns, and the sum of the duals.

    Raises
    ------
    ValueError
        As `pair_costs`.
    """
    row_cost, times, wrong = _paid(problem, col_of_row)
    paid = [row_cost] if problem.is_perfect else [row_cost, (times == 0) * problem.unmatched()[1]]
    sums = _totals([row_dual, col_dual, *paid])
    _refuse(wrong)  # last, because the host waits for it
    return sum(sums[2:]), sums[0] + sums[1]


def _paid(problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> tuple[NDArray, NDArray, NDArray]:
    """Cost of each row (matched or not), how often each column is matched, and the number of errors.

    The errors are forbidden pairs and columns that are matched twice.
    """
    xp = array_module(problem.array)
    row_unmatched, col_unmatched = problem.unmatched()
    cost = xp.zeros_like(row_unmatched) if problem.is_perfect else row_unmatched.copy()
    if isinstance(problem.costs, SparseCosts):
        times = xp.zeros(len(col_unmatched), np.int32)
        pairs = _stored(problem.costs)
        return cost, times, _kernels(problem).look_up_pairs(*pairs, col_of_row, cost, times)
    matched = xp.nonzero(col_of_row >= 0)[0]
    cost[matched] = matrix_of(problem.costs).pairs(matched, col_of_row[matched])
    times = xp.zeros(len(col_unmatched), np.int64)
    if len(matched):  # CuPy cannot count in an empty array
        times = xp.bincount(col_of_row[matched], minlength=len(col_unmatched))
    return cost, times, xp.stack([xp.isinf(cost).sum(), (times > 1).sum()])


def _refuse(wrong: NDArray) -> None:
    """Refuse an invalid matching; `wrong` is returned by `_paid`."""
    forbidden, repeated = to_host(wrong).tolist()
    if repeated:
        raise ValueError("The solver matched a column twice; this is an error in the solver.")
    if forbidden:
        raise ValueError("The solver matched a forbidden pair; this is an error in the solver.")


def margins(
    problem: AssignmentProblem, col_of_row: NDArray[np.int32], row_dual: NDArray, col_dual: NDArray
) -> NDArray:
    """(R,) lower bounds on the rise of the optimum without each pair; see `Assignment.margin`."""
    row_unmatched, col_unmatched = problem.unmatched()
    xp = array_module(row_dual)
    if problem.is_perfect and problem.shape[0] > problem.shape[1]:  # now the rows may stay unmatched
        row_unmatched = xp.zeros_like(row_dual)
        col_unmatched = xp.full_like(col_dual, forbidden(col_dual.dtype))
    if isinstance(problem.costs, SparseCosts):
        margin = xp.empty_like(row_dual)
        state = (col_of_row, row_unmatched, row_dual, col_dual, col_unmatched - col_dual, margin)
        _kernels(problem).margins(*_stored(problem.costs), *state)
        return margin
    margin = xp.zeros_like(row_dual)
    matrix = matrix_of(problem.costs)
    rows = xp.nonzero(col_of_row >= 0)[0]
    cols = col_of_row[rows]
    row_of_col = xp.full(problem.shape[1], -1, np.int32)
    row_of_col[cols] = rows
    of_rows = matrix.nearest_of_rows(col_dual, row_unmatched, 2)
    of_cols = matrix.nearest_of_cols(row_dual, col_unmatched, 2)[:2]
    row_least = _least_besides(
        col_of_row, row_unmatched, *of_rows, lambda i, j: matrix.pairs(i, j) - col_dual[j]
    )
    col_least = _least_besides(
        row_of_col, col_unmatched, *of_cols, lambda j, i: matrix.pairs(i, j) - row_dual[i]
    )
    margin[rows] = (row_least - row_dual)[rows] + (col_least - col_dual)[cols]
    return margin


def _least_besides(
    held: NDArray,
    bound: NDArray,
    nearest: NDArray,
    count: NDArray,
    reduced: Callable[[NDArray, NDArray], NDArray],
) -> NDArray:
    """Least reduced cost of each line among two candidates other than its own pair, or its bound."""
    least = bound.copy()
    for k in range(nearest.shape[1]):
        lines = array_module(held).nonzero((count > k) & (nearest[:, k] != held))[0]
        value = reduced(lines, nearest[lines, k])
        least[lines] = array_module(held).minimum(least[lines], value)
    return least


def _totals(arrays: list[NDArray]) -> list[int] | list[float]:
    """Exact sums: an int for integers, correctly rounded for floats."""
    if arrays[0].dtype.kind == "f":
        return [math.fsum(to_host(array)) for array in arrays]
    on = kernels("outbid.assignment.certificate", arrays[0])
    return on.totals(arrays)


def is_optimal(
    problem: AssignmentProblem,
    col_of_row: NDArray[np.int32],
    row_dual: NDArray,
    cost: int | float,
    bound: int | float,
) -> bool:
    """Whether a bound proves a matching of this cost optimal.

    For integers, the cost must equal the bound. For real numbers, the difference, including the rounding of
    the bound, must be below `TOLERANCE` times the cost; for a small problem, a proof in exact arithmetic also
    counts.
    """
    if problem.is_integer:
        return cost == bound
    off = _gap(row_dual, cost, bound)
    if off <= TOLERANCE * abs(cost) or off <= TOLERANCE * _magnitude(problem, col_of_row):
        return True
    return problem.shape[0] * problem.shape[1] <= _FEW and exact_proof.holds(problem, col_of_row)


def may_be_refined(
    problem: AssignmentProblem, row_dual: NDArray, cost: int | float, bound: int | float
) -> bool:
    """Whether real duals are so close to a proof that `refined_duals` may complete it."""
    return not problem.is_integer and _gap(row_dual, cost, bound) <= _NEAR * max(abs(cost), abs(bound))


def refined_duals(problem: AssignmentProblem, col_of_row: NDArray[np.int32], col_dual: NDArray) -> NDArray:
    """Lower column duals until the pair of each row is its best choice (Bellman-Ford).

    After an auction, the pair of each row is within epsilon of its best choice. If the matching is optimal,
    the duals become exact up to rounding after as many rounds as the longest chain of such rows has members.
    """
    xp = array_module(problem.array)
    row_unmatched, col_unmatched = problem.unmatched()
    v = xp.minimum(col_dual, col_unmatched)
    matched = col_of_row >= 0
    paid = pair_costs(problem, col_of_row)
    lowered = _lowered_columns(problem)
    for _ in range(_ROUNDS):
        lower = lowered(xp.where(matched, paid - v[col_of_row], row_unmatched), v)
        if bool((lower == v).all()):
            break
        v = lower
    return v


def _lowered_columns(problem: AssignmentProblem) -> Callable[[NDArray, NDArray], NDArray]:
    """Function that computes min(v_j, min_i (c_ij - u_i)) from duals u and v."""
    if not isinstance(problem.costs, SparseCosts):
        matrix = matrix_of(problem.costs)
        return lambda u, v: matrix.nearest_of_cols(u, v, 1)[2]
    transposed = _stored(problem.costs.transposed())

    def lowered(u: NDArray, v: NDArray) -> NDArray:
        lower = v.copy()
        _kernels(problem).lower_to_slack(*transposed, u, lower)
        return lower

    return lowered


def _gap(row_dual: NDArray, cost: int | float, bound: int | float) -> float:
    """The gap plus the possible rounding error of the bound: each real row dual is a rounded difference."""
    return abs(cost - bound) + 2.0**-53 * float(abs(row_dual).sum())


def _magnitude(problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> float:
    """Sum of the absolute values of all costs of a matching."""
    row_cost, times, _ = _paid(problem, col_of_row)
    paid = [row_cost] if problem.is_perfect else [row_cost, (times == 0) * problem.unmatched()[1]]
    return math.fsum(_totals([abs(cost) for cost in paid]))


def _stored(costs: SparseCosts) -> tuple[NDArray, NDArray, NDArray]:
    """The pairs in the form that the kernels read."""
    return costs.indptr, costs.indices, readable(costs.values)


def _kernels(problem: AssignmentProblem) -> ModuleType:
    return kernels("outbid.assignment.certificate", problem.array)
