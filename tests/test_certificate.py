"""The door believes no solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from outbid import AssignmentProblem, DenseCosts, Status, assign
from outbid.assignment import AbstractAssignmentSolver, Answer


@dataclass(frozen=True)
class Liar(AbstractAssignmentSolver):
    """Returns the answer that it holds."""

    col_of_row: tuple[int, ...]

    def compute(self, problem: AssignmentProblem) -> Answer:
        return Answer(np.array(self.col_of_row, np.int32), np.zeros(problem.shape[1], np.int64))


def small(kind: str) -> AssignmentProblem:
    costs = DenseCosts(np.array([[np.inf, 1], [1, 5]]))
    return AssignmentProblem(costs if kind == "dense" else costs.sparse(), np.full(2, 2.0), np.full(2, 2.0))


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize(("lie", "said"), [((1, 1), "column twice"), ((0, 1), "forbidden pair")])
def test_an_answer_that_is_no_matching_is_refused(kind, lie, said):
    with pytest.raises(ValueError, match=said):
        assign(small(kind), Liar(lie))


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_matching_that_costs_too_much_is_feasible_and_no_more(kind):
    answer = assign(small(kind), Liar((1, -1)))
    assert (answer.primal_cost, answer.status) == (5, Status.FEASIBLE)
    assert answer.pair_cost.tolist() == [1, 0]
    assert answer.gap >= 3
