"""Real costs of very different size: rounding is measured by those that matter, and no gap is hidden."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from outbid.tracker import AssignmentProblem, DenseCosts, Status, assign
from outbid.tracker.assign import AbstractAssignmentSolver, solver_named
from outbid.tracker.assign.hungarian import Hungarian
from outbid.tracker.assign.sparsified import Sparsified

EXACT = [*map(solver_named, ("bid_and_augment", "sparsified", "hungarian", "jonker_volgenant"))]


def mostly_small(shape: tuple[int, int], large: float) -> np.ndarray:
    """Costs below 1, and three of ten that stand for forbidden pairs."""
    rng = np.random.default_rng(14)
    costs = rng.random(shape)
    costs[rng.random(shape) < 0.3] = large
    return costs


@pytest.mark.parametrize("size", [60, 300])
@pytest.mark.parametrize("large", [1e9, 1e12])
@pytest.mark.parametrize("solver", [*EXACT, Hungarian("classical")], ids=str)
def test_exact_solvers_are_exact_among_numbers_that_stand_for_forbidden_pairs(
    solver: AbstractAssignmentSolver, large: float, size: int
):
    costs = mostly_small((size, size), large)
    answer = assign(AssignmentProblem(DenseCosts(costs)), solver)
    assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)
    assert answer.gap < 1e-11
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize("large", [1e6, 1e9, 1e12])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_an_auction_that_goes_by_the_largest_cost_claims_no_proof(large, kind):
    costs = DenseCosts(mostly_small((100, 100), large))
    answer = assign(AssignmentProblem(costs if kind == "dense" else costs.sparse()), "auction")
    assert answer.gap > 1e-9
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
