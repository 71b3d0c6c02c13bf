"""Compile the kernels that the tests use, once and in two processes: ``python tests/kernels.py``.

The processes of pytest read them from the cache then. They are those of the commands; those of
``kernels.txt``, which has the form of `outbid.signatures`; and those that take a record of types of its own.
"""

import sys
import time
from pathlib import Path

import numpy as np

from outbid import AssignmentProblem, DenseCosts, PointCosts, assign
from outbid.assignment.greedy_switching import GreedySwitching
from outbid.signatures import SIGNATURES, signatures_in
from outbid.warming import compile_all

OF_SOLVERS = Path(__file__).with_suffix(".txt")


def switch() -> None:
    """Solve small problems by both algorithms from both starts: their records differ by the type of costs."""
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 9, (6, 6))
    forms = [DenseCosts(whole), DenseCosts(whole.astype(np.int32)), DenseCosts(rng.random((6, 6)))]
    for costs in (*forms, PointCosts(rng.random((6, 3)), rng.random((6, 3)))):
        for solver in (GreedySwitching(start="greedy"), GreedySwitching(parallel=True)):
            assign(AssignmentProblem(costs), solver)


if __name__ == "__main__":
    start = time.perf_counter()
    count = compile_all(signatures_in(SIGNATURES + OF_SOLVERS.read_text("utf-8")))
    switch()
    sys.stderr.write(
        f"{count} kernels compiled, and those of switches: {time.perf_counter() - start:.0f} s\n"
    )
