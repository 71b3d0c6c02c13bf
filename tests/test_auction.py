"""The auction: what its epsilon promises, with and without scaling, on square and other problems."""

from __future__ import annotations

import numpy as np
import pytest
from problems import FAMILIES, gated, moved_cloud, optional
from scipy.optimize import linear_sum_assignment

from outbid.tracker import AssignmentProblem, DenseCosts, Status, assign
from outbid.tracker.assign.auction import Auction


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scaling", [1.0, 4.0])
@pytest.mark.parametrize("share", [0.001, 0.05])
def test_cost_is_within_n_epsilon(family, scaling, share):
    costs = FAMILIES[family](np.random.default_rng(1), 60, 60)
    epsilon = float(share * (np.ptp(costs) + 1))
    answer = assign(AssignmentProblem(DenseCosts(costs)), Auction(epsilon, scaling))
    best = costs[linear_sum_assignment(costs)].sum()
    assert best - 1e-9 <= answer.primal_cost <= best + 60 * epsilon + 1e-9


@pytest.mark.parametrize("family", FAMILIES)
def test_by_default_the_optimum_is_proved(family):
    costs = FAMILIES[family](np.random.default_rng(2), 200, 200)
    answer = assign(AssignmentProblem(DenseCosts(costs)), "auction")
    assert answer.status is Status.OPTIMAL
    assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)
    if costs.dtype.kind == "i":
        assert answer.gap == 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", [(30, 60), (60, 30), (40, 40)])
def test_a_fixed_epsilon_needs_no_square(family, shape):
    """The paper's auction: the smaller side bids, and who rather stays unmatched buys a column of its own."""
    rng = np.random.default_rng(5)
    costs = FAMILIES[family](rng, *shape)
    epsilon = float(0.005 * (np.ptp(costs) + 1))
    for problem in (AssignmentProblem(DenseCosts(costs)), optional(costs, rng)):
        best = assign(problem).primal_cost
        answer = assign(problem, Auction(epsilon, scaling=1))
        assert best - 1e-9 <= answer.primal_cost <= best + max(shape) * epsilon + 1e-9
        assert answer.gap <= max(shape) * epsilon + 1e-9
        assert answer.stats["phases"] == 1


def test_a_fixed_epsilon_below_one_nth_proves_integer_costs():
    rng = np.random.default_rng(6)
    costs = rng.integers(0, 40, (30, 45))
    problem = optional(costs, rng)
    assert assign(problem, Auction(scaling=1)).gap == 0
    assert assign(AssignmentProblem(DenseCosts(costs)), Auction(scaling=1)).gap == 0


def test_constant_costs_take_one_round():
    """Equal rows look for their columns each from a place of its own, so that all win at once."""
    answer = assign(AssignmentProblem(DenseCosts(np.full((50, 50), 3))), Auction(scaling=1))
    assert answer.stats["rounds"] == 1
    assert answer.primal_cost == 150


def test_optional_sparse_problems_of_particles_are_proved():
    problem = gated(*moved_cloud(np.random.default_rng(3), 400, 0.5), 1.2)
    answer = assign(problem, "auction")
    assert answer.gap == 0
    assert answer.primal_cost == assign(problem).primal_cost


def test_forbidden_pairs_are_never_bid_for():
    rng = np.random.default_rng(4)
    costs = rng.random((60, 60))
    costs[rng.random(costs.shape) < 0.8] = np.inf
    np.fill_diagonal(costs, 9.0)
    answer = assign(AssignmentProblem(DenseCosts(costs)), "auction")
    assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)


def test_scaling_saves_most_bids():
    """Three rows that want two columns outbid each other by epsilon until the third column pays."""
    costs = np.array([[0, 0, 100_000], [0, 0, 100_000], [0, 0, 100_000]])
    bids = [
        assign(AssignmentProblem(DenseCosts(costs)), Auction(scaling=s)).stats["bids"] for s in (1.0, 5.0)
    ]
    assert bids[1] * 50 < bids[0]


def test_an_auction_can_be_given_up():
    costs = DenseCosts(np.array([[0, 0, 10**7], [0, 0, 10**7], [0, 0, 10**7]]))
    with pytest.raises(RuntimeError, match="not over after 5 rounds"):
        assign(AssignmentProblem(costs), Auction(scaling=1, most_rounds=5))
