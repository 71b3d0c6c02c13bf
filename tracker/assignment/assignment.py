"""Assignment: a matching with its certificate."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module
from . import certificate
from .problem import AssignmentProblem


class Status(enum.Enum):
    """Status of an assignment, as a sentence."""

    OPTIMAL = "The assignment is optimal: its cost equals the lower bound."
    FEASIBLE = (
        "The assignment is valid; its cost exceeds the lower bound by the gap. An exact solver may lower it."
    )

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Assignment:
    """The column of each row, and dual variables that bound the cost of every matching from below.

    Parameters
    ----------
    problem : AssignmentProblem
        R rows and C columns.
    col_of_row : (R,) int32 array
        Column of each row, -1 if unmatched.
    row_dual : (R,) int64 or float64 array
        u of the certificate: u_i <= row_unmatched_i and u_i + v_j <= c_ij.
    col_dual : (C,) int64 or float64 array
        v of the certificate: v_j <= col_unmatched_j.
    status : Status
    stats : mapping
        Counters of the solver.
    """

    problem: AssignmentProblem
    col_of_row: NDArray[np.int32]
    row_dual: NDArray
    col_dual: NDArray
    status: Status
    stats: Mapping[str, int | float] = field(default_factory=dict)

    @cached_property
    def row_of_col(self) -> NDArray[np.int32]:
        """(C,) int32: row of each column, -1 if unmatched."""
        xp = array_module(self.col_of_row)
        row_of_col = xp.full(self.problem.shape[1], -1, dtype=np.int32)
        matched = xp.nonzero(self.col_of_row >= 0)[0]
        row_of_col[self.col_of_row[matched]] = matched
        return row_of_col

    @cached_property
    def pair_cost(self) -> NDArray:
        """(R,) cost of the pair of each row; 0 if the row is unmatched."""
        return certificate.pair_costs(self.problem, self.col_of_row)

    @cached_property
    def _cost_and_bound(self) -> tuple[int | float, int | float]:
        return certificate.cost_and_bound(self.problem, self.col_of_row, self.row_dual, self.col_dual)

    @property
    def primal_cost(self) -> int | float:
        """Cost of the matching, including unmatched rows and columns."""
        return self._cost_and_bound[0]

    @property
    def dual_cost(self) -> int | float:
        """Lower bound on the cost of every matching: the sum of the duals."""
        return self._cost_and_bound[1]

    @property
    def gap(self) -> int | float:
        """Upper bound on the difference between the cost and the optimum; 0 proves optimality."""
        return self.primal_cost - self.dual_cost

    def _repr_html_(self) -> str:
        """A short table, for notebooks."""
        facts = {
            "rows × columns": " × ".join(str(length) for length in self.problem.shape),
            "matched": int((self.col_of_row >= 0).sum()),
            "cost": self.primal_cost,
            "lower bound": self.dual_cost,
            "gap": self.gap,
            "status": self.status,
        }
        rows = "".join(f"<tr><th>{name}</th><td>{fact}</td></tr>" for name, fact in facts.items())
        return f"<table><caption>Assignment</caption>{rows}</table>"

    @cached_property
    def margin(self) -> NDArray:
        """(R,) lower bound on the rise of the optimal cost if a row's pair were forbidden; 0 if unmatched.

        Without the pair, both its row and its column need another choice. So the optimum rises by at least
        the smallest slack among the other choices of the row plus that among those of the column.
        """
        return certificate.margins(self.problem, self.col_of_row, self.row_dual, self.col_dual)
