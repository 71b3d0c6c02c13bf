"""Shards of GPUs of one host through a stand-in for NCCL that answers grouped calls alone."""

from __future__ import annotations

import ctypes
import time
from threading import Lock, get_ident
from types import SimpleNamespace

import numpy as np
import pytest
from problems import FAMILIES

from outbid.assignment.papers.shards import nccl as shards_of_gpus
from outbid.assignment.papers.shards.blocks import ArrayBlocks
from outbid.assignment.papers.shards.communicator import Alone, Communicator, ShardError, Virtual, run_ranks
from outbid.assignment.papers.shards.nccl import Nccl
from outbid.assignment.papers.shards.search import Setup, found

BYTES, TYPES = 1, {2: np.int32, 4: np.int64, 7: np.float32, 8: np.float64}
LEAST, TOTAL = 3, 0


class Mine(np.ndarray):
    """An array of a GPU, as far as shards ask."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def mine(array):
    return np.array(array, order="C").view(Mine)


def seen(place: int, length: int, kind: type) -> np.ndarray:
    """The memory that begins at a place."""
    nothing = np.zeros(0, kind)
    return np.frombuffer((ctypes.c_char * (length * nothing.itemsize)).from_address(place), kind)


class StandIn:
    """NCCL: a call outside of a group, or a group without the call of a GPU, would wait for ever."""

    NCCL_UINT8, NCCL_INT32, NCCL_INT64, NCCL_FLOAT32, NCCL_FLOAT64 = BYTES, *TYPES
    NCCL_MIN, NCCL_SUM = LEAST, TOTAL

    class NcclError(RuntimeError):
        """What CuPy raises."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.NcclCommunicator = self
        self.current, self.groups, self.fails_at = 0, 0, fails_at
        self.links: list[Link] = []
        self.calls: list[tuple] | None = None

    def initAll(self, devices: list[int]) -> list[Link]:
        self.links = [Link(self, device) for device in devices]
        return self.links

    def groupStart(self) -> None:
        assert self.calls is None, "two groups at once"
        self.calls = []

    def groupEnd(self) -> None:
        calls, self.calls = self.calls, None
        self.groups += 1
        if self.groups == self.fails_at:
            raise self.NcclError("unhandled cuda error")
        assert [link for link, *_ in calls] == self.links
        for _, target, result in calls:
            given = result()
            ctypes.memmove(target, given.ctypes.data, given.nbytes)


class Link:
    """The communicator of one GPU."""

    def __init__(self, nccl: StandIn, device: int) -> None:
        self.nccl, self.device, self.is_aborted = nccl, device, False

    def allGather(self, source, target, count, kind, stream) -> None:
        assert (kind, stream) == (BYTES, self.device)
        self._add(target, np.concatenate, seen(source, count, np.uint8))

    def allReduce(self, source, target, count, kind, way, stream) -> None:
        assert stream == self.device
        reduced = {LEAST: np.min, TOTAL: np.sum}[way]
        self._add(
            target,
            lambda all_of: reduced(all_of, axis=0).astype(TYPES[kind]),
            seen(source, count, TYPES[kind]),
        )

    def _add(self, target, joined, given) -> None:
        calls = self.nccl.calls
        assert calls is not None, "a call outside of a group"
        assert self.nccl.current == self.device
        self.given = given
        calls.append((self, target, lambda: joined([link.given for link in self.nccl.links])))

    def abort(self) -> None:
        self.is_aborted = True


class Gpu:
    """The current GPU, of the thread that makes the calls."""

    def __init__(self, nccl: StandIn, number: int) -> None:
        self.nccl, self.number = nccl, number

    def __enter__(self) -> None:
        self.nccl.current = self.number

    def __exit__(self, *_: object) -> None:
        pass


