"""Deep Greedy Switching: no exchange of two is left, the cost is near the optimum and above its bound."""

import time

import numpy as np
import pytest
from problems import FAMILIES, gated, moved_cloud, optional

from outbid import AssignmentProblem, DenseCosts, PointCosts, Status, assign
from outbid.assignment.papers import greedy_switching_cpu
from outbid.assignment.papers.greedy_switching import GreedySwitching, _Switching
from outbid.assignment.points import dense_of

VARIANTS = {
    f"{'parallel' if parallel else 'sequential'}, {start} start": GreedySwitching(parallel, start)
    for parallel in (False, True)
    for start in ("random", "greedy")
}


def geom(size: int, seed: int) -> AssignmentProblem:
    """Roverso et al.'s instances: distances within one set of points in a square, as large as possible."""
    return AssignmentProblem(DenseCosts(FAMILIES["geom"](np.random.default_rng(seed), size, size)))


@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_geom_is_within_six_per_mille(solver, seed):
    problem = geom(300, seed)
    best = assign(problem, "sparsified").primal_cost
    answer = assign(problem, solver)
    assert best - 1e-9 <= answer.primal_cost <= best * (1 - 0.006)
    assert answer.dual_cost <= best + 1e-9
    assert answer.gap < 0.01 * abs(best)


@pytest.mark.nightly
def test_the_worst_of_ten_seeds_is_within_six_per_mille():
    for seed in range(10):
        problem = geom(1000, seed)
        best = assign(problem, "sparsified").primal_cost
        for start in ("random", "greedy"):
            assert assign(problem, GreedySwitching(start=start)).primal_cost <= best * (1 - 0.006)


@pytest.mark.smoke
@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", [(40, 40), (25, 40), (40, 25)])
def test_no_exchange_of_two_is_left(family, shape, solver):
    costs = FAMILIES[family](np.random.default_rng(1), *shape)
    answer = assign(AssignmentProblem(DenseCosts(costs)), solver)
    i = np.nonzero(answer.col_of_row >= 0)[0]
    j = answer.col_of_row[i]
    assert len(i) == min(shape)
    exchanged = costs[np.ix_(i, j)] + costs[np.ix_(i, j)].T
    held = costs[i, j][:, None] + costs[i, j]
    assert (exchanged >= held - 1e-12).all()
    free_col, free_row = np.setdiff1d(np.arange(shape[1]), j), np.setdiff1d(np.arange(shape[0]), i)
    assert (costs[np.ix_(i, free_col)] >= costs[i, j][:, None]).all()
    assert (costs[np.ix_(free_row, j)] >= costs[i, j]).all()


@pytest.mark.smoke
@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("family", FAMILIES)
def test_optional_rows_and_columns_stay_within_the_bounds(family, solver):
    rng = np.random.default_rng(2)
    problem = optional(FAMILIES[family](rng, 50, 40), rng)
    answer, best = assign(problem, solver), assign(problem).primal_cost
    assert answer.dual_cost - 1e-9 <= best <= answer.primal_cost + 1e-9
    pair = answer.col_of_row >= 0
    unmatched = problem.row_unmatched[pair] + problem.col_unmatched[answer.col_of_row[pair]]
    assert (answer.pair_cost[pair] < unmatched).all()


def test_particles_are_linked_nearly_as_well_as_exactly():
    problem = gated(*moved_cloud(np.random.default_rng(3), 300, 0.3), 1.0)
    answer, best = assign(problem, "greedy_switching"), assign(problem).primal_cost
    assert best <= answer.primal_cost <= 1.05 * best


def test_a_deadline_gives_a_complete_matching_that_more_time_improves():
    problem = geom(400, 4)
    start = time.monotonic()
    early = assign(problem, GreedySwitching(deadline=0.0))
    assert time.monotonic() - start < 5
    late = assign(problem, GreedySwitching())
    assert len(np.unique(early.col_of_row)) == 400
    assert early.stats["switches"] == 0
    assert late.primal_cost < 1.05 * early.primal_cost
    assert late.primal_cost >= early.dual_cost


