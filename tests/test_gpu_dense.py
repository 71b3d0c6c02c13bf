"""Matrices and points in a GPU's memory: the door, the certificate and what solvers ask; run with -m gpu."""

from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest
from numpy.typing import NDArray
from problems import FAMILIES, optional

from outbid import AssignmentProblem, DenseCosts, PointCosts, Status, assign
from outbid.assignment import SOLVERS
from outbid.assignment.dense.sparsified import Sparsified
from outbid.assignment.points import dense_of, matrix_of
from outbid.assignment.problem import on_gpu
from outbid.compute.arrays import on_device, to_device, to_host

pytestmark = pytest.mark.gpu
EXACT = [name for name in SOLVERS if not name.startswith("greedy")]


def clouds(seed: int, rows: int, cols: int, axes: int = 3) -> PointCosts:
    rng = np.random.default_rng(seed)
    return PointCosts(rng.random((rows, axes)), rng.random((cols, axes)))


def all_kinds(rows: int, cols: int) -> Iterator[DenseCosts | PointCosts]:
    rng = np.random.default_rng(1)
    for dtype in ("i4", "i8", "f4", "f8"):
        yield DenseCosts(rng.integers(-50, 50, (rows, cols)).astype(dtype))
    yield DenseCosts(rng.integers(-50, 50, (rows, cols)) * 2**40)
    for axes in (1, 2, 3, 4):
        yield clouds(axes, rows, cols, axes)
    yield PointCosts(rng.random((rows, 2)), rng.random((cols, 2)), "squared")


