"""Shards: the answer of one device to the bit, messages of the size that the formula says, errors in all."""

import json
import tracemalloc

import numpy as np
import pytest
from commands import assert_refused, run, succeed
from problems import FAMILIES, optional

from outbid import AssignmentProblem, DenseCosts, PointCosts, Status, assign
from outbid.assignment.papers.shards import tree
from outbid.assignment.papers.shards.blocks import WORDS, ArrayBlocks, NpyBlocks, PointBlocks
from outbid.assignment.papers.shards.communicator import Alone, Communicator, ShardError, Virtual, run_ranks
from outbid.assignment.papers.shards.search import Setup, found, proved
from outbid.compute.arrays import to_host

VARIANTS = ("tree", "classical")
COUNTS = ("iterations", "paths", "initial_assignments", "dual_updates", "passes", "rows_scanned")
SIZES = (1, 2, 3, 5, 8)


def integers(size: int, times: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, round(times * size) + 1, (size, size), dtype=np.int32)


def assert_same(one, other, counts=COUNTS) -> None:
    for name in ("col_of_row", "col_dual"):
        np.testing.assert_array_equal(to_host(getattr(one, name)), to_host(getattr(other, name)))
    assert [one.stats[name] for name in counts] == [other.stats[name] for name in counts]


@pytest.mark.smoke
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(40, 40), (25, 60), (60, 25)])
@pytest.mark.parametrize("family", ["uniform_integers", "two_costs", "real_uniform", "duplicate_rows"])
def test_hungarian_shards_find_what_one_device_finds(family, shape, variant):
    problem = AssignmentProblem(DenseCosts(FAMILIES[family](np.random.default_rng(1), *shape)))
    expected = assign(problem, f"hungarian:{variant}")
    for shards in SIZES:
        answer = assign(problem, f"hungarian:{variant}", shards=shards)
        assert_same(answer, expected)
        assert answer.stats["shards"] == shards


@pytest.mark.parametrize("shape", [(50, 40), (40, 50)])
@pytest.mark.parametrize("solver", ["hungarian:tree", "hungarian:classical", "sparsified"])
def test_optional_rows_and_columns(shape, solver):
    rng = np.random.default_rng(2)
    problem = optional(FAMILIES["real_uniform"](rng, *shape), rng)
    expected = assign(problem, solver)
    for shards in (2, 5):
        assert_same(assign(problem, solver, shards=shards), expected, ())


@pytest.mark.smoke
@pytest.mark.parametrize("family", ["uniform_integers", "real_uniform", "distances_in_3d"])
def test_sparsified_shards_find_what_one_device_finds(family):
    problem = AssignmentProblem(DenseCosts(FAMILIES[family](np.random.default_rng(3), 90, 90)))
    expected = assign(problem, "sparsified")
    for shards in SIZES:
        assert_same(assign(problem, shards=shards), expected, ("bids", "candidates", "passes"))


def test_points_are_divided_without_a_matrix():
    clouds = np.random.default_rng(4).uniform(0, 1, (2, 150, 3))
    problem = AssignmentProblem(PointCosts(*clouds))
    for solver in ("sparsified", "hungarian:tree"):
        answer, expected = assign(problem, solver, shards=3), assign(problem, solver)
        assert_same(answer, expected, ())
        assert answer.status is Status.OPTIMAL


def test_what_candidates_cannot_solve_is_searched_by_trees():
    costs = np.multiply.outer(np.arange(1, 26), np.arange(1, 61))
    answer = assign(AssignmentProblem(DenseCosts(costs)), "sparsified", shards=3)
    assert answer.stats["by_trees"] == 1
    assert answer.gap == 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("edges", [(0, 1, 30), (0, 0, 7, 7, 30), (0, 30, 30)])
def test_uneven_and_empty_blocks(edges, variant):
    costs = integers(30, 2)
    expected = found(ArrayBlocks(costs), Alone(), Setup(variant))
    work = Setup(variant, edges=edges)
    for answer in run_ranks(Virtual.all_of(len(edges) - 1), lambda way: found(ArrayBlocks(costs), way, work)):
        assert_same(answer, expected)


