"""Assignment: check, solve, certify. This package knows no frame, particle or micrometre.

A solver is one module with one class; `SOLVERS` names them, and the name of a solver is that of its
module. Variants and settings have names, too: see `variants`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import NDArray

from .._arrays import on_device, release_device_memory
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
"""Rows from which it pays on a CPU to choose candidates among all pairs."""


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
        A name in `SOLVERS`, that of a variant such as ``hungarian:classical`` or, with settings,
        ``auction:fixed(epsilon=1)``; or an object. By default ``sparsified`` for matrices and points,
        ``bid_and_augment`` for sparse costs and, on the host, for small matrices.
    devices : sequence of int, optional
        GPUs, by number, over which a matrix or points are divided; each reads its own part. For solvers
        ``hungarian`` and, the default then, ``sparsified``.
    shards : int, optional
        The same for so many parts that take turns on one of these, or where the problem lives: the answer,
        the messages and their bytes are those of so many devices, the time is not.

    Returns
    -------
    Assignment
        With duals whose sum is a lower bound on every matching's cost, computed here from the
        solver's column duals, whichever the solver.

    Raises
    ------
    TypeError
        If costs are not real numbers, some arrays live on a GPU and others do not, or `solver` is no solver.
    ValueError
        If a cost is NaN or minus infinity, shapes disagree, or no perfect matching exists.

    Examples
    --------
    >>> import numpy as np
    >>> costs = DenseCosts(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> answer = assign(AssignmentProblem(costs))
    >>> answer.col_of_row.tolist(), answer.primal_cost, answer.gap
    ([1, 0, 2], 5, 0)

    To maximise a sum of gains, see `DenseCosts.of_gains`. Arrays on a GPU (CuPy) are solved there by
    solvers that have kernels for it, and on the host by the others. A problem that does not fit the GPU's
    memory is solved on the host, too; `stats` then holds ``fallbacks``.

    Rows and columns are optional where staying unmatched has a price:

    >>> unmatched = np.array([1, 1, 1])
    >>> assign(AssignmentProblem(costs, unmatched, unmatched)).col_of_row.tolist()
    [-1, 1, -1]
    """
    if isinstance(problem, AssignmentProblem) and isinstance(problem.costs, DenseCosts):
        # What costs remember of themselves is of this call: the array may change before the next.
        problem = replace(problem, costs=DenseCosts(problem.costs.values))
    if devices is not None or shards is not None:
        from .shards import divided

        solver = divided(solver, devices, shards)
    try:
        check_problem(problem)
        problem = as_kernels_read(problem)
        return solve_and_certify(problem, solver)
    except MemoryError:
        if not on_device(problem.array):
            raise
    # Behind the handler, which holds on to what the GPU holds.
    release_device_memory()
    answer = solve_and_certify(on_host(problem), solver)
    return replace(answer, stats={**answer.stats, "fallbacks": 1})


def solve_and_certify(
    problem: AssignmentProblem, solver: str | AbstractAssignmentSolver | None = None
) -> Assignment:
    """`assign` for a problem that is valid by its construction, such as the candidates of a gate."""
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
    """The solver's answer with its certificate, or the one that stands in its place."""
    if chosen.needs_matrix and is_split(problem):
        answer = in_batches(problem, chosen.compute)
    else:
        answer = chosen.compute(problem if chosen.works_on_points else with_stored_costs(problem))
    proved = _proved(problem, answer)
    better = answer.finish()
    return proved if better is None else _proved(problem, better)


def _proved(problem: AssignmentProblem, answer: Answer) -> Assignment:
    """An answer with its certificate."""
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
    """An answer with duals that are feasible, called optimal until that is checked."""
    duals = certificate.feasible_duals(problem, col_dual)
    return Assignment(problem, answer.col_of_row, *duals, Status.OPTIMAL, answer.stats)


def _default(problem: AssignmentProblem) -> str:
    """The quickest exact solver for this kind of costs."""
    if isinstance(problem.costs, SparseCosts):
        return "bid_and_augment"
    return "sparsified" if on_device(problem.array) or min(problem.shape) >= _MANY else "bid_and_augment"


def _transposed(answer: Assignment, problem: AssignmentProblem) -> Assignment:
    """The answer to a transposed problem, as the answer to the problem itself."""
    return Assignment(
        problem, answer.row_of_col, answer.col_dual, answer.row_dual, answer.status, answer.stats
    )