def gpus(monkeypatch, size: int, fails_at: int | None = None) -> tuple[StandIn, list[Communicator]]:
    """The stand-in, and shards of GPUs 5, 6, 7 …, whose kernels on the CPU take turns."""
    nccl, turn, streams = StandIn(fails_at), Lock(), {}
    devices = list(range(5, 5 + size))
    cuda = SimpleNamespace(
        Device=lambda number: Gpu(nccl, number),
        get_current_stream=lambda: SimpleNamespace(ptr=streams[get_ident()]),
    )
    space = SimpleNamespace(empty=lambda shape, kind: np.empty(shape, kind).view(Mine), empty_like=mine)
    for name, value in {
        "_nccl": lambda: nccl,
        "cupy_module": lambda: SimpleNamespace(cuda=cuda),
        "array_module": lambda _: space,
        "to_device": mine,
        "to_host": np.asarray,
    }.items():
        monkeypatch.setattr(shards_of_gpus, name, value)

    class Turns(Nccl):
        def begin(self) -> None:
            turn.acquire()
            streams[get_ident()] = devices[self.rank]

        def leave(self) -> None:
            turn.release()

    ways = Turns.of_host(devices)
    meet = ways[0]._process.meet

    def in_turn(*given) -> None:
        turn.release()
        try:
            meet(*given)
        finally:
            turn.acquire()

    ways[0]._process.meet = in_turn
    return nccl, ways


def calls(way: Communicator, given: list, places: tuple = (np.asarray,)) -> list:
    """What a shard hears to every kind of call, with arrays at each of these places."""
    heard = []
    for arrays in given:
        for place in places:
            heard += [getattr(way, name)(place(arrays[way.rank])) for name in ("gather", "least")]
            if arrays.dtype.kind == "i":
                heard.append(way.total(place(arrays[way.rank])))
    return heard


def assert_same_answers(one: list[list], other: list[list]) -> None:
    for those, expected in zip(one, other, strict=True):
        for here, there in zip(those, expected, strict=True):
            assert here.dtype == there.dtype
            np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_every_call_is_made_for_all_gpus_in_one_group(monkeypatch, size):
    rng = np.random.default_rng(1)
    given = [rng.integers(-99, 99, (size, 5, 3)), rng.normal(size=(size, 4)), np.zeros((size, 0), np.int64)]
    given.append(given[0].astype(np.int32))

    nccl, ways = gpus(monkeypatch, size)
    assert_same_answers(
        *(run_ranks(those, lambda way: calls(way, given)) for those in (ways, Virtual.all_of(size)))
    )
    assert nccl.groups == 11
    assert not any(link.is_aborted for link in nccl.links)


@pytest.mark.parametrize("variant", ["tree", "classical"])
def test_a_search_ends_as_that_of_one_device(monkeypatch, variant):
    costs = FAMILIES["uniform_integers"](np.random.default_rng(2), 60, 60)
    expected = found(ArrayBlocks(costs), Alone(), Setup(variant))
    _, ways = gpus(monkeypatch, 3)
    for answer in run_ranks(ways, lambda way: found(ArrayBlocks(costs), way, Setup(variant))):
        np.testing.assert_array_equal(answer.col_of_row, expected.col_of_row)
        np.testing.assert_array_equal(answer.col_dual, expected.col_dual)


def test_a_shard_that_fails_ends_those_that_wait(monkeypatch):
    nccl, ways = gpus(monkeypatch, 3)
    ended = []

    def work(way: Communicator) -> None:
        try:
            way.total(np.zeros(2, int))
            if way.rank == 1:
                raise OSError("the block cannot be read")
            way.total(np.zeros(2, int))
        except ShardError as error:
            ended.append(str(error))
            raise

    begun = time.monotonic()
    with pytest.raises(OSError, match="the block cannot be read"):
        run_ranks(ways, work)
    assert time.monotonic() - begun < 10
    assert ended == ["Shard 1 of 3 failed: the block cannot be read"] * 2
    assert all(link.is_aborted for link in nccl.links)


@pytest.mark.parametrize("other", ["an end", "another length", "another call"])
def test_shards_that_do_not_go_on_alike_are_an_error(monkeypatch, other):
    _, ways = gpus(monkeypatch, 2)

    def work(way: Communicator) -> None:
        if way.rank == 0:
            way.total(np.zeros(2, int))
        elif other == "another length":
            way.total(np.zeros(3, int))
        elif other == "another call":
            way.least(np.zeros(2, int))

    with pytest.raises(ShardError, match="do not go on alike"):
        run_ranks(ways, work)


def test_a_failure_of_nccl_ends_all(monkeypatch):
    _, ways = gpus(monkeypatch, 3, fails_at=2)

    def work(way: Communicator) -> None:
        for _ in range(3):
            way.gather(np.zeros(2))

    with pytest.raises(ShardError, match="NCCL failed: unhandled cuda error"):
        run_ranks(ways, work)
