"""The interface of solvers: the method `compute` returns a matching and column duals of a valid problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .problem import AssignmentProblem


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a solver, which `assign` certifies.

    Parameters
    ----------
    col_of_row : (R,) int32 array
        Column of each row, -1 if unmatched.
    col_dual : (C,) int64 or float64 array
        Any values; better duals give a better bound.
    stats : mapping
        Counters of the solver.
    finish : callable
        Called after the certificate has been launched, so that a GPU need not wait for the host. It may
        complete `stats`. It returns an answer that replaces this one, or None.
    """

    col_of_row: NDArray[np.int32]
    col_dual: NDArray
    stats: Mapping[str, int | float] = field(default_factory=dict)
    finish: Callable[[], Answer | None] = lambda: None


class AbstractAssignmentSolver(ABC):
    """Base class of solvers. Each subclass has its own module, named after the solver."""

    @abstractmethod
    def compute(self, problem: AssignmentProblem) -> Answer:
        """Solve a checked problem; in a perfect matching, all rows must be matched (R <= C).

        Raises
        ------
        ValueError
            If a row that must be matched cannot be.
        """

    is_exact = True
    """Whether the solver finds the optimum; otherwise it is a heuristic."""

    works_on_points = False
    """Whether `compute` accepts `PointCosts`; otherwise they are first converted to a matrix."""

    needs_matrix = False
    """Whether it converts sparse costs to a matrix; then large ones are split, see `components`."""

    is_near_linear = True
    """Whether its time is about linear in the problem size, so that several problems may be combined."""

    def with_workers(self, workers: int) -> AbstractAssignmentSolver:  # noqa: ARG002
        """The solver with this number of threads, if it has such a setting and none was chosen."""
        return self

    def works_on_device(self, problem: AssignmentProblem) -> bool:  # noqa: ARG002
        """Whether there are GPU kernels for this problem; otherwise it is solved on the host."""
        return False