@pytest.mark.parametrize("shape", [(1, 1), (70, 50), (90, 300), (300, 90), (513, 129)])
def test_the_gpu_finds_the_least_reduced_costs_of_rows_and_columns(shape):
    rng = np.random.default_rng(2)
    for costs in all_kinds(*shape):
        here, there = matrix_of(costs), matrix_of(on_gpu(AssignmentProblem(costs)).costs)
        values = here.values if isinstance(costs, DenseCosts) else here.matrix()
        scale = np.abs(values).max()
        v, u = (rng.integers(-5, 5, n) * scale // 5 for n in shape[::-1])
        if values.dtype.kind == "i":
            v, u = v.astype(np.int64), u.astype(np.int64)
        np.testing.assert_array_equal(
            to_host(there.pairs(*map(to_device, np.nonzero(values == values)))), values.ravel()
        )
        slack, expected = to_device(u + scale), u + scale
        there.lower_to_slack(to_device(v), slack)
        here.lower_to_slack(v, expected)
        np.testing.assert_array_equal(to_host(slack), expected)
        nearest, count = map(to_host, there.nearest_of_rows(to_device(v), to_device(u), 7))
        check_nearest(values - v, u, nearest, count, 256)
        nearest, count, least = map(to_host, there.nearest_of_cols(to_device(u), to_device(v), 5))
        check_nearest((values - u[:, None]).T, v, nearest, count, 64)
        np.testing.assert_array_equal(least, np.minimum((values - u[:, None]).min(axis=0), v))


def check_nearest(reduced: NDArray, limit: NDArray, nearest: NDArray, count: NDArray, classes: int) -> None:
    """The least is there, in order, below the limit, none twice; all of the least where classes hold one."""
    below = (reduced < limit[:, None]).sum(axis=1)
    for i, row in enumerate(reduced):
        found = row[nearest[i, : count[i]]]
        assert (np.diff(found) >= 0).all()
        assert (found < limit[i]).all()
        assert len(set(nearest[i, : count[i]])) == count[i]
        assert (count[i] > 0) == (below[i] > 0)
        assert count[i] == 0 or found[0] == row.min()
        if len(row) <= classes:
            np.testing.assert_array_equal(found, np.sort(row[row < limit[i]])[: nearest.shape[1]])


@pytest.mark.parametrize("metric", ["euclidean", "squared"])
@pytest.mark.parametrize("shape", [(60, 60), (30, 50), (50, 30)])
def test_points_on_the_gpu_cost_what_they_cost_on_the_host(metric, shape):
    costs = PointCosts(*(getattr(clouds(5, *shape), name) for name in ("source", "target")), metric)
    problem = AssignmentProblem(costs)
    here, there = assign(problem), assign(on_gpu(problem))
    assert there.primal_cost == pytest.approx(here.primal_cost, rel=1e-13)
    assert there.status is Status.OPTIMAL
    stored = dense_of(on_gpu(problem).costs)
    assert on_device(stored.values)
    np.testing.assert_array_equal(to_host(stored.values), dense_of(costs).values)


@pytest.mark.parametrize("kind", ["perfect", "optional"])
@pytest.mark.parametrize("shape", [(30, 40), (40, 30), (35, 35)])
def test_margins_are_the_hosts_where_the_duals_are(kind, shape):
    rng = np.random.default_rng(6)
    costs = rng.integers(0, 100, shape)
    problem = AssignmentProblem(DenseCosts(costs)) if kind == "perfect" else optional(costs, rng)
    answer = assign(problem)
    certificate = import_module("outbid.assignment.certificate")
    given = (answer.col_of_row, answer.row_dual, answer.col_dual)
    there = certificate.margins(on_gpu(problem), *map(to_device, given))
    np.testing.assert_array_equal(to_host(there), answer.margin)


@pytest.mark.parametrize("dtype", ["i1", "u2", "u8", "f2", "?"])
def test_every_real_dtype_is_read(dtype):
    costs = np.random.default_rng(7).integers(0, 100, (60, 70)).astype(dtype)
    here, there = (assign(AssignmentProblem(DenseCosts(c))) for c in (costs, to_device(costs)))
    assert there.primal_cost == here.primal_cost
    fortran = to_device(np.asfortranarray(costs))
    assert assign(AssignmentProblem(DenseCosts(fortran))).primal_cost == here.primal_cost


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ([[np.nan, 1.0]], ValueError, "NaN at 0, 0"),
        ([[1.0, -np.inf]], ValueError, "minus infinity at 0, 1"),
        ([[1e308, 1.0]], ValueError, "so large"),
        (np.array([[2**62, 1]]), ValueError, "so large"),
        (np.array([[1 + 1j]]), TypeError, "real numbers"),
    ],
)
def test_costs_that_no_solver_could_use_are_refused(values, error, words):
    with pytest.raises(error, match=words):
        assign(AssignmentProblem(DenseCosts(to_device(np.asarray(values)))))


def test_arrays_in_two_memories_are_refused():
    costs = DenseCosts(to_device(np.ones((2, 2))))
    with pytest.raises(TypeError, match=r"row_unmatched.*same memory"):
        assign(AssignmentProblem(costs, np.ones(2), np.ones(2)))
    with pytest.raises(TypeError, match=r"target.*same memory"):
        assign(AssignmentProblem(PointCosts(to_device(np.ones((2, 2))), np.ones((2, 2)))))


def moved_apart(seed: int, count: int) -> AssignmentProblem:
    """Two clouds of which the near points of one are far from most of the other: no candidates suffice."""
    rng = np.random.default_rng(seed)
    return AssignmentProblem(
        PointCosts(rng.normal(size=(count, 3)) * rng.random((count, 1)) ** 3, rng.normal(size=(count, 3)))
    )


@pytest.mark.parametrize("count", [150, 300])
def test_candidates_that_admit_no_matching_are_replaced(count):
    problem = moved_apart(9, count)
    here, there = assign(problem), assign(on_gpu(problem))
    assert there.primal_cost == pytest.approx(here.primal_cost, rel=1e-12)
    assert there.status is Status.OPTIMAL


