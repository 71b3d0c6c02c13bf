"""What shards say to each other: three calls, each of which every shard makes in the same order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import Barrier, BrokenBarrierError, Thread
from typing import TypeVar

from numpy.typing import NDArray

from ..._arrays import array_module

_Made = TypeVar("_Made")


class ShardError(RuntimeError):
    """A shard cannot go on; every other one that waits for it raises this, too."""


class EndedElsewhere(ShardError):
    """Another shard has failed; its own error says more."""


class Communicator(ABC):
    """One shard's way to the others.

    Arrays may live on the host or on the shard's GPU, and come back there. All shards give arrays of one
    shape and type.

    Parameters
    ----------
    rank, size : int
        Number of this shard, and how many there are.

    Attributes
    ----------
    messages, sent : int
        Calls so far, and the bytes that this shard gave to them.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.messages = self.sent = 0

    def gather(self, array: NDArray) -> NDArray:
        """(size, ...): the arrays of all shards, in the order of their ranks."""
        self._count(array)
        return self._gather(array)

    def least(self, array: NDArray) -> NDArray:
        """The least of all shards, number by number."""
        self._count(array)
        return self._least(array)

    def total(self, array: NDArray) -> NDArray:
        """The sum of all shards, number by number, in the order of their ranks."""
        self._count(array)
        return self._total(array)

    @abstractmethod
    def _gather(self, array: NDArray) -> NDArray:
        """What `gather` returns."""

    def _least(self, array: NDArray) -> NDArray:
        return self._gather(array).min(axis=0)

    def _total(self, array: NDArray) -> NDArray:
        return self._gather(array).sum(axis=0, dtype=array.dtype)

    def end(self) -> None:  # noqa: B027  (alone there is nobody to wait for)
        """After the last call: no other shard may wait for one more."""

    def abort(self, reason: str) -> None:  # noqa: B027  (alone there is nobody to warn)
        """Make the calls of all other shards fail, for this one cannot go on."""

    def _count(self, array: NDArray) -> None:
        self.messages += 1
        self.sent += array.nbytes


class Alone(Communicator):
    """The only shard."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def _gather(self, array: NDArray) -> NDArray:
        return array[None]


class _Meeting:
    """Where the shards of one process meet."""

    def __init__(self, size: int) -> None:
        self.barrier, self.reason = Barrier(size), ""
        self.given: list[NDArray | None] = [None] * size

    def exchange(self, rank: int, given: NDArray | None) -> list[NDArray | None]:
        """What all shards give at once; None of one that has ended."""
        self.given[rank] = given
        self._wait()
        found = list(self.given)
        self._wait()
        return found

    def _wait(self) -> None:
        try:
            self.barrier.wait()
        except BrokenBarrierError:
            raise EndedElsewhere(self.reason) from None


class Virtual(Communicator):
    """One of several shards in threads of one process, on the CPU or all on one GPU.

    For tests, and for matrices that are read part by part: answer, messages and bytes are those of so many
    devices, the time says nothing about them.

    Examples
    --------
    >>> import numpy as np
    >>> run_ranks(Virtual.all_of(3), lambda way: int(way.total(np.array([way.rank]))[0]))
    [3, 3, 3]
    """

    def __init__(self, rank: int, size: int, meeting: _Meeting) -> None:
        super().__init__(rank, size)
        self._meeting = meeting

    @classmethod
    def all_of(cls, size: int) -> list[Communicator]:
        """All shards."""
        meeting = _Meeting(size)
        return [cls(rank, size, meeting) for rank in range(size)]

    def _gather(self, array: NDArray) -> NDArray:
        found = self._alike(self._meeting.exchange(self.rank, self.message(array)))
        return array_module(array).stack(found)

    def end(self) -> None:
        self._alike(self._meeting.exchange(self.rank, None))

    def _alike(self, given: list[NDArray | None]) -> list[NDArray | None]:
        """Refuse in all shards what would keep some of them waiting for ever."""
        kinds = ["an end" if one is None else f"{one.dtype} of shape {one.shape}" for one in given]
        if len(set(kinds)) > 1:
            raise ShardError(f"The shards do not go on alike: {', '.join(kinds)}. Report this as a fault.")
        return given

    def message(self, array: NDArray) -> NDArray:
        """A copy of what is given: the other shards see nothing but bytes."""
        return array.copy()

    def abort(self, reason: str) -> None:
        self._meeting.reason = self._meeting.reason or reason
        self._meeting.barrier.abort()


def run_ranks(ways: Sequence[Communicator], work: Callable[[Communicator], _Made]) -> list[_Made]:
    """What the work of every shard returns, each in a thread of its own.

    Raises
    ------
    Exception
        That of the first shard that failed by itself; all others have ended.
    """
    made: dict[int, _Made] = {}
    failed: dict[int, BaseException] = {}

    def run(way: Communicator) -> None:
        try:
            made[way.rank] = work(way)
            way.end()
        except BaseException as error:
            failed[way.rank] = error
            way.abort(f"Shard {way.rank} of {way.size} failed: {error}")

    if len(ways) == 1:
        return [work(ways[0])]
    threads = [Thread(target=run, args=(way,), daemon=True) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise min(failed.items(), key=lambda one: (isinstance(one[1], EndedElsewhere), one[0]))[1]
    return [made[way.rank] for way in ways]
