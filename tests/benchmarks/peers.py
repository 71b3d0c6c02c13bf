"""Other solvers of the same problem, for comparison: same candidates, same costs."""

from __future__ import annotations

import time

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from outbid import AssignmentProblem


def ortools_min_cost_flow(problem: AssignmentProblem) -> tuple[float, int]:
    """OR-tools' SimpleMinCostFlow: (seconds, cost). A bypass node carries the flow of all that is unmatched.

    Only the solver is timed, not the construction of its graph.
    """
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    (rows, cols), costs = problem.shape, problem.costs.sparse()
    row, col, bypass = np.arange(rows), rows + np.arange(cols), rows + cols
    flow = SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(
        np.concatenate([costs.rows, row, np.full(cols, bypass)]),
        np.concatenate([col[costs.indices], np.full(rows, bypass), col]),
        np.ones(len(costs.indices) + rows + cols, dtype=np.int64),
        np.concatenate([costs.values, problem.row_unmatched, problem.col_unmatched]),
    )
    flow.set_nodes_supplies(
        np.arange(rows + cols + 1),
        np.concatenate([np.ones(rows, np.int64), -np.ones(cols, np.int64), [cols - rows]]),
    )
    start = time.perf_counter()
    status = flow.solve()
    seconds = time.perf_counter() - start
    if status != flow.OPTIMAL:
        raise RuntimeError(f"min-cost flow ended with {status}")
    return seconds, flow.optimal_cost()


def scipy_augmented(problem: AssignmentProblem) -> tuple[float, int]:
    """SciPy on the augmented (R + C) x (R + C) matrix of the usual recipe: (seconds, cost)."""
    (rows, cols), costs = problem.shape, problem.costs.sparse()
    shift = 1  # SciPy drops zeros; all R + C pairs of a perfect matching carry the shift alike
    values = costs.values.astype(np.float64) + shift
    pairs = csr_array((values, costs.indices, costs.indptr), shape=(rows, cols))
    corner = pairs.T.astype(bool) * np.float64(shift)
    augmented = block_array(
        [
            [pairs, diags_array(problem.row_unmatched.astype(np.float64) + shift)],
            [diags_array(problem.col_unmatched.astype(np.float64) + shift), corner],
        ],
        format="csr",
    )
    start = time.perf_counter()
    row, col = min_weight_full_bipartite_matching(augmented)
    seconds = time.perf_counter() - start
    return seconds, round(augmented[row, col].sum()) - shift * (rows + cols)
