"""The GPU's auction against the CPU's: the same duals and holders, bit for bit; run with -m gpu."""

from importlib import import_module

import numpy as np
import pytest
from problems import FAMILIES, gated, moved_cloud, optional

from outbid import AssignmentProblem, DenseCosts, SparseCosts, Status, assign
from outbid.assignment.papers.auction import Auction
from outbid.assignment.problem import forbidden, on_gpu
from outbid.compute.arrays import to_device, to_host

pytestmark = pytest.mark.gpu
cpu, gpu = (import_module(f"outbid.assignment.papers.auction_{kind}") for kind in ("cpu", "gpu"))
DTYPES = ("int32", "int64", "float32", "float64")


def held(on, place, costs, shape, epsilon: float, rounds: int) -> list:
    """What a call of dense_rounds or sparse_rounds returns and leaves behind."""
    values = costs[-1]
    dtype = np.dtype(np.float64 if values.dtype.kind == "f" else np.int64)
    least = dtype.type(values.min()) if dtype.kind == "i" else dtype.type(0)
    v, col_of_row, owner = np.zeros(shape[1], dtype), np.full(shape[0], -1, np.int32), np.full(shape[1], -1)
    state = [place(array) for array in (v, col_of_row, owner.astype(np.int32))]
    epsilon = max(1, int(epsilon)) if dtype.kind == "i" else epsilon
    limits = dtype.type(epsilon), 4 * forbidden(dtype), dtype.type(100)
    run = on.dense_rounds if len(costs) == 1 else on.sparse_rounds
    counts = run(*map(place, costs), least, dtype.type(3), *state, *limits, rounds)
    return [tuple(map(int, counts)), *map(to_host, state)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rounds", [1, 60])
def test_rounds_leave_the_same_bits(family, dtype, rounds):
    rng = np.random.default_rng(1)
    for shape in ((33, 33), (20, 70), (1, 1), (3, 600)):
        values = np.ascontiguousarray(FAMILIES[family](rng, *shape).astype(dtype))
        epsilon = 0.01 * float(np.ptp(values)) + 1e-3
        dense = [held(on, place, (values,), shape, epsilon, rounds) for on, place in PLACES]
        costs = DenseCosts(values).sparse()
        pairs = (costs.indptr, costs.indices, costs.values)
        sparse = [held(on, place, pairs, shape, epsilon, rounds) for on, place in PLACES]
        for got in [dense[1], *sparse]:
            for mine, other in zip(dense[0], got, strict=True):
                np.testing.assert_array_equal(mine, other)


PLACES = ((cpu, np.asarray), (gpu, to_device))


def test_neither_repetition_nor_launch_geometry_change_a_bit(monkeypatch):
    values = np.random.default_rng(2).integers(0, 300, (300, 400)).astype(np.int32)
    expected = held(cpu, np.asarray, (values,), values.shape, 1, 300)
    for block, blocks in ((32, 1), (64, 7), (512, 2), (1024, 1)):
        monkeypatch.setattr(gpu, "_BLOCK", block)
        monkeypatch.setattr(gpu, "_BLOCKS_A_PROCESSOR", blocks)
        for mine, other in zip(expected, held(gpu, to_device, (values,), values.shape, 1, 300), strict=True):
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", [(60, 60), (30, 60), (60, 30)])
def test_a_fixed_epsilon_keeps_its_promise_on_the_gpu(family, shape):
    rng = np.random.default_rng(4)
    costs = FAMILIES[family](rng, *shape)
    epsilon = float(0.005 * (np.ptp(costs) + 1))
    for problem in (AssignmentProblem(DenseCosts(costs)), optional(costs, rng)):
        best = assign(problem).primal_cost
        answer = assign(on_gpu(problem), Auction(epsilon, scaling=1))
        assert best - 1e-9 <= answer.primal_cost <= best + max(shape) * epsilon + 1e-9
        assert answer.gap <= max(shape) * epsilon + 1e-9


def test_particles_are_proved_and_an_auction_can_be_given_up():
    problem = gated(*moved_cloud(np.random.default_rng(3), 400, 0.5), 1.2)
    best = assign(problem).primal_cost
    answer = assign(on_gpu(problem), "auction")
    assert (answer.gap, answer.primal_cost) == (0, best)
    epsilon = 2**26 / 200
    answer = assign(on_gpu(problem), Auction(epsilon, scaling=1))
    assert best <= answer.primal_cost <= best + 400 * epsilon
    with pytest.raises(RuntimeError, match="not over after 5 rounds"):
        assign(on_gpu(problem), Auction(scaling=1, most_rounds=5))


@pytest.mark.parametrize("dtype", [*DTYPES, "int16", "float16"])
@pytest.mark.parametrize("unmatched", ["int64", "float64"])
def test_sparse_costs_of_every_type_are_certified_alike(dtype, unmatched):
    rng = np.random.default_rng(5)
    costs = DenseCosts(rng.integers(-90, 90, (40, 50)).astype(dtype)).sparse()
    kept = rng.random(len(costs.values)) < 0.3
    indptr = np.concatenate([[0], np.cumsum(np.bincount(costs.rows[kept], minlength=40))])
    sparse = SparseCosts(indptr, costs.indices[kept], costs.values[kept], (40, 50))
    problem = AssignmentProblem(sparse, *(np.full(n, 20).astype(unmatched) for n in (40, 50)))
    here, there = assign(problem, "auction"), assign(on_gpu(problem), "auction")
    for name in ("col_of_row", "row_dual", "col_dual", "pair_cost", "margin"):
        np.testing.assert_array_equal(to_host(getattr(there, name)), getattr(here, name))
    assert there.gap == here.gap
    assert there.status is Status.OPTIMAL
