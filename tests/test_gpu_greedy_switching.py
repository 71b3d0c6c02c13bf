"""The GPU's switches against the CPU's: the same matching after every step; run with -m gpu."""

import time
from dataclasses import replace

import numpy as np
import pytest
from problems import FAMILIES, gated, moved_cloud, optional

from outbid import AssignmentProblem, DenseCosts, PointCosts, SparseCosts, assign
from outbid.assignment.papers.greedy_switching import GreedySwitching
from outbid.assignment.problem import on_gpu
from outbid.compute.arrays import to_host

pytestmark = pytest.mark.gpu
VARIANTS = {
    "sequential": GreedySwitching(), "sequential, greedy start": GreedySwitching(start="greedy"),
    "sequential, mixed": GreedySwitching(mixed=True), "parallel": GreedySwitching(parallel=True),
    "parallel, in global memory": GreedySwitching(parallel=True, evaluation="global"),
    "parallel, mixed": GreedySwitching(parallel=True, mixed=True),
}  # fmt: skip


def assert_same(problem: AssignmentProblem, solver: GreedySwitching) -> None:
    here, there = assign(problem, replace(solver, mixed=False)), assign(on_gpu(problem), solver)
    np.testing.assert_array_equal(to_host(there.col_of_row), here.col_of_row)
    assert there.stats == here.stats
    assert there.primal_cost == here.primal_cost
    assert there.gap == pytest.approx(here.gap, rel=1e-9, abs=1e-9 * abs(here.primal_cost) + 1e-9)


@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("family", FAMILIES)
def test_every_variant_switches_as_on_the_cpu(family, solver):
    rng = np.random.default_rng(1)
    for shape in ((40, 40), (25, 40), (40, 25)):
        costs = FAMILIES[family](rng, *shape)
        assert_same(AssignmentProblem(DenseCosts(costs)), solver)
        assert_same(optional(costs, rng), solver)


@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_every_type_of_costs(dtype, solver):
    rng = np.random.default_rng(2)
    assert_same(AssignmentProblem(DenseCosts(rng.integers(0, 500, (300, 270)).astype(dtype))), solver)


@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("metric", ["euclidean", "squared"])
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_points_are_switched_without_a_matrix(axes, metric, solver):
    rng = np.random.default_rng(3)
    problem = AssignmentProblem(PointCosts(rng.random((70, axes)), rng.random((60, axes)), metric))
    assert_same(problem, solver)
    assert_same(AssignmentProblem(problem.costs, np.full(70, 0.02), np.full(60, 0.03)), solver)


def test_sparse_problems_are_filled():
    problem = gated(*moved_cloud(np.random.default_rng(3), 200, 0.3), 1.0)
    assert_same(problem, GreedySwitching(parallel=True))
    assert isinstance(problem.costs, SparseCosts)


def test_forbidden_pairs_are_left_or_refused():
    costs = np.full((6, 6), np.inf)
    costs[np.arange(6), [1, 2, 3, 4, 5, 0]] = 1.0
    costs[0, 0] = 9.0
    assert_same(AssignmentProblem(DenseCosts(costs)), GreedySwitching(seed=3))
    costs[1] = costs[0]
    costs[2, 1:] = np.inf
    costs[0, 0] = np.inf
    with pytest.raises(ValueError, match="Choose an exact solver"):
        assign(on_gpu(AssignmentProblem(DenseCosts(costs))), GreedySwitching(seed=3))


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("start", ["random", "greedy"])
def test_a_deadline_gives_a_complete_matching(start, parallel):
    rng = np.random.default_rng(4)
    problem = on_gpu(AssignmentProblem(PointCosts(rng.random((500, 3)), rng.random((500, 3)))))
    begun = time.monotonic()
    early = assign(problem, GreedySwitching(parallel, start, deadline=0.0))
    assert time.monotonic() - begun < 10
    assert len(np.unique(to_host(early.col_of_row))) == 500
    assert early.stats["switches"] == 0
    assert early.dual_cost <= assign(problem, GreedySwitching(parallel)).primal_cost <= early.primal_cost
