"""Date & Nagi's two variants: optimal, proved, with the counts of their stages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from problems import FAMILIES, gated, moved_cloud, optional
from scipy.optimize import linear_sum_assignment
from strategies import sparse_problems

from outbid.tracker import AssignmentProblem, DenseCosts, Status, assign
from outbid.tracker.assign import hungarian_cpu
from outbid.tracker.assign.hungarian import Hungarian

VARIANTS = ("tree", "classical")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(120, 120), (60, 110), (110, 60)])
@pytest.mark.parametrize("family", FAMILIES)
def test_both_variants_prove_the_optimum(family, shape, variant):
    costs = FAMILIES[family](np.random.default_rng(1), *shape)
    answer = assign(AssignmentProblem(DenseCosts(costs)), Hungarian(variant))
    assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)
    assert answer.status is Status.OPTIMAL
    if costs.dtype.kind == "i":
        assert answer.gap == 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", [(50, 40), (40, 50), (40, 40)])
def test_optional_rows_and_columns(family, shape, variant):
    rng = np.random.default_rng(2)
    problem = optional(FAMILIES[family](rng, *shape), rng)
    answer = assign(problem, Hungarian(variant))
    assert answer.primal_cost == pytest.approx(assign(problem).primal_cost, rel=1e-12)
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=100)
@given(problem=sparse_problems())
def test_optional_sparse_problems_have_gap_zero(variant, problem):
    answer = assign(problem, Hungarian(variant))
    assert answer.primal_cost == assign(problem).primal_cost
    assert answer.gap == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_particles_are_linked_as_by_the_sparse_solver(variant):
    problem = gated(*moved_cloud(np.random.default_rng(3), 200, 0.5), 1.2)
    answer = assign(problem, Hungarian(variant))
    assert answer.gap == 0
    assert answer.primal_cost == assign(problem).primal_cost


@pytest.mark.parametrize("variant", VARIANTS)
def test_forbidden_pairs_and_what_cannot_be_matched(variant):
    rng = np.random.default_rng(4)
    costs = rng.random((60, 60))
    costs[rng.random(costs.shape) < 0.8] = np.inf
    np.fill_diagonal(costs, 9.0)
    answer = assign(AssignmentProblem(DenseCosts(costs)), Hungarian(variant))
    assert answer.primal_cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), rel=1e-12)
    costs[:30, 20:] = np.inf
    for wrong in (costs, np.full((3, 3), np.inf)):
        with pytest.raises(ValueError, match="infeasible"):
            assign(AssignmentProblem(DenseCosts(wrong)), Hungarian(variant))


@pytest.mark.parametrize("variant", VARIANTS)
def test_many_paths_are_found_in_one_iteration_and_every_stage_is_timed(variant):
    costs = np.random.default_rng(5).integers(0, 20, (200, 200))
    stats = assign(AssignmentProblem(DenseCosts(costs)), Hungarian(variant)).stats
    assert stats["paths"] == 200
    assert stats["iterations"] < 60
    stages = {name for name in stats if name.endswith("_seconds")}
    search = {"tree": {"forward_pass_tree"}, "classical": {"compress", "forward_pass"}}[variant]
    common = {"initial_reduction", "optimality_check", "reverse_pass", "augmentation_pass"}
    assert stages >= {f"{name}_seconds" for name in search | common}


def test_compression_holds_the_pairs_without_slack():
    costs = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    row_dual, col_dual = np.zeros((2, 3), np.int64)
    hungarian_cpu.initial_reduction(costs, row_dual, col_dual)
    assert row_dual.tolist() == [1, 0, 2]
    assert col_dual.tolist() == [1, 0, 0]
    indptr, indices = hungarian_cpu.compress(costs, row_dual, col_dual, 100, 0)
    assert indptr.tolist() == [0, 1, 2, 5]
    assert indices.tolist() == [1, 1, 0, 1, 2]


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="tree, classical"):
        assign(AssignmentProblem(DenseCosts(np.ones((2, 2)))), Hungarian("fast"))
