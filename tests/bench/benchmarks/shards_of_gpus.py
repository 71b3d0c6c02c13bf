"""Shards of a matrix on GPUs of their own, in threads of one process or in a process each, for benchmarks."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import cupy  # noqa: TID251  (the benchmarks make the costs where they are used)
import numpy as np
from numpy.typing import NDArray

from outbid.assignment.papers.hungarian import Matching
from outbid.assignment.papers.shards.communicator import Alone, Communicator, run_ranks
from outbid.assignment.papers.shards.nccl import Nccl, new_identity
from outbid.assignment.papers.shards.search import Setup, found

_AT_ONCE = 1 << 26
"""Costs that are made at once."""
_STARTED = 120.0
"""Seconds in which a process has a GPU and the others."""
_ANSWERED = 300.0
"""Seconds in which it has done its work."""

Ranks = Callable[..., list[Any]]
"""Given a function of a communicator and further arguments, what it returns for every rank."""


@dataclass(frozen=True)
class Hashed:
    """A matrix of integers up to `most`, made where it is asked for, by a hash of the place of each."""

    size: int
    most: int
    seed: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.size, self.size

    def rows(self, first: int, last: int) -> NDArray[np.int32]:
        return self._block(range(first, last), range(self.size))

    def cols(self, first: int, last: int) -> NDArray[np.int32]:
        return self._block(range(self.size), range(first, last))

    def _block(self, rows: range, cols: range) -> NDArray[np.int32]:
        made = cupy.empty((len(rows), len(cols)), np.int32)
        col = cupy.arange(cols.start, cols.stop, dtype=np.uint64)
        step = max(1, _AT_ONCE // max(1, len(cols)))
        for begin in range(0, len(rows), step):
            row = cupy.arange(rows.start + begin, min(rows.start + begin + step, rows.stop), dtype=np.uint64)
            bits = (
                row[:, None] * np.uint64(self.size) + col + np.uint64(self.seed * 0x9E3779B97F4A7C15 % 2**64)
            )
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
            made[begin : begin + step] = (bits ^ (bits >> np.uint64(31))) % np.uint64(self.most + 1)
        cupy.cuda.Device().synchronize()  # so that no search has to wait for it
        return made


def searched(way: Communicator, blocks: Hashed, variant: str) -> tuple[float, Matching]:
    """Seconds of one shard without the making of its block, and what all found; counts messages anew."""
    way.messages = way.sent = 0
    start = time.perf_counter()
    answer = found(blocks, way, Setup(variant, is_on_gpu=True))
    return time.perf_counter() - start - answer.stats["reading_seconds"], answer


def message_seconds(way: Communicator, call: str, length: int, on_gpu: bool, repeats: int) -> float:
    """Seconds of a message of so many 8-byte numbers, from the start of one to the start of the next."""
    array = (cupy if on_gpu else np).zeros(length, np.int64)
    for _ in range(10):
        getattr(way, call)(array)
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        getattr(way, call)(array)
    cupy.cuda.Device().synchronize()
    return (time.perf_counter() - start) / repeats


def release(way: Communicator) -> None:  # noqa: ARG001  (every rank is given its own)
    """Return what CuPy keeps to the GPU."""
    cupy.get_default_memory_pool().free_all_blocks()


def in_threads(gpus: int) -> Ranks:
    """A thread a GPU; one GPU is alone."""
    ways = [Alone()] if gpus == 1 else Nccl.of_host(list(range(gpus)))

    def each(work: Callable[..., Any], *given: Any) -> list[Any]:
        def run(way: Communicator) -> Any:
            with cupy.cuda.Device(way.rank):
                return work(way, *given)

        return run_ranks(ways, run)

    return each


@contextmanager
def in_processes(gpus: int) -> Iterator[Ranks]:
    """A process a GPU, joined through NCCL.

    Raises
    ------
    RuntimeError
        If one of them fails, or does not answer.
    """
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    identity = new_identity()
    for rank in range(gpus):
        here, there = context.Pipe()
        processes.append(context.Process(target=_rank, args=(rank, gpus, identity, there), daemon=True))
        processes[-1].start()
        there.close()
        pipes.append(here)

    def answers(seconds: float) -> list[Any]:
        found = []
        for pipe in pipes:
            if not pipe.poll(seconds):
                raise RuntimeError(f"A process with a GPU has not answered within {seconds:g} s.")
            found.append(pipe.recv())
        failed = [one for one in found if isinstance(one, Exception)]
        if failed:
            raise RuntimeError(f"A process with a GPU failed: {failed[0]!r}") from failed[0]
        return found

    def each(work: Callable[..., Any], *given: Any) -> list[Any]:
        for pipe in pipes:
            pipe.send((work, given))
        return answers(_ANSWERED)

    try:
        answers(_STARTED)
        yield each
    finally:
        for process in processes:
            process.kill()
            process.join()


def _rank(rank: int, size: int, identity: tuple, pipe: Connection) -> None:
    """What a process does: join the others, then the work that it is sent."""
    with cupy.cuda.Device(rank):
        try:
            way = Nccl.of_process(rank, size, identity, rank)
            pipe.send(None)
            while True:
                work, given = pipe.recv()
                pipe.send(work(way, *given))
        except EOFError:
            pass
        except Exception as error:
            pipe.send(error)
