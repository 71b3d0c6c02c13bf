"""Assignment problems: check, solve, certify. This package does not depend on tracking.

Each solver is one class in one module, and has the name of this module; `SOLVERS` lists the names. For the
names of variants and settings, see `variants`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral

from numpy.typing import NDArray

from ..compute.arrays import on_device, release_device_memory
from . import certificate
from .assignment import Assignment, Status
from .check import check_problem
from .components import in_batches, is_split
from .lowered import with_lowered_costs
from .points import with_stored_costs
from .problem import AssignmentProblem, DenseCosts, PointCosts, SparseCosts, as_kernels_read, on_host
from .solver import AbstractAssignmentSolver, Answer
from .variants import SOLVERS, solver_named

__all__ = [
    "SOLVERS",
    "AbstractAssignmentSolver",
    "Answer",
    "Assignment",
    "AssignmentProblem",
    "DenseCosts",
    "PointCosts",
    "SparseCosts",
    "Status",
    "assign",
    "solve_and_certify",
    "solver_named",
]

_MANY = 400
"""Number of rows from which the default for a dense problem on a CPU is `sparsified`."""


def assign(
    problem: AssignmentProblem,
    solver: str | AbstractAssignmentSolver | None = None,
    *,
    devices: Sequence[int] | None = None,
    shards: int | None = None,
) -> Assignment:
    """Solve an assignment problem and prove the answer.

    Parameters
    ----------
    problem : AssignmentProblem
        R rows and C columns.
    solver : str or AbstractAssignmentSolver, optional
        A name in `SOLVERS`, the name of a variant such as ``hungarian:classical``, a name with settings such
        as ``auction:fixed(epsilon=1)``, or a solver object. The default is ``sparsified`` for matrices and
        points, and ``bid_and_augment`` for sparse costs and for small matrices on the host.
    devices : sequence of int, optional
        Numbers of the GPUs over which a matrix or point set is divided; each reads its own part. Only the
        solvers ``sparsified`` (the default) and ``hungarian`` support this.
    shards : int, optional
        Number of parts (shards) into which the problem is divided. They run one at a time on one of the GPUs,
        or where the problem lives. The answer and the messages are those of as many devices; the time is not.

    Returns
    -------
    Assignment
        With duals whose sum is a lower bound on the cost of every matching. For every solver, `assign` itself
        computes them from the column duals that the solver returned.

    Raises
    ------
    TypeError
        If costs are not real numbers, if arrays are partly on a GPU and partly not, or if `solver` is not a
        solver.
    ValueError
        If a cost is NaN or minus infinity, shapes disagree, or no perfect matching exists.

    Examples
    --------
    >>> import numpy as np
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> answer = assign(AssignmentProblem(costs))
    >>> answer.col_of_row.tolist(), answer.primal_cost, answer.gap
    ([1, 0, 2], 5, 0)

    To maximise a sum of gains, see `DenseCosts.of_gains`. A problem whose arrays are on a GPU (CuPy) is
    solved there if the solver has GPU kernels, otherwise on the host. A problem that does not fit into GPU
    memory is also solved on the host; `stats` then contains ``fallbacks``.

    With unmatched costs, rows and columns may stay unmatched:

    >>> unmatched = np.array([1, 1, 1])
    >>> assign(AssignmentProblem(costs, unmatched, unmatched)).col_of_row.tolist()
    [-1, 1, -1]
    """
    if isinstance(problem, AssignmentProblem) and isinstance(problem.costs, DenseCosts):
        # Cached properties of the costs hold for this call only: the array may change before the next.
        problem = replace(problem, costs=DenseCosts(problem.costs.values))
    if shards is not None and not isinstance(shards, Integral):
        raise TypeError(f"shards is {shards!r}; it must be a whole number.")
    if devices is not None and not (
        isinstance(devices, list | tuple) and all(isinstance(one, Integral) for one in devices)
    ):
        raise TypeError(f"devices is {devices!r}; it must be a list of whole numbers.")
    if devices is not None or shards is not None:
        from .papers.shards import divided

        solver = divided(solver, devices, shards)
    try:
        check_problem(problem)
        problem = as_kernels_read(problem)
        return solve_and_certify(problem, solver)
    except MemoryError:
        if not on_device(problem.array):
            raise
    # After the exception handler, which keeps references to GPU memory.
    release_device_memory()
    answer = solve_and_certify(on_host(problem), solver)
    return replace(answer, stats={**answer.stats, "fallbacks": 1})


def solve_and_certify(
    problem: AssignmentProblem, solver: str | AbstractAssignmentSolver | None = None
) -> Assignment:
    """`assign` for a problem that is valid by construction, such as candidates within a gate."""
    if solver is None:
        solver = _default(problem)
    chosen = solver_named(solver) if isinstance(solver, str) else solver
    if not isinstance(chosen, AbstractAssignmentSolver):
        raise TypeError(f"{solver!r} is no solver. Give a name of SOLVERS, or an object such as Auction().")
    if on_device(problem.array) and not chosen.works_on_device(problem):
        problem = on_host(problem)
    if problem.is_perfect and problem.shape[0] > problem.shape[1]:
        try:
            return _transposed(solve_and_certify(problem.transposed(), chosen), problem)
        except ValueError as error:
            if "row" not in str(error):
                raise
            raise ValueError(
                f"{error} (As there are more rows than columns, row here means column.)"
            ) from None
    easier = with_lowered_costs(problem) if chosen.is_exact else None
    if easier is not None:
        found = easier.answer_to(problem, _solved(easier.problem, chosen))
        if found is not None:
            return found
    return _solved(problem, chosen)


def _solved(problem: AssignmentProblem, chosen: AbstractAssignmentSolver) -> Assignment:
    """Certify the solver's answer, or the one that `finish` returns in its place."""
    if chosen.needs_matrix and is_split(problem):
        answer = in_batches(problem, chosen.compute)
    else:
        answer = chosen.compute(problem if chosen.works_on_points else with_stored_costs(problem))
    proved = _proved(problem, answer)
    better = answer.finish()
    return proved if better is None else _proved(problem, better)


