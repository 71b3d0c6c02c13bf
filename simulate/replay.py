"""How long one of several shards would take, by messages heard before: a prediction, no measurement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from numpy.typing import NDArray

from outbid._arrays import on_device
from outbid.assignment.hungarian import Found
from outbid.assignment.shards.blocks import Blocks
from outbid.assignment.shards.communicator import Alone, Communicator, Virtual, run_ranks
from outbid.assignment.shards.search import Work, found

MESSAGE = 200e-6
"""Seconds that a message between GPUs of one host adds to a search, from Python: measured on two H100.

It is 140 to 300 µs in searches of trees, whose shards wait for each other; of messages alone it is 93 to 101.
"""
BYTES_A_SECOND = {True: 250e9, False: 2.8e9}
"""Received by a GPU, of arrays on the GPU and of those on the host, which pass through it: measured."""


class Recorded(Virtual):
    """Keeps what the first shard hears."""

    heard: list[NDArray] | None = None

    def _gather(self, array: NDArray) -> NDArray:
        gathered = super()._gather(array)
        if self.rank == 0:
            self.heard = [*(self.heard or []), gathered]
        return gathered


class Replayed(Communicator):
    """The first shard by itself, which hears what it heard before."""

    def __init__(self, size: int, heard: list[NDArray]) -> None:
        super().__init__(0, size)
        self._heard: Iterator[NDArray] = iter(heard)

    def _gather(self, array: NDArray) -> NDArray:  # noqa: ARG002
        return next(self._heard)


class Predicted(NamedTuple):
    """Seconds, those of the shard itself and of its messages, and what it found."""

    seconds: float
    of_shard: float
    of_messages: float
    answer: Found


def timed_shard(blocks: Blocks, way: Communicator, work: Work) -> tuple[float, Found]:
    """Seconds of a shard without the making of its block."""
    start = time.perf_counter()
    answer = found(blocks, way, work)
    return time.perf_counter() - start - answer.stats["reading_seconds"], answer


def predicted(blocks: Blocks, shards: int, work: Work) -> Predicted:
    """The seconds of so many shards, each on a GPU of its own.

    Shards that take turns find all messages. The first of them then works alone with these, so that nothing
    else uses its processor; for each message `MESSAGE` is added, and the time of the bytes it receives.

    Examples
    --------
    >>> import numpy as np
    >>> from outbid.assignment.shards.blocks import ArrayBlocks
    >>> costs = np.random.default_rng(0).integers(0, 90, (30, 30))
    >>> predicted(ArrayBlocks(costs), 3, Work("tree")).answer.stats["shards"]
    3
    """
    if shards == 1:
        seconds, answer = timed_shard(blocks, Alone(), work)
        return Predicted(seconds, seconds, 0.0, answer)
    ways = Recorded.all_of(shards)
    run_ranks(ways, lambda way: found(blocks, way, work))
    assert isinstance(ways[0], Recorded)
    heard = ways[0].heard or []
    seconds, answer = timed_shard(blocks, Replayed(shards, heard), work)
    copied = sum(array.nbytes / BYTES_A_SECOND[on_device(array)] for array in heard)
    messages = MESSAGE * len(heard) + copied * (shards - 1) / shards
    return Predicted(seconds + messages, seconds, messages, answer)
