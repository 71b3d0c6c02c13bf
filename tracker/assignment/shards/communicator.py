"""What shards say to each other: three calls, each of which every shard makes in the same order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import Barrier, BrokenBarrierError, Lock, Thread
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

    def begin(self) -> None:  # noqa: B027  (alone there is nobody to wait for)
        """Before the first call."""

    def end(self) -> None:  # noqa: B027
        """After the last call: no other shard may wait for one more."""

    def leave(self) -> None:  # noqa: B027
        """After the end, or after a failure."""

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
    """Where the shards of one process meet, of which one at a time has the turn to work."""

    def __init__(self, size: int) -> None:
        self.barrier, self.reason, self.turn = Barrier(size), "", Lock()
        # Two tables in turn: nobody lays on one again before all have read it.
        self.tables: tuple[list[NDArray | None], ...] = ([None] * size, [None] * size)

    def exchange(self, rank: int, number: int, given: NDArray | None) -> list[NDArray | None]:
        """What all shards give at their exchange of this number; None of one that has ended."""
        table = self.tables[number % 2]
        table[rank] = given
        self.turn.release()
        try:
            self.barrier.wait()
            return list(table)
        except BrokenBarrierError:
            raise EndedElsewhere(self.reason) from None
        finally:
            self.turn.acquire()


class Virtual(Communicator):
    """One of several shards in threads of one process, on the CPU or all on one GPU.

    For tests, and for matrices that are read part by part: answer, messages and bytes are those of so many
    devices, the time says nothing about them. They take turns, from one message to the next: threads that
    all ask for Python's lock at once lose more time by that than they take to work.

    Examples
    --------
    >>> import numpy as np
    >>> run_ranks(Virtual.all_of(3), lambda way: int(way.total(np.array([way.rank]))[0]))
    [3, 3, 3]
    """

    def __init__(self, rank: int, size: int, meeting: _Meeting) -> None:
        super().__init__(rank, size)
        self._meeting, self._exchanges, self._has_turn = meeting, 0, False

    @classmethod
    def all_of(cls, size: int) -> list[Communicator]:
        """All shards."""
        meeting = _Meeting(size)
        return [cls(rank, size, meeting) for rank in range(size)]

    def _gather(self, array: NDArray) -> NDArray:
        return array_module(array).stack(self._exchanged(self.message(array)))

    def begin(self) -> None:
        self._has_turn = self._meeting.turn.acquire()

    def end(self) -> None:
        self._exchanged(None)

    def leave(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._meeting.turn.release()

    def _exchanged(self, mine: NDArray | None) -> list[NDArray | None]:
        """What all give; refused in all of them is what would keep some waiting for ever."""
        self._exchanges += 1
        given = self._meeting.exchange(self.rank, self._exchanges, mine)
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
            way.begin()
            made[way.rank] = work(way)
            way.end()
        except BaseException as error:
            failed[way.rank] = error
            way.abort(f"Shard {way.rank} of {way.size} failed: {error}")
        finally:
            way.leave()

    threads = [Thread(target=run, args=(way,), daemon=True) for way in ways]
    if len(ways) == 1:
        run(ways[0])
    else:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failed:
        raise min(failed.items(), key=lambda one: (isinstance(one[1], EndedElsewhere), one[0]))[1]
    return [made[way.rank] for way in ways]