def _proved(problem: AssignmentProblem, answer: Answer) -> Assignment:
    """Compute the certificate of an answer."""
    found = _certified(problem, answer, answer.col_dual)
    row_dual, cost, bound = found.row_dual, found.primal_cost, found.dual_cost
    if certificate.is_optimal(problem, found.col_of_row, row_dual, cost, bound):
        return found
    if certificate.may_be_refined(problem, row_dual, cost, bound):
        refined = certificate.refined_duals(problem, answer.col_of_row, found.col_dual)
        found = _certified(problem, answer, refined)
        if certificate.is_optimal(problem, found.col_of_row, found.row_dual, cost, found.dual_cost):
            return found
    return replace(found, status=Status.FEASIBLE)


def _certified(problem: AssignmentProblem, answer: Answer, col_dual: NDArray) -> Assignment:
    """An assignment with feasible duals; its status is optimal until the gap is checked."""
    duals = certificate.feasible_duals(problem, col_dual)
    return Assignment(problem, answer.col_of_row, *duals, Status.OPTIMAL, answer.stats)


def _default(problem: AssignmentProblem) -> str:
    """The fastest exact solver for this kind of costs."""
    is_large = on_device(problem.array) or min(problem.shape) >= _MANY
    return "sparsified" if is_large and not isinstance(problem.costs, SparseCosts) else "bid_and_augment"


def _transposed(answer: Assignment, problem: AssignmentProblem) -> Assignment:
    """Transpose the answer to a transposed problem."""
    return Assignment(
        problem, answer.row_of_col, answer.col_dual, answer.row_dual, answer.status, answer.stats
    )
