"""Solver by family on CuPy arrays, judged by certificate and by SciPy's cost; run with -m gpu.

tests/test_assign.py has the same table on NumPy arrays.
"""

from importlib import import_module

import numpy as np
import pytest
from problems import ALL_FAMILIES, EXACT, assert_certified, optional, reference_cost

from outbid import AssignmentProblem, DenseCosts, PointCosts, SparseCosts, Status, assign
from outbid.assignment import SOLVERS, Assignment
from outbid.assignment.papers.greedy import Greedy
from outbid.assignment.points import dense_of
from outbid.assignment.problem import on_gpu
from outbid.compute.arrays import to_device, to_host

pytestmark = pytest.mark.gpu
HEURISTIC = [name for name in SOLVERS if name not in EXACT]


def on_host(problem: AssignmentProblem, answer: Assignment) -> Assignment:
    """The answer to a problem that was solved on the GPU, judged on the host."""
    arrays = (to_host(array) for array in (answer.col_of_row, answer.row_dual, answer.col_dual))
    return Assignment(problem, *arrays, answer.status, answer.stats)


@pytest.mark.parametrize("family", ALL_FAMILIES)
@pytest.mark.parametrize("shape", [(40, 40), (30, 60), (60, 30)])
@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("kind", ["perfect", "optional"])
def test_exact_solvers_reach_scipys_cost(family, shape, solver, kind):
    rng = np.random.default_rng(7)
    costs = ALL_FAMILIES[family](rng, *shape)
    problem = AssignmentProblem(DenseCosts(costs)) if kind == "perfect" else optional(costs, rng)
    there = assign(on_gpu(problem), solver)
    here = on_host(problem, there)
    assert here.primal_cost == pytest.approx(reference_cost(problem), rel=1e-12, abs=1e-12)
    assert here.status is Status.OPTIMAL
    assert there.primal_cost == pytest.approx(here.primal_cost, rel=1e-14, abs=1e-14)
    assert there.gap == pytest.approx(here.gap, abs=1e-12 * (1 + abs(here.primal_cost)))
    if problem.is_integer:
        assert there.gap == 0
    assert_certified(here, 0 if problem.is_integer else 1e-12 * (1 + abs(here.primal_cost)))


@pytest.mark.parametrize("family", ALL_FAMILIES)
@pytest.mark.parametrize("solver", HEURISTIC)
def test_heuristics_stay_above_their_bound(family, solver):
    rng = np.random.default_rng(9)
    problem = optional(ALL_FAMILIES[family](rng, 40, 50), rng)
    there = assign(on_gpu(problem), solver)
    here = on_host(problem, there)
    rounding = 1e-9 * (1 + abs(here.primal_cost))
    assert here.dual_cost - rounding <= reference_cost(problem) <= here.primal_cost + rounding
    assert_certified(here, rounding)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1)])
def test_thin_and_empty_problems(solver, shape):
    costs = DenseCosts(np.random.default_rng(0).integers(1, 9, shape))
    points = PointCosts(np.ones((shape[0], 2)), np.zeros((shape[1], 2)), "squared")
    for problem in (
        AssignmentProblem(costs),
        AssignmentProblem(costs, np.full(shape[0], 50), np.full(shape[1], 50)),
        AssignmentProblem(costs.sparse(), np.full(shape[0], 50), np.full(shape[1], 50)),
        AssignmentProblem(points),
    ):
        answer = assign(on_gpu(problem), solver)
        stored = AssignmentProblem(dense_of(points)) if problem.costs is points else problem
        assert answer.primal_cost == reference_cost(stored)
        assert answer.col_of_row.shape == (shape[0],)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("sparse", [False, True])
def test_infeasible_problems_say_so(solver, sparse):
    costs = DenseCosts(np.array([[1.0, np.inf], [2.0, np.inf]]))
    with pytest.raises(ValueError, match="infeasible"):
        assign(on_gpu(AssignmentProblem(costs.sparse() if sparse else costs)), solver)


def test_what_does_not_fit_the_gpu_is_solved_on_the_host(monkeypatch):
    class Large(Greedy):
        def works_on_device(self, problem):
            return max(problem.shape) == 9

        def compute(self, problem):
            if import_module("outbid.compute.arrays").on_device(problem.array):
                raise MemoryError("no 4 TiB here")
            return super().compute(problem)

    freed = []
    door = import_module("outbid.assignment")
    monkeypatch.setattr(door, "release_device_memory", lambda: freed.append(True))
    problem = AssignmentProblem(DenseCosts(np.random.default_rng(1).random((9, 7))))
    answer = assign(on_gpu(problem), Large())
    assert freed
    assert answer.stats["fallbacks"] == 1
    assert answer.primal_cost == assign(problem, "greedy").primal_cost
    monkeypatch.setattr(Greedy, "compute", lambda *_: bytes(1 << 62))
    with pytest.raises(MemoryError):
        assign(problem, "greedy")


def test_a_gpu_that_is_full_is_left_to_others_and_the_host_answers():
    pool = import_module("cupy").get_default_memory_pool()
    problem = AssignmentProblem(DenseCosts(np.random.default_rng(2).random((1500, 1500))))
    there = on_gpu(problem)
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + (1 << 18))
    try:
        answer = assign(there, "sparsified")
    finally:
        pool.set_limit(size=0)
    assert answer.stats["fallbacks"] == 1
    assert isinstance(answer.col_of_row, np.ndarray)
    assert answer.primal_cost == pytest.approx(assign(problem).primal_cost, rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["dense", "sparse", "points"])
@pytest.mark.parametrize("optional_sides", [False, True])
def test_arrays_with_gaps_in_memory_are_read_right(solver, kind, optional_sides):
    """Kernels know no strides; only every second number is meant."""
    rng = np.random.default_rng(10)

    def with_gaps(array):
        for axis in range(array.ndim):
            array = np.repeat(array, 2, axis)
        return to_device(array)[(slice(None, None, 2),) * array.ndim]

    costs = DenseCosts(rng.integers(0, 50, (12, 12)))
    stored, points = costs.sparse(), rng.random((2, 12, 3))
    there = {
        "dense": DenseCosts(with_gaps(costs.values)),
        "points": PointCosts(*map(with_gaps, points)),
        "sparse": SparseCosts(
            *(with_gaps(array) for array in (stored.indptr, stored.indices.astype(np.int64), stored.values)),
            stored.shape,
        ),
    }[kind]
    unmatched = [np.arange(12) / 20 if kind == "points" else 3 * np.arange(12)] * (2 * optional_sides)
    here = AssignmentProblem(PointCosts(*points) if kind == "points" else costs, *unmatched)
    answer = assign(AssignmentProblem(there, *map(with_gaps, unmatched)), solver)
    if solver in EXACT:
        assert answer.primal_cost == pytest.approx(assign(here).primal_cost, rel=1e-12)
        assert answer.status is Status.OPTIMAL
    else:
        assert answer.primal_cost == pytest.approx(assign(here, solver).primal_cost, rel=1e-12)
