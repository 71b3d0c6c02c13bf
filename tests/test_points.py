"""Costs that are never stored: the answers are those of the matrix, the memory is that of points."""

import tracemalloc
from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from outbid import AssignmentProblem, DenseCosts, PointCosts, Status, assign
from outbid.assignment import SOLVERS, points
from outbid.assignment.matrix import DenseMatrix

METRICS = {"euclidean": "euclidean", "squared": "sqeuclidean"}


def clouds(seed: int, rows: int, cols: int, axes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random((rows, axes)), rng.random((cols, axes))


@pytest.mark.smoke
@pytest.mark.parametrize("solver", sorted({*SOLVERS} - {"greedy", "greedy_switching"}))
@pytest.mark.parametrize("shape", [(40, 40), (25, 50), (50, 25), (0, 3), (1, 1)])
@pytest.mark.parametrize("metric", METRICS)
def test_exact_solvers_reach_the_cost_of_the_matrix(metric, shape, solver):
    a, b = clouds(1, *shape)
    answer = assign(AssignmentProblem(PointCosts(a, b, metric)), solver)
    distances = cdist(a, b, METRICS[metric])
    best = distances[linear_sum_assignment(distances)].sum()
    assert answer.primal_cost == pytest.approx(best, rel=1e-12)
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_clustered_points_and_duplicates(axes):
    a, b = clouds(2, 300, 300, axes)
    a[:100] = a[0]
    b[:150] = b[0] + 0.01 * b[:150]
    answer = assign(AssignmentProblem(PointCosts(a, b)), "sparsified")
    distances = cdist(a, b)
    assert answer.primal_cost == pytest.approx(distances[linear_sum_assignment(distances)].sum(), rel=1e-12)
    assert answer.status is Status.OPTIMAL


@pytest.mark.parametrize(("patience", "far"), [(0, 0), (20, 0), (0, 3)])
def test_candidates_that_admit_no_matching_get_others(patience, far, monkeypatch):
    """The near points of one cloud are far from most of the other."""
    kernels = import_module("outbid.assignment.dense.perfect_cpu")
    monkeypatch.setattr(kernels, "PATIENCE_WITH_POINTS", patience)
    monkeypatch.setattr(kernels, "FAR", far)
    monkeypatch.setattr("outbid.assignment.dense.core._TURNS", 0)
    rng = np.random.default_rng(10)
    a, b = rng.normal(size=(300, 3)) * rng.random((300, 1)) ** 3, rng.normal(size=(300, 3))
    answer = assign(AssignmentProblem(PointCosts(a, b)), "sparsified")
    distances = cdist(a, b)
    assert answer.primal_cost == pytest.approx(distances[linear_sum_assignment(distances)].sum(), rel=1e-12)
    assert ("attempts" in answer.stats) == (patience + far == 0)


@pytest.mark.smoke
def test_points_may_stay_unmatched():
    a, b = clouds(3, 200, 150)
    unmatched = np.full(200, 0.05), np.full(150, 0.05)
    answer = assign(AssignmentProblem(PointCosts(a, b), *unmatched), "sparsified")
    expected = assign(AssignmentProblem(DenseCosts(cdist(a, b)), *unmatched))
    assert answer.primal_cost == pytest.approx(expected.primal_cost, rel=1e-12)
    assert 0 < (answer.col_of_row >= 0).sum() < 150


def test_far_from_the_origin_nothing_is_lost():
    rng = np.random.default_rng(4)
    a = np.rint(rng.random((100, 3)) * 1000) / 8
    b = np.rint(rng.random((100, 3)) * 1000) / 8
    near, far = (assign(AssignmentProblem(PointCosts(a + s, b + s)), "sparsified") for s in (0.0, 2.0**30))
    assert far.primal_cost == near.primal_cost


def test_blocks_of_rows_change_nothing(monkeypatch):
    a, b = clouds(5, 90, 70)
    v, u = np.random.default_rng(6).normal(0, 0.2, 70), np.full(90, 0.4)
    whole = DenseMatrix(cdist(a, b))
    monkeypatch.setattr(points, "_ENTRIES", 500)
    matrix = points.PointMatrix(PointCosts(a, b))
    slack = [u.copy(), u.copy()]
    matrix.lower_to_slack(v, slack[0])
    whole.lower_to_slack(v, slack[1])
    np.testing.assert_allclose(*slack, rtol=1e-14)
    for ours, theirs in (
        (matrix.nearest_of_rows(v, u, 5), whole.nearest_of_rows(v, u, 5)),
        (matrix.nearest_of_cols(u, v, 5), whole.nearest_of_cols(u, v, 5)),
    ):
        np.testing.assert_array_equal(ours[1], theirs[1])
        listed = np.arange(5) < theirs[1][:, None]
        np.testing.assert_array_equal(ours[0][listed], theirs[0][listed])


def test_stored_pairs_have_the_bits_of_the_blocks():
    a, b = clouds(7, 60, 50)
    matrix = points.PointMatrix(PointCosts(a, b))
    rows, cols = np.divmod(np.arange(3000), 50)
    np.testing.assert_array_equal(matrix.pairs(rows, cols).reshape(60, 50), matrix.block(0, 60))


def test_memory_grows_with_the_points_and_not_with_the_pairs(monkeypatch):
    monkeypatch.setattr(points, "_ENTRIES", 1 << 16)
    a, b = clouds(8, 3000, 3000)
    problem = AssignmentProblem(PointCosts(a, b))
    assign(problem, "sparsified")
    tracemalloc.start()
    assign(problem, "sparsified")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 8 / 4


@pytest.mark.parametrize(
    ("source", "target", "metric", "error", "words"),
    [
        (np.zeros((2, 3)), np.zeros((2, 2)), "euclidean", ValueError, "same D"),
        (np.zeros(3), np.zeros((2, 2)), "euclidean", ValueError, "same D"),
        (np.zeros((2, 3), int), np.zeros((2, 3)), "euclidean", TypeError, "float64"),
        (np.array([[0.0, np.nan]]), np.zeros((2, 2)), "euclidean", ValueError, "source.*at 0, 1"),
        (np.zeros((2, 2)), np.array([[np.inf, 0.0]]), "euclidean", ValueError, "target.*at 0, 0"),
        (np.array([[1e200]]), np.zeros((2, 1)), "euclidean", ValueError, "overflow"),
        (np.zeros((2, 2)), np.zeros((2, 2)), "manhattan", ValueError, "euclidean, squared"),
    ],
)
def test_points_that_no_solver_could_use_are_refused(source, target, metric, error, words):
    with pytest.raises(error, match=words):
        assign(AssignmentProblem(PointCosts(source, target, metric)), "sparsified")


def test_a_matrix_that_does_not_fit_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr("outbid.assignment.points.free_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"takes 0\.0 GiB.*sparsified"):
        assign(AssignmentProblem(PointCosts(*clouds(9, 20, 20))), "hungarian")
