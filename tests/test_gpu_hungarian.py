"""Date & Nagi's variants on the GPU: to the bit what they are on the CPU; run with -m gpu."""

from importlib import import_module

import numpy as np
import pytest
from problems import FAMILIES, optional
from test_shards import assert_same

from outbid import AssignmentProblem, DenseCosts, Status, assign
from outbid.assignment.papers.hungarian import Hungarian
from outbid.assignment.problem import on_gpu, on_host
from outbid.compute.arrays import on_device, to_device

pytestmark = pytest.mark.gpu
VARIANTS = ("tree", "classical")


def assert_twins(problem: AssignmentProblem, variant: str) -> None:
    """The same matching, duals and counts: both take the same one of all optima, by the same steps."""
    here, there = (assign(given, Hungarian(variant)) for given in (problem, on_gpu(problem)))
    assert on_device(there.col_of_row)
    assert there.status is Status.OPTIMAL
    assert_same(there, here)
    if problem.is_integer:
        assert there.gap == 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(150, 150), (60, 110), (110, 60), (1, 1), (1, 40)])
@pytest.mark.parametrize("family", FAMILIES)
def test_matrices(family, shape, variant):
    costs = FAMILIES[family](np.random.default_rng(1), *shape)
    assert_twins(AssignmentProblem(DenseCosts(costs)), variant)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(50, 40), (40, 50), (40, 40)])
@pytest.mark.parametrize("family", ["uniform_integers", "few_integers", "real_uniform", "two_costs"])
def test_optional_rows_and_columns(family, shape, variant):
    rng = np.random.default_rng(2)
    assert_twins(optional(FAMILIES[family](rng, *shape), rng), variant)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("scale", [1, 2**40])
def test_every_dtype(dtype, scale, variant):
    if scale > 1 and np.dtype(dtype).itemsize < 8:
        pytest.skip("too large for this dtype")
    costs = np.random.default_rng(3).integers(0, 100, (70, 70)) * scale
    assert_twins(AssignmentProblem(DenseCosts(costs.astype(dtype))), variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_forbidden_pairs_and_what_cannot_be_matched(variant):
    rng = np.random.default_rng(4)
    costs = rng.random((60, 60))
    costs[rng.random(costs.shape) < 0.8] = np.inf
    np.fill_diagonal(costs, 9.0)
    assert_twins(AssignmentProblem(DenseCosts(costs)), variant)
    costs[:30, 20:] = np.inf
    for wrong in (costs, np.full((3, 3), np.inf)):
        with pytest.raises(ValueError, match="infeasible"):
            assign(AssignmentProblem(DenseCosts(to_device(wrong))), Hungarian(variant))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(700, 700), (300, 5000), (2, 3000)])
def test_launch_geometry_changes_no_bit(shape, variant, monkeypatch):
    on = import_module("outbid.assignment.papers.hungarian_gpu")
    costs = np.random.default_rng(5).integers(0, 2000, shape).astype(np.int32)
    problem = AssignmentProblem(DenseCosts(costs))
    expected = on.processors()
    for processors in {1, 2, expected}:
        monkeypatch.setattr(on, "processors", lambda processors=processors: processors)
        assert_twins(problem, variant)


def test_a_row_with_more_tight_pairs_than_slots_is_compressed_whole():
    costs = np.random.default_rng(6).integers(0, 2, (200, 200))
    assert_twins(AssignmentProblem(DenseCosts(costs)), "classical")
    assert_twins(AssignmentProblem(DenseCosts(costs.astype(np.float32))), "classical")


@pytest.mark.parametrize("variant", ["tree", "classical"])
def test_columns_in_a_row_in_memory_are_read_right(variant):
    rng = np.random.default_rng(9)
    costs = to_device(np.asfortranarray(rng.integers(0, 100, (30, 40))))
    assert not costs.flags.c_contiguous
    unmatched = [to_device(np.full(count, 40)) for count in costs.shape]
    for problem in (AssignmentProblem(DenseCosts(costs)), AssignmentProblem(DenseCosts(costs), *unmatched)):
        answer = assign(problem, Hungarian(variant))
        assert answer.gap == 0
        assert answer.primal_cost == assign(on_host(problem)).primal_cost
