"""Shards on one GPU: the single device's answer to the bit; NCCL with as many GPUs as there are."""

import time
from importlib.util import find_spec
from multiprocessing import get_context

import numpy as np
import pytest
from other_processes import shard_of_gpu
from problems import FAMILIES, optional
from test_nccl import assert_same_answers, calls
from test_shards import COUNTS, assert_same

from outbid import AssignmentProblem, DenseCosts, PointCosts, Status, assign
from outbid.assignment.papers.hungarian import Matching
from outbid.assignment.papers.shards.blocks import ArrayBlocks
from outbid.assignment.papers.shards.communicator import Alone, Communicator, ShardError, Virtual, run_ranks
from outbid.assignment.papers.shards.nccl import Nccl, new_identity
from outbid.assignment.papers.shards.search import Setup, found
from outbid.assignment.problem import on_gpu
from outbid.compute.arrays import cupy_module, gpu_names, nccl_module, on_device, to_device, to_host

pytestmark = pytest.mark.gpu
VARIANTS = ("hungarian:tree", "hungarian:classical")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(90, 90), (60, 110), (110, 60)])
@pytest.mark.parametrize("family", ["uniform_integers", "two_costs", "real_uniform", "duplicate_rows"])
def test_virtual_shards_find_what_one_gpu_finds(family, shape, variant):
    problem = on_gpu(AssignmentProblem(DenseCosts(FAMILIES[family](np.random.default_rng(1), *shape))))
    expected = assign(problem, variant)
    for shards in (1, 2, 3, 5, 8):
        answer = assign(problem, variant, shards=shards)
        assert on_device(answer.col_of_row)
        assert_same(answer, expected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_optional_rows_and_columns(variant):
    rng = np.random.default_rng(2)
    problem = on_gpu(optional(FAMILIES["uniform_integers"](rng, 50, 70), rng))
    assert_same(assign(problem, variant, shards=3), assign(problem, variant))


@pytest.mark.parametrize("family", ["uniform_integers", "real_uniform", "distances_in_3d"])
def test_sparsified_shards_cost_the_same(family):
    problem = on_gpu(AssignmentProblem(DenseCosts(FAMILIES[family](np.random.default_rng(3), 300, 300))))
    expected = assign(problem, "sparsified")
    for shards in (1, 2, 3):
        answer = assign(problem, shards=shards)
        assert answer.status is Status.OPTIMAL
        assert answer.primal_cost == pytest.approx(expected.primal_cost, rel=1e-12)


def test_points_are_divided_without_a_matrix():
    clouds = np.random.default_rng(4).uniform(0, 1, (2, 2000, 3))
    problem = AssignmentProblem(PointCosts(*map(to_device, clouds)))
    answer = assign(problem, shards=3)
    assert answer.status is Status.OPTIMAL
    assert answer.primal_cost == pytest.approx(assign(problem).primal_cost, rel=1e-12)


@pytest.mark.parametrize("shards", [None, 3])
@pytest.mark.parametrize("solver", [*VARIANTS, "sparsified"])
def test_a_matrix_on_the_host_is_read_by_the_gpu_in_its_parts(solver, shards, tmp_path):
    costs = np.random.default_rng(5).integers(0, 900, (200, 200), dtype=np.int32)
    np.save(tmp_path / "costs.npy", costs)
    problem = AssignmentProblem(DenseCosts(np.load(tmp_path / "costs.npy", mmap_mode="r")))
    answer = assign(problem, solver, devices=[0], shards=shards)
    assert not on_device(answer.col_of_row)
    assert answer.gap == 0
    if solver != "sparsified":
        assert_same(answer, assign(AssignmentProblem(DenseCosts(costs)), solver))


needs_nccl = pytest.mark.skipif(find_spec("cupy") is None or nccl_module() is None, reason="CuPy has no NCCL")


@needs_nccl
@pytest.mark.parametrize("variant", VARIANTS)
def test_all_gpus_through_nccl(variant):
    costs = np.random.default_rng(6).integers(0, 9000, (400, 400), dtype=np.int32)
    work = Setup(variant.removeprefix("hungarian:"), is_on_gpu=True)

    def shard(way: Communicator) -> Matching:
        with cupy_module().cuda.Device(way.rank):
            return found(ArrayBlocks(costs), way, work)

    expected = assign(AssignmentProblem(DenseCosts(costs)), variant)
    for answer in run_ranks(Nccl.of_host(list(range(len(gpu_names())))), shard):
        np.testing.assert_array_equal(answer.col_of_row, expected.col_of_row)
        assert [answer.stats[name] for name in COUNTS] == [expected.stats[name] for name in COUNTS]


@needs_nccl
@pytest.mark.timeout(120)  # CuPy compiles some dozens of kernels, a second each
@pytest.mark.parametrize("solver", [*VARIANTS, "sparsified"])
def test_a_problem_over_several_gpus(solver):
    gpus = several_gpus()
    costs = np.random.default_rng(6).integers(0, 9000, (400, 400), dtype=np.int32)
    problem = AssignmentProblem(DenseCosts(costs))
    # Shards that take turns compile what all GPUs need, once; GPUs together would each compile it.
    expected = assign(on_gpu(problem), solver, shards=gpus)
    answer = assign(problem, solver, devices=range(gpus))
    assert answer.gap == 0
    assert answer.primal_cost == expected.primal_cost
    if solver != "sparsified":
        assert_same(answer, assign(problem, solver))


@needs_nccl
def test_calls_between_gpus_return_what_virtual_shards_hear():
    gpus = several_gpus()
    rng = np.random.default_rng(7)
    given = [rng.integers(-99, 99, (gpus, 5, 3)), rng.normal(size=(gpus, 4)), rng.integers(0, 9, (gpus, 1))]
    given += [given[0].astype(np.int32), np.zeros((gpus, 0), np.int64)]

    def of_gpu(way: Communicator) -> list:
        with cupy_module().cuda.Device(way.rank):
            return list(map(to_host, calls(way, given, (np.asarray, to_device))))

    through_nccl = run_ranks(Nccl.of_host(list(range(gpus))), of_gpu)
    expected = run_ranks(Virtual.all_of(gpus), lambda way: calls(way, given, (np.asarray, np.asarray)))
    assert_same_answers(through_nccl, expected)


@needs_nccl
@pytest.mark.parametrize("ranks", ["threads", "processes"])
@pytest.mark.parametrize("family", ["uniform_integers", "real_uniform"])
def test_gpus_of_their_own_find_what_one_finds_to_the_bit(family, ranks):
    gpus = several_gpus()
    costs = FAMILIES[family](np.random.default_rng(8), 301, 301)
    both = [Setup(variant.removeprefix("hungarian:"), is_on_gpu=True) for variant in VARIANTS]

    def shard(way: Communicator) -> list[Matching]:
        with cupy_module().cuda.Device(way.rank):
            return [found(ArrayBlocks(costs), way, work) for work in both]

    expected = run_ranks([Alone()], shard)[0]
    if ranks == "threads":
        answers = run_ranks(Nccl.of_host(list(range(gpus))), shard)
    else:
        answers = of_processes(gpus, costs)
    for of_rank in answers:
        for one, other in zip(of_rank, expected, strict=True):
            assert_same(one, other)


def of_processes(gpus: int, costs: np.ndarray) -> list[list[Matching]]:
    """The answers of a process a GPU."""
    context = get_context("spawn")
    identity, pipes, processes = new_identity(), [], []
    for rank in range(gpus):
        here, there = context.Pipe()
        given = (rank, gpus, identity, costs, there)
        processes.append(context.Process(target=shard_of_gpu, args=given, daemon=True))
        processes[-1].start()
        there.close()
        pipes.append(here)
    try:
        assert all(pipe.poll(60) for pipe in pipes)
        return [pipe.recv() for pipe in pipes]
    finally:
        for process in processes:
            process.kill()
            process.join()


def several_gpus() -> int:
    """How many there are; the test is skipped if there is one."""
    gpus = len(gpu_names())
    if gpus == 1:
        pytest.skip("it needs two GPUs")
    return gpus


@needs_nccl
def test_a_shard_that_fails_ends_the_others_and_gpus_can_be_joined_again():
    gpus = several_gpus()

    def work(way: Communicator, fails: bool) -> int:
        with cupy_module().cuda.Device(way.rank):
            for _ in range(20):
                way.gather(to_device(np.zeros(1000)))
            if fails and way.rank == 1:
                raise OSError("the block cannot be read")
            return int(way.total(np.array([way.rank]))[0])

    begun = time.monotonic()
    with pytest.raises(OSError, match="cannot be read"):
        run_ranks(Nccl.of_host(list(range(gpus))), lambda way: work(way, fails=True))
    assert time.monotonic() - begun < 10
    joined = run_ranks(Nccl.of_host(list(range(gpus))), lambda way: work(way, fails=False))
    assert joined == [sum(range(gpus))] * gpus


@needs_nccl
def test_two_shards_of_one_gpu_are_refused_by_nccl():
    with pytest.raises(ShardError, match="cannot join GPUs"):
        Nccl.of_host([0, 0])


def test_a_row_that_cannot_be_matched_ends_all_shards():
    costs = np.ones((40, 40))
    costs[7] = np.inf
    for given in ({"shards": 3}, {"devices": [0]}):
        with pytest.raises(ValueError, match="row 7 is left over"):
            assign(AssignmentProblem(DenseCosts(costs)), "hungarian:tree", **given)
