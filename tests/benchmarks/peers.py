"""Other solvers of the same problem, for comparison: same candidates, same costs."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components, min_weight_full_bipartite_matching
from scipy.spatial import cKDTree

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


def scipy_in_groups(
    source: NDArray[np.float64], target: NDArray[np.float64], gate: float, unmatched: float, group: int = 500
) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    """Optimal links with SciPy alone: (source rows, target rows, their total length).

    Candidates by k-d tree; whole connected components are put together until a group holds `group`
    rows; each row has a column of its own to stay unmatched in. Lengths are costs.
    """
    radius = min(gate, 2 * unmatched)
    pairs = cKDTree(source).sparse_distance_matrix(cKDTree(target), radius, output_type="coo_matrix")
    rows, cols = pairs.shape
    graph = coo_array((np.ones(pairs.nnz, np.int8), (pairs.row, rows + pairs.col)), shape=(rows + cols,) * 2)
    component = connected_components(graph, directed=False)[1]
    with_pairs = np.unique(pairs.row)
    size = np.bincount(component[with_pairs], minlength=component.max(initial=-1) + 1)
    group_of_row = ((np.cumsum(size) - size) // group)[component[:rows]]
    order = np.argsort(group_of_row[pairs.row], kind="stable")
    row, col, cost = pairs.row[order], pairs.col[order], pairs.data[order]
    bounds = np.flatnonzero(np.diff(group_of_row[row], prepend=-1, append=group_of_row.max(initial=0) + 1))
    found_row, found_col, total = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0.0
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):
        own_row, i = np.unique(row[first:last], return_inverse=True)
        own_col, j = np.unique(col[first:last], return_inverse=True)
        k = np.arange(len(own_row))
        # Each row is matched once, so adding `unmatched` to its costs changes no choice and drops no zero.
        weight = np.concatenate([cost[first:last] + unmatched, np.full(len(k), 3 * unmatched)])
        where = np.concatenate([i, k]), np.concatenate([j, len(own_col) + k])
        problem = csr_array((weight, where), shape=(len(own_row), len(own_col) + len(k)))
        a, b = min_weight_full_bipartite_matching(problem)
        kept = b < len(own_col)
        found_row.append(own_row[a[kept]])
        found_col.append(own_col[b[kept]])
    sources, targets = np.concatenate(found_row), np.concatenate(found_col)
    total = float(np.linalg.norm(source[sources] - target[targets], axis=1).sum())
    return sources, targets, total
