"""The auction: what its epsilon promises, with and without scaling, on square and other problems."""

import numpy as np
import pytest
from problems import FAMILIES, optional
from scipy.optimize import linear_sum_assignment

from outbid import AssignmentProblem, DenseCosts, SparseCosts, Status, assign
from outbid.assignment.papers import auction_cpu
from outbid.assignment.papers.auction import Auction


@pytest.mark.smoke
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


def test_real_duals_far_from_zero_do_not_swallow_bids():
    """A chain in which every row gives way to the next lowers the last dual 20,000 times; there rows tie."""
    size = 20_000
    row = np.arange(size)
    rows = np.concatenate([row[:-2], row[:-2], row[[-2, -2, -1, -1]]])
    cols = np.concatenate([row[:-2], row[1:-1], row[[-2, -1, -2, -1]]]).astype(np.int32)
    values = np.concatenate([np.ones(size - 2), np.zeros(size + 2)])
    order = np.lexsort((cols, rows))
    indptr = np.append(0, np.cumsum(np.bincount(rows)))
    costs = SparseCosts(indptr, cols[order], values[order], (size, size))
    answer = assign(AssignmentProblem(costs), Auction(most_rounds=3_000_000))
    assert answer.primal_cost == size - 2
    assert answer.gap < 1e-6


@pytest.mark.parametrize("first", [0, 1])
def test_a_column_goes_to_its_highest_bidder_who_sets_its_dual(first):
    """Equations 10 and 11, one round: both rows want column 0, which is worth 5 or 3 more to them."""
    costs = np.array([[0, 5], [0, 3]])[[first, 1 - first]]
    v, col_of_row, owner = np.zeros(2, np.int64), np.full(2, -1, np.int32), np.full(2, -1, np.int32)
    limits = np.int64(1), np.int64(2**62), np.int64(9)
    left, rounds, bids = auction_cpu.dense_rounds(
        costs, np.int64(0), np.int64(1), v, col_of_row, owner, *limits, 1
    )
    assert (left, rounds, bids) == (1, 1, 2)
    assert owner.tolist() == [first, -1]
    assert v.tolist() == [-6, 0]


def test_an_integer_spread_too_large_for_a_proof_is_reported():
    costs = np.random.default_rng(0).integers(-(2**52), 2**52, (30, 30))
    answer = assign(AssignmentProblem(DenseCosts(costs)), "auction")
    assert answer.primal_cost - answer.gap <= costs[linear_sum_assignment(costs)].sum() <= answer.primal_cost
    assert (answer.status is Status.OPTIMAL) == (answer.gap == 0)
    assert answer.gap < 30


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_an_auction_comes_back_so_often_that_it_can_be_cancelled(kind, monkeypatch):
    rounds_of, calls = getattr(auction_cpu, f"{kind}_rounds"), []

    def cancelled_at_the_second_call(*given):
        assert given[-1] <= 10_000
        calls.append(given[-1])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rounds_of(*given)

    monkeypatch.setattr(auction_cpu, f"{kind}_rounds", cancelled_at_the_second_call)
    costs = DenseCosts(np.array([[0.0, 0, 1], [0, 0, 1], [0, 0, 1]]))  # three rows fight for two columns
    problem = AssignmentProblem(costs if kind == "dense" else costs.sparse())
    with pytest.raises(KeyboardInterrupt):
        assign(problem, Auction(epsilon=1e-9, scaling=1))