@pytest.mark.parametrize("kind", ["matrix", "points"])
def test_loading_kernels_takes_no_share_of_a_deadline(kind, monkeypatch):
    evaluate, loaded = greedy_switching_cpu.evaluate_shared, []

    def slow_at_first(*given):
        if not loaded:
            loaded.append(time.sleep(1))
        evaluate(*given)

    monkeypatch.setattr(greedy_switching_cpu, "evaluate_shared", slow_at_first)
    points = PointCosts(*np.random.default_rng(10).random((2, 30, 3)))
    problem = AssignmentProblem(points if kind == "points" else dense_of(points))
    assert assign(problem, GreedySwitching(deadline=0.9)).stats["switches"] > 0


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("start", ["random", "greedy"])
def test_a_deadline_is_kept_by_what_takes_long(parallel, start):
    rng = np.random.default_rng(7)
    problem = AssignmentProblem(PointCosts(rng.random((3000, 3)), rng.random((3000, 3))))
    assign(AssignmentProblem(PointCosts(*[rng.random((9, 3))] * 2)), GreedySwitching(parallel, start))
    begun = time.monotonic()
    answer = assign(problem, GreedySwitching(parallel, start, deadline=0.2))
    # The certificate comes on top, and the machine may be busy.
    assert time.monotonic() - begun < 5
    assert len(np.unique(answer.col_of_row)) == 3000
    assert answer.gap > 0


@pytest.mark.smoke
@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("metric", ["euclidean", "squared"])
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_points_are_switched_as_their_matrix(axes, metric, solver):
    rng = np.random.default_rng(8)
    points = PointCosts(rng.random((60, axes)), rng.random((50, axes)), metric)
    for given in ((), (np.full(60, 0.02), np.full(50, 0.03))):
        here = assign(AssignmentProblem(points, *given), solver)
        stored = assign(AssignmentProblem(dense_of(points), *given), solver)
        np.testing.assert_array_equal(here.col_of_row, stored.col_of_row)
        assert here.primal_cost == stored.primal_cost


def test_points_need_no_matrix(monkeypatch):
    monkeypatch.setattr("outbid.assignment.points.dense_of", None)
    rng = np.random.default_rng(9)
    problem = AssignmentProblem(PointCosts(rng.random((200, 3)), rng.random((150, 3))))
    assert assign(problem, GreedySwitching(parallel=True)).gap > 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("solver", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e12])
def test_sums_that_differ_by_rounding_alone_are_not_exchanged_for_ever(scale, solver):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        costs = scale * (rng.random((30, 1)) + rng.random((1, 30)))
        answer = assign(AssignmentProblem(DenseCosts(costs)), solver)
        assert answer.status is Status.OPTIMAL
        costs[rng.random(costs.shape) < 0.2] = np.inf
        unmatched = np.full(30, 3 * scale)
        assert assign(AssignmentProblem(DenseCosts(costs), unmatched, unmatched), solver).gap > -1e-12 * scale


def test_forbidden_pairs_are_left_or_refused():
    costs = np.full((6, 6), np.inf)
    costs[np.arange(6), [1, 2, 3, 4, 5, 0]] = 1.0
    costs[0, 0] = 9.0
    assert assign(AssignmentProblem(DenseCosts(costs)), GreedySwitching(seed=3)).primal_cost == 6
    answer = assign(
        AssignmentProblem(DenseCosts(costs), np.full(6, 4.0), np.full(6, 4.0)), "greedy_switching"
    )
    assert answer.primal_cost == 6
    costs[1] = costs[0]
    costs[2, 1:] = np.inf
    costs[0, 0] = np.inf
    with pytest.raises(ValueError, match="Choose an exact solver"):
        assign(AssignmentProblem(DenseCosts(costs)), GreedySwitching(seed=3))


def test_an_unknown_start_is_refused():
    with pytest.raises(ValueError, match="random, greedy"):
        assign(geom(5, 0), GreedySwitching(start="best"))
    with pytest.raises(ValueError, match="shared, global"):
        assign(geom(5, 0), GreedySwitching(evaluation="local"))


def test_difference_evaluation_ends_when_time_is_over():
    work = _Switching(geom(60, 1), "shared")
    work.take_any(np.random.default_rng(0))
    work._step = 20
    over = iter([False, True])
    work.evaluate(lambda: next(over))
    assert work.state.row_gain[:20].any()
    assert not work.state.row_gain[20:].any()
    assert not work.state.col_gain.any()
