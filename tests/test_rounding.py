"""Real costs of very different size: rounding is measured by those that matter, and no gap is hidden."""

import numpy as np
import pytest
from problems import FAMILIES
from scipy.optimize import linear_sum_assignment

from outbid import AssignmentProblem, DenseCosts, Status, assign
from outbid.assignment import SOLVERS, AbstractAssignmentSolver, solver_named
from outbid.assignment.bid_and_augment import BidAndAugment
from outbid.assignment.dense.sparsified import Sparsified
from outbid.assignment.papers.hungarian import Hungarian

EXACT = [solver_named(name) for name in SOLVERS if solver_named(name).is_exact]


def mostly_small(shape: tuple[int, int], large: float) -> np.ndarray:
    """Costs below 1, and three of ten that stand for forbidden pairs."""
    rng = np.random.default_rng(14)
    costs = rng.random(shape)
    costs[rng.random(shape) < 0.3] = large
    return costs


@pytest.mark.smoke
@pytest.mark.parametrize("size", [60, 300])
@pytest.mark.parametrize("large", [1e9, 1e12])
@pytest.mark.parametrize("solver", [*EXACT, Hungarian("classical")], ids=str)
def test_exact_solvers_are_exact_among_numbers_that_stand_for_forbidden_pairs(
    solver: AbstractAssignmentSolver, large: float, size: int
):
    costs = mostly_small((size, size), large)
    answer = assign(AssignmentProblem(DenseCosts(costs)), solver)
    assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)
    assert abs(answer.gap) < 1e-8 * answer.primal_cost
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize(
    "family", ["real_uniform", "distances_in_3d", "clustered_in_2d", "low_rank", "duplicate_rows"]
)
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_costs_that_defeat_candidates_are_solved_among_them(family, share):
    rng = np.random.default_rng(16)
    costs = 0.1 * FAMILIES[family](rng, 420, 420)
    costs[rng.random(costs.shape) < share] = 1e14
    answer = assign(AssignmentProblem(DenseCosts(costs)), "sparsified")
    assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)
    assert abs(answer.gap) < 1e-10 * answer.primal_cost
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_usual_need_not_be_a_number_of_the_type(dtype, seed):
    rng = np.random.default_rng(seed)
    costs = (10.0 ** rng.uniform(-4, 4, (8, 12))).astype(dtype)
    answer = assign(AssignmentProblem(DenseCosts(costs)))
    best = costs[linear_sum_assignment(costs)].astype(float).sum()
    assert answer.primal_cost == pytest.approx(best, rel=1e-12)


def test_a_bound_of_rounded_duals_is_no_proof():
    class Coarse(BidAndAugment):
        def compute(self, problem):
            answer = super().compute(problem)
            return type(answer)(answer.col_of_row[[1, 0, *range(2, 50)]], answer.col_dual - 1e16, {})

    problem = AssignmentProblem(DenseCosts(np.random.default_rng(17).random((50, 50))))
    answer = assign(problem, Coarse())
    assert answer.primal_cost > 1.1 * assign(problem).primal_cost
    assert answer.status is Status.FEASIBLE


def test_pairs_that_are_better_by_less_than_the_rounding_of_large_numbers_are_found():
    costs = mostly_small((300, 400), 1e15)
    answer = assign(AssignmentProblem(DenseCosts(costs)), Sparsified(of_row=2, of_col=1))
    assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)


def test_large_numbers_that_must_be_paid_are_what_rounding_is_measured_by():
    costs = mostly_small((80, 80), 1e9)
    costs[:20] = 1e9
    for solver in [*EXACT, Hungarian("classical")]:
        answer = assign(AssignmentProblem(DenseCosts(costs)), solver)
        assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)
        assert answer.status is Status.OPTIMAL