@pytest.mark.parametrize("family", ["rough_products", "low_rank", "geom"])
def test_rough_duals_choose_the_candidates_of_hard_costs(family):
    costs = FAMILIES[family](np.random.default_rng(12), 160, 160)
    problem = AssignmentProblem(DenseCosts(costs))
    auction = import_module("outbid.assignment.papers.auction")
    rough = auction.rough_duals(problem)
    np.testing.assert_array_equal(to_host(auction.rough_duals(on_gpu(problem))), rough)
    u = (costs - rough).min(axis=1)
    bound, best = u.sum() + rough.sum(), assign(problem, "auction").primal_cost
    assert best - 0.3 * np.ptp(costs) <= bound <= best + 1e-9 * abs(best)
    there = assign(on_gpu(problem), "sparsified")
    assert there.primal_cost == pytest.approx(best, rel=1e-12)
    assert there.status is Status.OPTIMAL


@pytest.mark.parametrize("shape", [(40, 40), (30, 40)])
@pytest.mark.parametrize("kind", ["i4", "f8", "spread"])
def test_the_whole_matrix_is_searched_where_candidates_are_of_no_use(kind, shape):
    costs = np.random.default_rng(11).integers(0, 2**52 if kind == "spread" else 99, shape)
    problem = AssignmentProblem(DenseCosts(costs if kind == "spread" else costs.astype(kind)))
    for solver in (Sparsified(rounds=0), Sparsified(of_row=2, of_col=2, rounds=0)):
        there = assign(on_gpu(problem), solver)
        assert there.primal_cost == assign(problem).primal_cost
        assert there.status is Status.OPTIMAL
    assert ("iterations" in there.stats) == (kind == "spread")


@pytest.mark.parametrize("family", ["uniform_integers", "few_integers", "duplicate_rows", "distances_in_3d"])
def test_neither_repetition_nor_launch_geometry_change_a_bit(family, monkeypatch):
    perfect = import_module("outbid.assignment.dense.perfect_gpu")
    costs = to_device(FAMILIES[family](np.random.default_rng(10), 200, 200))
    expected = assign(AssignmentProblem(DenseCosts(costs)), "sparsified")
    for block in (64, 256, 64):
        monkeypatch.setattr(perfect, "_BLOCK", block)
        monkeypatch.setattr(perfect, "_ROWS_A_BLOCK", 7 + block // 32)
        again = assign(AssignmentProblem(DenseCosts(costs)), "sparsified")
        np.testing.assert_array_equal(to_host(again.col_of_row), to_host(expected.col_of_row))
        np.testing.assert_array_equal(to_host(again.col_dual), to_host(expected.col_dual))


@pytest.mark.parametrize("block", [64, 1024])
@pytest.mark.parametrize("epsilon", [1, 50])
def test_an_auction_goes_on_to_the_last_row(epsilon, block, monkeypatch):
    perfect, size = import_module("outbid.assignment.dense.perfect_gpu"), 300
    monkeypatch.setattr(perfect, "_BLOCK", block)
    costs = FAMILIES["uniform_integers"](np.random.default_rng(11), size, size)
    indptr, indices = np.arange(0, size * size + 1, size), np.tile(np.arange(size, dtype=np.int32), size)
    state = (np.zeros(size, np.int64), np.full(size, -1, np.int32), np.full(size, -1, np.int64))
    v, owner, edge = map(to_device, state)
    pairs = (*map(to_device, (indptr, indices, costs.ravel())), v, owner, edge)
    bound = to_device(np.full(size, np.iinfo(np.int64).max))
    assert perfect.bid(*pairs, bound, epsilon, 20_000, 40) >= size
    assert 0 < int((edge < 0).sum()) <= 40
    perfect.bid(*pairs, bound, epsilon, 20_000, 0)
    held = to_host(edge) - np.arange(size) * size
    reduced = costs - to_host(v)
    np.testing.assert_array_equal(to_host(owner)[held], np.arange(size))
    assert (reduced[np.arange(size), held] <= reduced.min(1) + epsilon).all()
