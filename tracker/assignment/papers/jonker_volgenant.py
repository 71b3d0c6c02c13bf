"""The solvers of SciPy, for reference: Crouse's dense Jonker-Volgenant and the sparse LAPJVsp."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..points import stored_costs
from ..problem import AssignmentProblem, DenseCosts, SparseCosts
from ..solver import AbstractAssignmentSolver, Answer

_CHILD = """
import io, sys
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
given = np.load(io.BytesIO(sys.stdin.buffer.read()))
# SciPy before 1.14 takes indices of 32 bits alone.
index = np.int32 if max(*given["shape"], len(given["indices"])) < 2**31 else np.int64
indices, indptr = given["indices"].astype(index), given["indptr"].astype(index)
costs = csr_array((given["values"], indices, indptr), shape=given["shape"])
try:
    cols = min_weight_full_bipartite_matching(costs)[1]
except ValueError as error:
    if "no full matching" not in str(error):
        raise
    cols = np.empty(0, np.int64)
sys.stdout.buffer.write(cols.astype(np.int64).tobytes())
"""


@dataclass(frozen=True)
class JonkerVolgenant(AbstractAssignmentSolver):
    """SciPy's `linear_sum_assignment` for dense costs, `min_weight_full_bipartite_matching` for sparse.

    Optional rows and columns need no augmented matrix: with R <= C, each row takes a column at min(c_ij -
    col_unmatched_j, row_unmatched_i), and rows that pay the second value stay unmatched. In sparse problems,
    each row gets an additional column that stands for staying unmatched. SciPy returns no duals; they are
    computed from the matching by Bellman-Ford.

    Parameters
    ----------
    time_limit : float
        Time limit in seconds for the sparse solver of SciPy. It can run forever on feasible input, so it runs
        in a separate process, which is killed at the limit.

    Examples
    --------
    >>> from outbid.assignment import assign, DenseCosts
    >>> answer = assign(AssignmentProblem(DenseCosts(np.array([[1, 2], [2, 9]]))), JonkerVolgenant())
    >>> answer.col_of_row.tolist(), answer.gap
    ([1, 0], 0)
    """

    time_limit: float = 60.0

    def compute(self, problem: AssignmentProblem) -> Answer:
        costs = stored_costs(problem)
        if isinstance(costs, DenseCosts):
            col_of_row = _solve_dense(problem, costs)
        else:
            col_of_row = _solve_sparse(problem, costs, self.time_limit)
        return Answer(col_of_row, _col_duals(problem, col_of_row))


def _solve_dense(problem: AssignmentProblem, costs: DenseCosts) -> NDArray[np.int32]:
    rows, cols = problem.shape
    if rows > cols:  # only problems with optional rows reach this line
        by_col = _solve_dense(problem.transposed(), costs.transposed())
        col_of_row = np.full(rows, -1, dtype=np.int32)
        col_of_row[by_col[by_col >= 0]] = np.nonzero(by_col >= 0)[0]
        return col_of_row
    row_unmatched, col_unmatched = (cost.astype(np.float64) for cost in problem.unmatched())
    if problem.is_perfect:
        reduced = costs.values.astype(np.float64)
    else:
        reduced = np.minimum(costs.values - col_unmatched, row_unmatched[:, None])
    try:
        taken = linear_sum_assignment(reduced)[1]
    except ValueError as error:
        raise ValueError(
            f"The problem is infeasible: {error}. Allow more pairs, or give unmatched costs."
        ) from None
    if problem.is_perfect:
        return taken.astype(np.int32)
    chosen = costs.values[np.arange(rows), taken] - col_unmatched[taken] < row_unmatched
    return np.where(chosen, taken, -1).astype(np.int32)


def _solve_sparse(problem: AssignmentProblem, costs: SparseCosts, time_limit: float) -> NDArray[np.int32]:
    rows, cols = problem.shape
    if rows == 0:
        return np.empty(0, dtype=np.int32)
    indptr, indices = costs.indptr, costs.indices.astype(np.int64)
    values = costs.values.astype(np.float64)
    if not problem.is_perfect:  # an additional column per row: staying unmatched
        row_unmatched, col_unmatched = problem.unmatched()
        values = np.insert(values - col_unmatched[indices], indptr[1:], row_unmatched)
        indices = np.insert(indices, indptr[1:], cols + np.arange(rows))
        indptr = indptr + np.arange(rows + 1)
    # SciPy drops zeros. Every row is matched, so adding a constant does not change the optimum.
    values = values - values.min(initial=0.0) + 1.0
    taken = in_child(indptr, indices, values, (rows, cols + (0 if problem.is_perfect else rows)), time_limit)
    if len(taken) == 0:
        raise ValueError("The problem is infeasible. Allow more pairs, or give unmatched costs.")
    return np.where(taken < cols, taken, -1).astype(np.int32)


def in_child(
    indptr: NDArray, indices: NDArray, values: NDArray, shape: tuple[int, int], time_limit: float
) -> NDArray[np.int64]:
    """Run SciPy's sparse solver in a separate process; empty if the problem is infeasible.

    Raises
    ------
    RuntimeError
        If it returned no answer within `time_limit` seconds.
    """
    given = io.BytesIO()
    np.savez(given, indptr=indptr, indices=indices, values=values, shape=shape)
    try:
        child = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=given.getvalue(),
            capture_output=True,
            timeout=time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(
            f"SciPy's sparse solver gave no answer in {time_limit:g} s and was ended. "
            "Choose solver bid_and_augment, or raise time_limit."
        ) from None
    if child.returncode:
        raise RuntimeError(f"SciPy's sparse solver failed: {child.stderr.decode()[-300:]}")
    return np.frombuffer(child.stdout, dtype=np.int64)


def _col_duals(problem: AssignmentProblem, col_of_row: NDArray[np.int32]) -> NDArray:
    """Column duals of an optimal matching: shortest distances in its residual graph (Bellman-Ford).

    An unmatched row i bounds v_j by c_ij - row_unmatched_i. A row that is matched with k bounds it by v_k +
    c_ij - c_ik.
    """
    from ..certificate import pair_costs

    row_unmatched, v = problem.unmatched()
    costs, pair_cost = stored_costs(problem), pair_costs(problem, col_of_row)
    matched = col_of_row >= 0
    for _ in range(problem.shape[0] + 1):
        u = np.where(matched, pair_cost - v[col_of_row] if len(v) else 0, row_unmatched)
        lower = v.copy()
        if isinstance(costs, DenseCosts):
            lower = np.min([lower, *(costs.values - u[:, None])], axis=0).astype(v.dtype)
        else:
            np.minimum.at(lower, costs.indices, costs.values - u[costs.rows])
        if np.array_equal(lower, v):
            break
        v = lower
    return v