# ---------------------------------------------------------------- messages


class Heard(Virtual):
    """Keeps the sizes of its messages."""

    def message(self, array):
        self.__dict__.setdefault("sizes", []).append(array.nbytes)
        return super().message(array)


@pytest.mark.parametrize("shards", [2, 5])
def test_bytes_sent_are_those_of_the_formula(shards):
    size = 60
    costs = integers(size, 10)
    words, types, row, col = WORDS, 16, 4, -(-size // shards)
    ways = Virtual.all_of(shards)
    stats = [one.stats for one in run_ranks(ways, lambda way: found(ArrayBlocks(costs), way, Setup("tree")))]
    turns = stats[0]["passes"] + stats[0]["dual_updates"]
    record = 8 * (2 + 3 * tree.RECORDS)
    expected = words + row * size + types + turns * record + 4 * col
    assert [of["bytes_sent"] for of in stats] == [expected] * shards
    assert stats[0]["messages"] == turns + 4
    stats = [
        one.stats
        for one in run_ranks(
            Virtual.all_of(shards), lambda way: found(ArrayBlocks(costs), way, Setup("classical"))
        )
    ]
    compressed = stats[0]["dual_updates"] + 1
    assert stats[0]["messages"] == 4 + 2 * compressed + stats[0]["dual_updates"]
    # Counts of rows, and indices, of which there are as many as the fullest shard has.
    fixed = words + row * col + types + 4 * size + compressed * 4 * col + 4 * stats[0]["dual_updates"]
    lists = stats[0]["bytes_sent"] - fixed
    assert lists % 4 == 0
    assert compressed * size / shards <= lists / 4 <= compressed * 4 * size
    assert len({of["bytes_sent"] for of in stats}) == 1


def test_more_records_than_the_first_message_holds_come_in_a_second():
    costs = np.zeros((200, 200), np.int32)
    ways = Heard.all_of(2)
    expected = found(ArrayBlocks(costs), Alone(), Setup("tree"))
    for answer in run_ranks(ways, lambda way: found(ArrayBlocks(costs), way, Setup("tree"))):
        assert_same(answer, expected)
    assert max(ways[0].sizes) > 8 * (2 + 3 * tree.RECORDS)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_fault_in_one_message_changes_the_result(variant):
    costs = integers(50, 5)
    expected = found(ArrayBlocks(costs), Alone(), Setup(variant))

    class Faulty(Virtual):
        def message(self, array):
            wrong = super().message(array)
            if self.rank == 1 and self.messages == 2:  # the least costs of rows
                wrong -= 1
            return wrong

    answers = run_ranks(Faulty.all_of(2), lambda way: found(ArrayBlocks(costs), way, Setup(variant)))
    assert any((answer.col_dual != expected.col_dual).any() for answer in answers)


# ---------------------------------------------------------------- blocks


def test_every_reader_gives_the_same_proof(tmp_path):
    costs = integers(70, 10).astype(np.int64)
    np.save(tmp_path / "costs.npy", costs)
    readers = [ArrayBlocks(costs), NpyBlocks(tmp_path / "costs.npy")]
    try:
        import zarr

        readers.append(ArrayBlocks(zarr.array(costs, chunks=(20, 30))))
    except ImportError:
        pass
    best = assign(AssignmentProblem(DenseCosts(costs))).primal_cost
    for blocks in readers:
        for variant in VARIANTS:
            for answer in run_ranks(
                Virtual.all_of(3),
                lambda way, blocks=blocks, variant=variant: proved(blocks, way, Setup(variant)),
            ):
                assert (answer.cost, answer.bound) == (best, best)
                assert (costs >= answer.row_dual[:, None] + answer.col_dual).all()
    clouds = np.random.default_rng(5).uniform(0, 1, (2, 40, 2))
    answer = run_ranks(
        Virtual.all_of(2), lambda way: proved(PointBlocks(PointCosts(*clouds)), way, Setup("tree"))
    )[0]
    assert answer.cost == pytest.approx(answer.bound, rel=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_shards_together_take_little_more_than_the_matrix(variant, tmp_path):
    size = 1200
    np.save(tmp_path / "costs.npy", integers(size, 0.1))
    blocks = NpyBlocks(tmp_path / "costs.npy")
    run_ranks(Virtual.all_of(2), lambda way: proved(ArrayBlocks(integers(9, 1)), way, Setup(variant)))
    tracemalloc.start()
    try:
        run_ranks(Virtual.all_of(4), lambda way: proved(blocks, way, Setup(variant)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * 4 * size**2


# ---------------------------------------------------------------- what goes wrong


def failures(shards: int, work) -> list[Exception]:
    """What each shard raises."""
    raised: list[Exception] = []

    def run(way: Communicator) -> None:
        try:
            work(way)
        except Exception as error:
            raised.append(error)
            raise

    with pytest.raises((ShardError, ValueError)):
        run_ranks(Virtual.all_of(shards), run)
    return raised


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_shard_reports_what_is_wrong(variant, tmp_path):
    work = Setup(variant)
    many = failures(5, lambda way: found(ArrayBlocks(integers(3, 1)), way, work))
    assert [str(one) for one in many] == ["5 shards are more than 3 lines to divide. Choose at most 3."] * 5
    path = tmp_path / "costs.npy"
    np.save(path, integers(9, 1))

    def some_gone(way: Communicator) -> None:
        found(NpyBlocks(path if way.rank != 1 else path.with_name("gone.npy")), way, work)

    # The shape is asked first, where only the shard itself fails and ends the others.
    gone = failures(3, some_gone)
    assert len(gone) == 3
    assert all("gone.npy" in str(one) for one in gone)

    class Torn(ArrayBlocks):
        def rows(self, first, last):
            if first:
                raise OSError("The disk is gone.")
            return super().rows(first, last)

        cols = rows

    torn = failures(3, lambda way: found(Torn(integers(9, 1)), way, work))
    assert len(torn) == 3
    assert all("Shard 1 of 3: The disk is gone." in str(one) for one in torn)
    costs = integers(9, 1).astype(float)
    costs[4] = np.inf
    infeasible = failures(3, lambda way: found(ArrayBlocks(costs), way, work))
    assert len(infeasible) == 3
    assert all("row 4 is left over" in str(one) for one in infeasible)


@pytest.mark.parametrize("last", [lambda _: None, lambda way: way.gather(np.zeros(5))])
def test_shards_that_part_ways_raise_an_error_instead_of_waiting(last):
    def work(way: Communicator) -> None:
        way.total(np.zeros(3))
        if way.rank == 1:
            last(way)
        else:
            way.gather(np.zeros(4))

    with pytest.raises(ShardError, match="do not go on alike"):
        run_ranks(Virtual.all_of(3), work)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"solver": "auction", "shards": 2}, "auction works on one device. Choose one of: sparsified"),
        ({"shards": 0}, "shards is 0"),
        ({"devices": [0, 0]}, "give different numbers of GPUs"),
        ({"devices": [0, 1], "shards": 3}, "3 shards for 2 GPUs"),
    ],
)
def test_what_cannot_be_divided_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        assign(AssignmentProblem(DenseCosts(integers(5, 1))), **given)


def test_the_command_divides_a_matrix(tmp_path):
    path = tmp_path / "costs.npy"
    np.save(path, integers(30, 2))
    best = assign(AssignmentProblem(DenseCosts(np.load(path)))).primal_cost
    for solver in ("sparsified", "hungarian:classical"):
        done = succeed("assign", path, "--solver", solver, "--shards", "3", "--json")
        summary = json.loads(done.stdout)
        assert (summary["cost"], summary["gap"], summary["shards"]) == (best, 0, 3)
        assert summary["messages"] > 0
        assert summary["bytes_sent"] > 0
    assert_refused(run("assign", path, "--shards", "31"), 5, "31 shards are more than 30 lines")
    assert run("assign", path, "--devices", "0,x").exit_code == 2
    assert run("assign", path, "--solver", "auction", "--shards", "2").exit_code == 2


def test_an_error_of_shards_is_one_of_solvers():
    with pytest.raises(ShardError, match="6 shards are more than 5 lines"):
        assign(AssignmentProblem(DenseCosts(integers(5, 1))), shards=6)
