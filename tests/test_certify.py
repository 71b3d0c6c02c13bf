"""An answer that is called optimal is: checked by an exact rational solver, at costs of any size."""

from fractions import Fraction
from itertools import permutations

import certify
import numpy as np
import pytest
from exact_assignment import least_cost
from scipy.optimize import linear_sum_assignment

from outbid import AssignmentProblem, DenseCosts, Status, assign
from outbid.assignment import SOLVERS, solver_named

EXACT = [name for name in SOLVERS if solver_named(name).is_exact and name != certify.HANGS]


@pytest.mark.smoke
def test_the_exact_solver_is_exact() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        costs = 10.0 ** rng.integers(-9, 9, (4, 5)) * rng.random((4, 5))
        exact = [[Fraction(v) for v in row] for row in costs.tolist()]
        best = min(sum(exact[i][j] for i, j in enumerate(order)) for order in permutations(range(5), 4))
        assert least_cost(AssignmentProblem(DenseCosts(costs))) == best


def test_no_answer_claims_to_be_optimal_and_is_not() -> None:
    found = certify.small(1, 400)
    assert [name for name in found if "wrong" in name] == []
    assert sum(count for name, count in found.items() if name.endswith(": right")) > 1500


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("shape", [(30, 30), (30, 24), (24, 30)])
@pytest.mark.parametrize("level", [1e9, 1e12, 1e15])
def test_huge_unmatched_costs_hide_no_difference(solver: str, shape: tuple[int, int], level: float) -> None:
    costs = np.random.default_rng(0).random(shape)
    sides = (np.full(length, level) for length in shape)
    answer = assign(AssignmentProblem(DenseCosts(costs), *sides), solver)
    assert answer.pair_cost.sum() == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)
    assert answer.status is Status.OPTIMAL
