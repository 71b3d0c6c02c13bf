"""Date & Nagi's two variants: optimal, proved, with the counts of their stages."""

import numpy as np
import pytest
from problems import FAMILIES
from scipy.optimize import linear_sum_assignment

from outbid import AssignmentProblem, DenseCosts, assign
from outbid.assignment.papers import hungarian_cpu
from outbid.assignment.papers.hungarian import Hungarian, _Search
from outbid.compute.threads import Team

VARIANTS = ("tree", "classical")


@pytest.mark.smoke
@pytest.mark.parametrize("variant", VARIANTS)
def test_many_paths_are_found_in_one_iteration_and_every_stage_is_timed(variant):
    costs = np.random.default_rng(5).integers(0, 20, (200, 200))
    stats = assign(AssignmentProblem(DenseCosts(costs)), Hungarian(variant)).stats
    assert stats["paths"] == 200
    assert stats["iterations"] < 20
    stages = {name for name in stats if name.endswith("_seconds")}
    search = {"tree": {"dual_update"}, "classical": {"compress"}}[variant]
    common = {"initial_reduction", "optimality_check", "forward_pass", "reverse_pass", "augmentation_pass"}
    assert stages >= {f"{name}_seconds" for name in search | common}
    assert all(stats[name] >= 0 for name in stages)


@pytest.mark.smoke
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_counts_of_table_2_add_up(variant):
    costs = np.random.default_rng(6).integers(0, 200, (200, 200))
    stats = assign(AssignmentProblem(DenseCosts(costs)), Hungarian(variant)).stats
    later = sum(count for name, count in stats.items() if name.startswith("paths_"))
    assert stats["dual_updates"] > 0
    assert 100 < stats["initial_assignments"] < 200
    assert stats["initial_assignments"] + later == stats["paths"] == 200


@pytest.mark.smoke
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(90, 90), (70, 130), (3, 200)])
@pytest.mark.parametrize("family", ["uniform_integers", "few_integers", "real_uniform", "two_costs"])
def test_threads_change_no_bit(family, shape, variant, monkeypatch):
    costs = DenseCosts(FAMILIES[family](np.random.default_rng(7), *shape))
    alone = assign(AssignmentProblem(costs), Hungarian(variant, workers=1))
    monkeypatch.setattr(hungarian_cpu, "_MANY", 0)
    for workers in (2, 3, 7):
        together = assign(AssignmentProblem(costs), Hungarian(variant, workers))
        np.testing.assert_array_equal(together.col_of_row, alone.col_of_row)
        np.testing.assert_array_equal(together.col_dual, alone.col_dual)
        for name in ("iterations", "dual_updates", "passes", "rows_scanned"):
            assert together.stats[name] == alone.stats[name]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scale", [2**27, 2**28, 2**40, -(2**45)])
def test_integers_too_large_for_narrow_slacks(scale, variant):
    costs = np.random.default_rng(9).integers(0, 100, (60, 60)) * scale
    answer = assign(AssignmentProblem(DenseCosts(costs)), Hungarian(variant))
    assert answer.primal_cost == costs[linear_sum_assignment(costs)].sum()
    assert answer.gap == 0


def test_the_least_and_largest_narrow_integers():
    low, high = 1 - 2**28, 2**28 - 1
    costs = np.random.default_rng(10).choice(np.array([low, 0, high], np.int32), (40, 40))
    costs[:20, :25] = high
    for variant in VARIANTS:
        answer = assign(AssignmentProblem(DenseCosts(costs)), Hungarian(variant))
        assert answer.primal_cost == costs[linear_sum_assignment(costs.astype(float))].sum(dtype=np.int64)
        assert answer.gap == 0


def test_initial_reduction_and_compression_hold_the_pairs_without_slack():
    costs = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    low, high = np.empty((2, 3), np.int64)
    hungarian_cpu.row_extremes(costs, low, high, np.int64(4), Team(1))
    assert low.tolist() == [1, 0, 2]
    assert high.tolist() == [4, 2, 3]
    forest = _Search(costs, Team(1)).forest
    assert forest.row_dual.tolist() == [1, 0, 2]
    assert forest.col_dual.tolist() == [1, 0, 0]
    indptr, indices = hungarian_cpu.compress(costs, forest, np.int64(0), Team(1))
    assert indptr.tolist() == [0, 1, 2, 5]
    assert indices.tolist() == [1, 1, 0, 1, 2]


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="tree, classical"):
        assign(AssignmentProblem(DenseCosts(np.ones((2, 2)))), Hungarian("fast"))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("cols", [50, 70])
def test_rows_that_reach_all_columns_alike_share_them_out_at_once(cols, variant):
    answer = assign(AssignmentProblem(DenseCosts(np.full((50, cols), 3))), Hungarian(variant))
    assert answer.stats["iterations"] == 1
    assert answer.col_of_row.tolist() == list(range(50))
