"""The GPU's kernels against the CPU's: the same pairs, the same cost, the same links; run with -m gpu."""

from importlib import import_module

import numpy as np
import pytest
from problems import gated, moved_cloud
from scenes import blinking

from outbid import AssignmentProblem, Detections, SparseCosts, TrackingSettings, assign, match, track
from outbid.assignment.exact_margins import exact_margins
from outbid.compute.arrays import to_device, to_host
from outbid.compute.cuda import launch
from outbid.errors import InputError
from outbid.geometry.gating import pairs_within

pytestmark = pytest.mark.gpu
gpu = import_module("outbid.assignment.bid_and_augment_gpu")


def on_device(problem: AssignmentProblem) -> AssignmentProblem:
    costs = problem.costs
    arrays = [to_device(array) for array in (costs.indptr, costs.indices, costs.values)]
    unmatched = to_device(problem.row_unmatched), to_device(problem.col_unmatched)
    return AssignmentProblem(SparseCosts(*arrays, costs.shape), *unmatched)


def random_sparse(seed: int) -> AssignmentProblem:
    """Small problems of every kind: empty, ties, negative costs, everything unmatched, long rows."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, 60, 2)
    largest = rng.choice([1, 3, 1000])
    allowed = rng.random((rows, cols)) < rng.choice([0.05, 0.3, 1.0])
    values = rng.integers(-largest, largest + 1, (rows, cols)).astype(np.int32)[allowed]
    indptr = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]).astype(np.int64)
    costs = SparseCosts(indptr, np.nonzero(allowed)[1].astype(np.int32), values, (int(rows), int(cols)))
    return AssignmentProblem(costs, *(rng.integers(-largest, largest + 1, n) for n in (rows, cols)))


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_problems_cost_the_same_with_gap_zero(first):
    for seed in range(first, first + 50):
        problem = random_sparse(seed)
        there, here = assign(on_device(problem)), assign(problem)
        assert there.primal_cost == here.primal_cost, seed
        assert there.gap == 0
        np.testing.assert_array_equal(
            to_host(there.row_of_col)[to_host(there.col_of_row)[to_host(there.col_of_row) >= 0]],
            np.nonzero(to_host(there.col_of_row) >= 0)[0],
        )


@pytest.mark.parametrize(("displacement", "gate"), [(0.2, 0.8), (0.5, 1.5), (1.0, 2.0)])
@pytest.mark.parametrize("full", [1, 2])
def test_gated_clouds_give_the_cpus_links(displacement, gate, full):
    first, second = moved_cloud(np.random.default_rng(1), 20_000, displacement)
    unmatched = full * gate / 2
    here = match(first, second, gate, unmatched_cost=unmatched)
    there = match(to_device(first), to_device(second), gate, unmatched_cost=unmatched)
    assert there.assignment.primal_cost == here.assignment.primal_cost
    assert there.assignment.gap == 0
    np.testing.assert_array_equal(to_host(there.source), here.source)
    np.testing.assert_array_equal(to_host(there.target), here.target)
    np.testing.assert_allclose(to_host(there.cost), here.cost, rtol=1e-15)


def test_candidates_are_the_cpus_to_the_bit():
    rng = np.random.default_rng(2)
    rows, cols = rng.uniform(0, 9, (3000, 3)), rng.uniform(0, 9, (2500, 3))
    rows[:100] = rows[0]
    cols[-1] = 1e7
    starts = np.array([0, 1000, 1000, 3000]), np.array([0, 500, 2000, 2500])
    for offsets in [(0, 0), (1, 1), (-1, 2)]:
        for radius in (0.0, 0.3, 1.1, np.inf):
            here = pairs_within(rows, cols, radius, *starts, offsets)
            there = pairs_within(to_device(rows), to_device(cols), radius, *starts, offsets)
            for name in ("indptr", "indices", "distance2"):
                np.testing.assert_array_equal(to_host(getattr(there, name)), getattr(here, name))
            np.testing.assert_array_equal(to_host(there.cols.order), here.cols.order)


def test_margins_are_lower_bounds_like_the_cpus_and_exact_on_request():
    problem = random_sparse(7)
    answer = assign(on_device(problem))
    exact = exact_margins(answer)
    costs, col_of_row, margin = problem.costs, to_host(answer.col_of_row), to_host(answer.margin)
    for i in np.nonzero(col_of_row >= 0)[0]:
        kept = ~((costs.rows == i) & (costs.indices == col_of_row[i]))
        count = np.bincount(costs.rows[kept], minlength=costs.shape[0])
        without = SparseCosts(
            np.concatenate([[0], np.cumsum(count)]), costs.indices[kept], costs.values[kept], costs.shape
        )
        worse = assign(AssignmentProblem(without, problem.row_unmatched, problem.col_unmatched))
        assert 0 <= margin[i] <= exact[i] == worse.primal_cost - answer.primal_cost


def test_exact_margins_are_the_cpus():
    clouds = moved_cloud(np.random.default_rng(4), 3000, 0.6)
    here, there = match(*clouds, 1.5, exact=True), match(*map(to_device, clouds), 1.5, exact=True)
    np.testing.assert_array_equal(to_host(there.margin), here.margin)
    assert (here.margin > match(*clouds, 1.5).margin).any()


def test_neither_repetition_nor_launch_geometry_change_a_bit(monkeypatch):
    clouds = moved_cloud(np.random.default_rng(3), 30_000, 0.5)
    problem, there = on_device(gated(*clouds, 1.5)), tuple(map(to_device, clouds))
    expected, whole = assign(problem), match(*there, 1.5)
    for k in range(10):
        monkeypatch.setattr(gpu, "_BLOCK", [256, 128, 512][k % 3])
        monkeypatch.setattr(gpu, "_BLOCKS_A_PROCESSOR", [4, 1, 2][k % 3])
        monkeypatch.setattr(gpu, "_WARPS_A_PROCESSOR", [8, 16, 24][k % 3])
        # And of everything else: candidates, costs and the proof.
        monkeypatch.setitem(launch.__kwdefaults__, "block", [256, 512][k % 2])
        monkeypatch.setattr("outbid.geometry.gating_gpu._MOST_BLOCKS", [512, 7, 64][k % 3])
        matched = match(*there, 1.5)
        for name in ("source", "target", "cost", "margin"):
            assert to_host(getattr(matched, name)).tobytes() == to_host(getattr(whole, name)).tobytes()
        again = assign(problem)
        np.testing.assert_array_equal(to_host(again.col_of_row), to_host(expected.col_of_row))
        np.testing.assert_array_equal(to_host(again.col_dual), to_host(expected.col_dual))


def test_searches_too_large_for_the_gpu_end_on_the_host(monkeypatch):
    monkeypatch.setattr(gpu, "_SEARCHES", ((8, 1, 4096, 20), (16, 4, 4096, 0)))
    problem = gated(*moved_cloud(np.random.default_rng(4), 5000, 0.5), 1.5)
    answer = assign(on_device(problem))
    assert answer.gap == 0
    assert answer.primal_cost == assign(problem).primal_cost


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", [0, 1])
def test_points_that_are_no_finite_numbers_are_refused(side, bad):
    clouds = list(moved_cloud(np.random.default_rng(1), 300, 0.2))
    clouds[side][7, 1] = bad
    with pytest.raises(InputError, match="Point 7 of"):
        match(*map(to_device, clouds), 0.8)


@pytest.mark.parametrize("solver", ["greedy", "jonker_volgenant"])
def test_solvers_without_gpu_kernels_answer_on_the_host(solver):
    first, second = moved_cloud(np.random.default_rng(5), 300, 0.3)
    here = match(first, second, 1.0, solver=solver)
    there = match(to_device(first), to_device(second), 1.0, solver=solver)
    np.testing.assert_array_equal(to_host(there.target), here.target)


def walking_movie() -> Detections:
    return blinking(0.05, 0.1, count=500, frames=20, side=8, seed=6).detections


@pytest.mark.parametrize("cost", ["euclidean", "squared"])
def test_movies_get_the_cpus_tracks_gaps_included(cost):
    detections = walking_movie()
    runs = [
        track(detections, TrackingSettings(0.6, cost=cost, max_gap=2, spacing=(1.0, 1.0, 1.1), device=device))
        for device in ("cpu", "gpu")
    ]
    assert [run.settings.device for run in runs] == ["cpu", "gpu"]
    np.testing.assert_array_equal(runs[0].tracks.links, runs[1].tracks.links)
    np.testing.assert_allclose(runs[0].tracks.link_cost, runs[1].tracks.link_cost, rtol=1e-15)
    assert runs[1].stats["worst_gap"] == 0
    assert runs[1].stats["gap_links"] > 0


def test_what_does_not_fit_the_gpu_is_halved_and_ends_on_the_host(monkeypatch):
    detections = walking_movie()
    expected = track(detections, TrackingSettings(0.6, device="cpu")).tracks
    monkeypatch.setattr("outbid.gated.movie.free_device_memory", lambda: 40_000)
    run = track(detections, TrackingSettings(0.6, device="gpu"))
    np.testing.assert_array_equal(run.tracks.links, expected.links)
    assert run.stats["fallbacks"] > 0
