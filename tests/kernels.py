"""Compile the kernels that the tests use, once and in one process: ``python tests/kernels.py``.

The processes of pytest read them from the cache then. What is missing here, each of them compiles for itself.
"""

import sys
import time

import numpy as np
from problems import gated

from outbid import AssignmentProblem, DenseCosts, PointCosts, assign, warm_up
from outbid.assignment import SOLVERS


def solve_everything() -> None:
    """Solve small problems of every form by each solver; what a solver refuses needs no kernel."""
    rng = np.random.default_rng(0)
    dense = [DenseCosts(rng.integers(0, 9, (6, 7))), DenseCosts(rng.random((6, 7)))]
    sides = (np.full(6, 5), np.full(7, 5))
    problems = [
        *(AssignmentProblem(costs) for costs in dense),
        *(AssignmentProblem(costs, *sides) for costs in dense),
        *(AssignmentProblem(costs.sparse(), *sides) for costs in dense),
        AssignmentProblem(PointCosts(rng.random((6, 3)), rng.random((6, 3)))),
        gated(rng.random((9, 3)), rng.random((9, 3)), 0.5),
    ]
    for solver in SOLVERS:
        for problem in problems:
            try:
                assign(problem, solver)
            except (ValueError, RuntimeError, NotImplementedError):
                continue


if __name__ == "__main__":
    start = time.perf_counter()
    count = warm_up()
    solve_everything()
    sys.stderr.write(
        f"{count} kernels compiled, and those of the solvers: {time.perf_counter() - start:.0f} s\n"
    )
