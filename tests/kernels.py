"""Compile the kernels that the tests use, in two processes: ``python tests/kernels.py``.

One process compiles what `outbid.warm_up` does, the other the kernels of solvers: those that the problems
below need, each problem by each solver. Tests read them from the cache; with --compiled, one that compiles
fails.
"""

import multiprocessing
import sys
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from problems import FAMILIES, gated, moved_cloud, optional

from outbid import AssignmentProblem, DenseCosts, PointCosts, assign, warm_up
from outbid.assignment.exact_margins import exact_margins
from outbid.assignment.greedy_switching import GreedySwitching
from outbid.assignment.sparsified import Sparsified
from outbid.assignment.variants import names, solver_named

DTYPES = ("i4", "i8", "f4", "f8")
"""Types of costs for which there are kernels; others are converted."""
SHAPES = ((12, 12), (9, 14))
SIDE = 40
"""Rows and columns of a family, as in the tests: some kernels begin where simpler ones end."""
SAME = ("auction:fixed", "greedy_switching:mixed")
"""Variants without kernels of their own; the auction with one epsilon may bid for hours."""
WIDE = 2**40
"""Added to integers, it makes slacks of 64 bits."""


def matrices(rng: np.random.Generator, shape: tuple[int, int]) -> Iterator[NDArray]:
    """Costs of every type and size of slack, and read-only ones, as those of a file."""
    for dtype in DTYPES:
        yield rng.integers(0, 100, shape).astype(dtype)
    yield rng.integers(0, 100, shape) * WIDE
    stored = rng.integers(0, 100, shape, dtype=np.int32)
    stored.flags.writeable = False
    yield stored


def problems(rng: np.random.Generator) -> Iterator[AssignmentProblem]:
    """Every family; every type as a matrix, as sparse costs, and where all may stay unmatched; points."""
    for family in FAMILIES.values():
        yield AssignmentProblem(DenseCosts(family(rng, SIDE, SIDE)))
    for shape in SHAPES:
        for costs in matrices(rng, shape):
            yield AssignmentProblem(DenseCosts(costs))
            yield AssignmentProblem(DenseCosts(costs).sparse())
            yield optional(costs, rng)
            yield AssignmentProblem(DenseCosts(costs), np.full(shape[0], 9.5), np.full(shape[1], 9.5))
    for axes in (2, 3):
        for metric in ("euclidean", "squared"):
            yield AssignmentProblem(PointCosts(rng.random((12, axes)), rng.random((12, axes)), metric))
    yield gated(*moved_cloud(rng, 60, 0.5), 1.2)


def solve_everything() -> None:
    """Solve each problem by each solver and variant; what a solver refuses needs no kernel."""
    rng = np.random.default_rng(0)
    solvers = [
        *(solver_named(name) for name in names() if name not in SAME),
        Sparsified(of_row=2, of_col=2, rounds=0),
        *(GreedySwitching(p, start) for p in (False, True) for start in ("random", "greedy")),
    ]
    for problem in problems(rng):
        for solver in solvers:
            try:
                answer = assign(problem, solver)
            except (ValueError, RuntimeError, NotImplementedError):
                continue
        try:
            exact_margins(answer)
        except (ValueError, RuntimeError, NotImplementedError):
            continue


if __name__ == "__main__":
    start = time.perf_counter()
    other = multiprocessing.get_context("spawn").Process(target=solve_everything)
    other.start()
    count = warm_up()
    other.join()
    sys.stderr.write(f"{count} kernels, and those of solvers: {time.perf_counter() - start:.0f} s\n")
    sys.exit(other.exitcode)
