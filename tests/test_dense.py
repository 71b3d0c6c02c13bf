"""The dense solver: exact whatever its candidates are, for every dtype, shape and kind of tie."""

import numpy as np
import pytest
from problems import FAMILIES
from scipy.optimize import linear_sum_assignment

from outbid import AssignmentProblem, DenseCosts, SparseCosts, Status, assign
from outbid.assignment.matrix import DenseMatrix
from outbid.assignment.papers.auction import rough_duals


def scipy_cost(costs) -> float:
    return costs[linear_sum_assignment(costs)].sum()


def test_integers_without_a_perfect_matching_among_sparse_pairs_are_reported():
    """A path of falling duals must not end at a row that has to be matched."""
    rows = np.repeat(np.arange(40), 16)
    cols = np.tile(np.arange(16, dtype=np.int32), 40)
    costs = SparseCosts(np.arange(0, 641, 16), cols, (rows + 1) * (cols + 1), (40, 40))
    with pytest.raises(ValueError, match="infeasible"):
        assign(AssignmentProblem(costs))


def test_integer_costs_with_real_unmatched_costs():
    rng = np.random.default_rng(6)
    costs = rng.integers(0, 1000, (80, 90)).astype(np.int32)
    problem = AssignmentProblem(DenseCosts(costs), rng.random(80) * 10, rng.random(90) * 10)
    answer = assign(problem, "sparsified")
    assert answer.primal_cost == pytest.approx(assign(problem, "bid_and_augment").primal_cost, rel=1e-12)
    assert answer.status is Status.OPTIMAL


def test_costs_shifted_by_row_and_column_stay_sparse():
    """Candidates are chosen by reduced cost, which knows no such shift."""
    rng = np.random.default_rng(7)
    costs = rng.integers(0, 3000, (300, 300))
    shift = rng.integers(0, 10**6, 300)
    plain = assign(AssignmentProblem(DenseCosts(costs)), "sparsified")
    shifted = assign(AssignmentProblem(DenseCosts(costs + shift[:, None] + shift)), "sparsified")
    assert shifted.primal_cost == plain.primal_cost + 2 * shift.sum()
    assert shifted.gap == 0
    assert shifted.stats["candidates"] < 2 * plain.stats["candidates"]


@pytest.mark.smoke
@pytest.mark.parametrize("scale", [1, 2**27, 2**40])
def test_kernels_find_what_sorting_finds(scale):
    rng = np.random.default_rng(8)
    matrix = DenseMatrix(rng.integers(-50, 50, (90, 300)) * scale)
    v, u = rng.integers(-50, 50, 300) * scale, np.full(90, 10 * scale)
    reduced = matrix.values - v
    nearest, count = matrix.nearest_of_rows(v, u, 7)
    for i in range(90):
        expected = np.sort(reduced[i][reduced[i] < u[i]])[:7]
        np.testing.assert_array_equal(reduced[i, nearest[i, : count[i]]], expected)
    shifted = matrix.values - u[:, None]
    nearest, count, least = matrix.nearest_of_cols(u, v, 7)
    for j in range(300):
        expected = np.sort(shifted[:, j][shifted[:, j] < v[j]])[:7]
        np.testing.assert_array_equal(shifted[nearest[j, : count[j]], j], expected)
        assert least[j] == min([*expected, v[j]])
    slack = u.copy()
    matrix.lower_to_slack(v, slack)
    np.testing.assert_array_equal(slack, np.minimum(u, reduced.min(axis=1)))


def test_narrow_keys_give_the_same_candidates_as_wide_ones():
    rng = np.random.default_rng(9)
    values = rng.integers(-1000, 1000, (70, 500))
    v, limit = rng.integers(-1000, 1000, 500), rng.integers(-1500, 1500, 70)
    narrow = DenseMatrix(values.astype(np.int32)).nearest_of_rows(v, limit, 9)
    wide = DenseMatrix(values).nearest_of_rows(v, limit, 9)
    np.testing.assert_array_equal(narrow[1], wide[1])
    filled = np.arange(9) < wide[1][:, None]
    np.testing.assert_array_equal(narrow[0][filled], wide[0][filled])


@pytest.mark.smoke
@pytest.mark.parametrize("family", ["machol_wien", "low_rank", "geom", "clustered_in_2d", "two_costs"])
def test_rough_duals_bound_the_optimum_closely(family):
    costs = FAMILIES[family](np.random.default_rng(10), 300, 300)
    v = rough_duals(AssignmentProblem(DenseCosts(costs)))
    bound = (costs - v).min(axis=1).sum() + v.sum()
    assert bound <= scipy_cost(costs) + 1e-9
    assert bound >= scipy_cost(costs) - 0.3 * np.ptp(costs)


def test_rough_duals_of_a_matrix_without_a_perfect_matching_are_refused():
    costs = np.where(np.arange(90) < 30, np.random.default_rng(11).random((90, 90)), np.inf)
    with pytest.raises(ValueError, match="infeasible"):
        rough_duals(AssignmentProblem(DenseCosts(costs)))


@pytest.mark.parametrize("family", ["rough_products", "low_rank"])
def test_hard_costs_are_proved_after_few_passes(family):
    costs = FAMILIES[family](np.random.default_rng(12), 600, 600)
    answer = assign(AssignmentProblem(DenseCosts(costs)), "sparsified")
    assert answer.primal_cost == scipy_cost(costs)
    assert answer.gap == 0
    assert answer.stats["attempts"] == 2
    assert answer.stats["candidates"] < 60 * 600
