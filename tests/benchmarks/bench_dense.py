"""Dense assignment on the CPU: `sparsified` against lapx and SciPy, on the same matrix in the same process.

Uniform integers are int32 in [0, n/10], [0, n] and [0, 10n]; Euclidean costs are float64 distances between
two unrelated uniform clouds in the unit cube. The fastest of several runs counts; compilation is not timed.
For Outbid everything that `assign` does is timed: checks, solution and certificate. `cost_above` is the cost
of lapx, which rounds costs to float32, minus that of Outbid. `outbid_points` solves the same problem from the
point clouds, without storing a matrix.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator

import measure
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from outbid import AssignmentProblem, DenseCosts, PointCosts, assign

RANGES = {"integers to n/10": 0.1, "integers to n": 1.0, "integers to 10n": 10.0}
KINDS = [*RANGES, "distances in 3D"]


def matrix(kind: str, size: int) -> NDArray:
    if kind in RANGES:
        rng = np.random.default_rng(0)
        return rng.integers(0, round(RANGES[kind] * size) + 1, (size, size), dtype=np.int32)
    return cdist(*clouds(size))


def clouds(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    return rng.random((size, 3)), rng.random((size, 3))


def case(kind: str, size: int, repeats: int, slowest_peer: int) -> measure.Row:
    assign(AssignmentProblem(DenseCosts(matrix(kind, 100))), "sparsified")  # compiles
    costs = matrix(kind, size)
    problem = AssignmentProblem(DenseCosts(costs))
    seconds, answer = measure.best_of(repeats, lambda: assign(problem, "sparsified"))
    row: measure.Row = {"outbid": seconds, "cost": answer.primal_cost, "gap": answer.gap}
    row["passes"] = answer.stats["passes"]
    if kind not in RANGES:
        points = AssignmentProblem(PointCosts(*clouds(size)))
        assign(AssignmentProblem(PointCosts(*clouds(100))), "sparsified")
        row["outbid_points"], _ = measure.best_of(repeats, lambda: assign(points, "sparsified"))
    lap = importlib.import_module("lap")
    seconds, found = measure.best_of(repeats, lambda: lap.lapjvs(costs))
    row |= {"lapx_lapjvs": seconds, "cost_above": float(costs[found[1], found[2]].sum() - answer.primal_cost)}
    if size <= slowest_peer:
        start = time.perf_counter()
        linear_sum_assignment(costs)
        row["scipy"] = time.perf_counter() - start
    return row


def table(sizes: list[int], repeats: int, slowest_peer: int, limit: float) -> Iterator[measure.Row]:
    for size in sizes:
        for kind in KINDS:
            yield (
                {"n": size, "costs": kind}
                | {"outbid": "", "lapx_lapjvs": "", "scipy": ""}
                | measure.in_process(case, kind, size, repeats, slowest_peer, limit=limit)
            )


def main() -> None:
    parser = measure.options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5000, 10_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scipy-to", type=int, default=5000, help="the largest n that SciPy solves")
    chosen = parser.parse_args()
    measure.show(table(chosen.sizes, chosen.repeats, chosen.scipy_to, chosen.limit), chosen.csv)


if __name__ == "__main__":
    main()
