"""What every solver is: one method, `compute`, from a checked problem to a matching and column duals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .problem import AssignmentProblem


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver hands to the door, which certifies it.

    Parameters
    ----------
    col_of_row : (R,) int32 array
        Column of each row, -1 if unmatched.
    col_dual : (C,) int64 or float64 array
        Any values; the better they are, the better the bound.
    stats : mapping
        What the solver counted.
    finish : callable
        Called when the proof is on its way, so that a GPU need not wait for the host to ask how it went: may
        complete `stats`, and returns the answer that stands in place of this one, None if this one stands.
    """

    col_of_row: NDArray[np.int32]
    col_dual: NDArray
    stats: Mapping[str, int | float] = field(default_factory=dict)
    finish: Callable[[], Answer | None] = lambda: None


class AbstractAssignmentSolver(ABC):
    """Base of the solvers. A subclass stands in a module of its own, named like the solver."""

    @abstractmethod
    def compute(self, problem: AssignmentProblem) -> Answer:
        """Solve a checked problem; a perfect matching is asked of all rows (R <= C).

        Raises
        ------
        ValueError
            If some row cannot be matched that must be.
        """

    is_exact = True
    """Whether it finds the optimum; else it is a heuristic."""

    works_on_points = False
    """Whether `compute` takes `PointCosts`; else they are made a matrix before."""

    needs_matrix = False
    """Whether it makes a matrix of sparse costs; large ones are given to it in parts, see `components`."""

    is_near_linear = True
    """Whether its time grows about as the problem does, so that several problems may be solved as one."""

    def with_workers(self, workers: int) -> AbstractAssignmentSolver:  # noqa: ARG002
        """The same solver with so many threads, if it has a number of them and none was chosen."""
        return self

    def works_on_device(self, problem: AssignmentProblem) -> bool:  # noqa: ARG002
        """Whether there are GPU kernels for this problem; without, it is solved on the host."""
        return False
