"""Compile the kernels that the tests use, once and in two processes: ``python tests/kernels.py``.

The processes of pytest read them from the cache then. They are those of the commands; those of
``kernels.txt``, which has the form of `outbid.compute.signatures`; and those that take a record of types of
its own.
With --compiled, a test that compiles another one fails, and states its line.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numba import types

from outbid import AssignmentProblem, DenseCosts, PointCosts, assign
from outbid.assignment.papers.greedy_switching import GreedySwitching
from outbid.compute.signatures import SIGNATURES, signatures_in
from outbid.compute.warming import compile_all

OF_SOLVERS = Path(__file__).with_suffix(".txt")


def line_of(kernel: Any, arguments: tuple[Any, ...]) -> str:
    """The line of a kernel in ``kernels.txt``; for a type that has no form there, its name."""
    module = kernel.py_func.__module__.removeprefix("outbid.").removesuffix("_cpu")
    return " ".join([f"{module}.{kernel.py_func.__name__}", *map(_form_of, arguments)])


def _form_of(of: Any) -> str:
    """The inverse of what `outbid.compute.signatures` reads."""
    if isinstance(of, types.BaseTuple):
        if isinstance(of, types.BaseNamedTuple):
            return of.instance_class.__name__
        return f"({','.join(map(_form_of, of))})"
    if isinstance(of, types.Array):
        layout = "=" if not of.mutable else ":" if of.layout == "C" else "~"
        return f"{_form_of(of.dtype)}{layout}{of.ndim}"
    if isinstance(of, types.Boolean | types.Integer | types.Float):
        return "b1" if isinstance(of, types.Boolean) else np.dtype(str(of)).str[1:]
    return str(of)


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
