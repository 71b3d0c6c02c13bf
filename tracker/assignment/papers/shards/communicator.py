"""Communication between shards: three collective calls, which all shards make in the same order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import Barrier, BrokenBarrierError, Lock, Thread
from typing import TypeVar

from numpy.typing import NDArray

from ....compute.arrays import array_module

_Made = TypeVar("_Made")


class ShardError(RuntimeError):
    """A shard cannot continue; all shards that wait for it raise this error, too."""


class EndedElsewhere(ShardError):
    """Another shard has failed; its own error gives the reason."""


class Communicator(ABC):
    """The connection of one shard to the others.

    Arrays may be on the host or on the GPU of the shard, and results are returned there. All shards must pass
    arrays of the same shape and dtype.

    Parameters
    ----------
    rank, size : int
        Number of this shard, and how many there are.

    Attributes
    ----------
    messages, sent : int
        Number of calls so far, and bytes that this shard sent.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.messages = self.sent = 0

    def gather(self, array: NDArray) -> NDArray:
        """(size, ...): the arrays of all shards, in the order of their ranks."""
        self._count(array)
        return self._gather(array)

    def least(self, array: NDArray) -> NDArray:
        """Elementwise minimum over all shards."""
        self._count(array)
        return self._least(array)

    def total(self, array: NDArray) -> NDArray:
        """Elementwise sum over all shards, added in the order of ranks."""
        self._count(array)
        return self._total(array)

    @abstractmethod
    def _gather(self, array: NDArray) -> NDArray:
        """Implementation of `gather`."""

    def _least(self, array: NDArray) -> NDArray:
        return self._gather(array).min(axis=0)

    def _total(self, array: NDArray) -> NDArray:
        return self._gather(array).sum(axis=0, dtype=array.dtype)

    def begin(self) -> None:  # noqa: B027  (alone there is nobody to wait for)
        """Called before the first exchange."""

    def end(self) -> None:  # noqa: B027
        """Called after the last exchange; no other shard may wait for a further one."""

    def leave(self) -> None:  # noqa: B027
        """Called at the end, or after a failure, to release resources."""

    def abort(self, reason: str) -> None:  # noqa: B027  (alone there is nobody to warn)
        """Make the calls of all other shards fail, because this one cannot continue."""

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
    """Meeting point of the shards of one process, of which only one works at a time."""

    def __init__(self, size: int) -> None:
        self.barrier, self.reason, self.turn = Barrier(size), "", Lock()
        # Two tables are used alternately: none is written again before all shards have read it.
        self.tables: tuple[list[NDArray | None], ...] = ([None] * size, [None] * size)

    def exchange(self, rank: int, number: int, given: NDArray | None) -> list[NDArray | None]:
        """The arrays of all shards for the exchange with this number; None for a shard that has ended."""
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
    """One of several shards that are threads of one process, on the CPU or all on one GPU.

    For tests, and for matrices that are read in parts. The answer and the messages equal those of as many
    devices; the time does not. Only one shard runs at a time, from one message to the next, because threads
    that compete for Python's lock lose more time than they work.

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
        """The arrays of all shards; a call that would make some shards wait forever fails in all."""
        self._exchanges += 1
        given = self._meeting.exchange(self.rank, self._exchanges, mine)
        kinds = ["an end" if one is None else f"{one.dtype} of shape {one.shape}" for one in given]
        if len(set(kinds)) > 1:
            raise ShardError(f"The shards do not go on alike: {', '.join(kinds)}. Report this as a fault.")
        return given

    def message(self, array: NDArray) -> NDArray:
        """Copy an array, so that other shards get only its bytes."""
        return array.copy()

    def abort(self, reason: str) -> None:
        self._meeting.reason = self._meeting.reason or reason
        self._meeting.barrier.abort()


def run_ranks(ways: Sequence[Communicator], work: Callable[[Communicator], _Made]) -> list[_Made]:
    """Run the work of every shard in a separate thread; returns all results.

    Raises
    ------
    Exception
        The error of the first shard that failed by itself; all other shards have ended.
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
