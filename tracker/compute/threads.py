"""Threads for kernels that release the GIL, and background work."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread
from typing import Any, Generic, Self, TypeVar, TypeVarTuple, cast

from .arrays import on_device
from .timing import lap, timed_beside

FEW = min(os.cpu_count() or 1, 4) if (os.cpu_count() or 1) < 16 else 8
"""Threads for work that moves memory or compresses; with more, it would wait for the memory."""
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_Arguments = TypeVarTuple("_Arguments")
_workers: ContextVar[int] = ContextVar("workers", default=1)
_lasting: ContextVar[dict[int, ThreadPoolExecutor] | None] = ContextVar("lasting", default=None)


@contextmanager
def computing(workers: int) -> Iterator[None]:
    """Let the work inside the block use so many threads, which do not change its result.

    Threads of `in_threads` are kept until the outermost block ends, for to start them takes as long as the
    jobs. Each has one thread for itself, so that work inside of work starts no others.

    Examples
    --------
    >>> with computing(3):
    ...     threads_for(()), list(in_threads(threads_for, [()], workers=2))
    (3, [1])
    """
    outer, pools = _lasting.get(), dict[int, ThreadPoolExecutor]()
    tokens = _workers.set(workers), _lasting.set(pools if outer is None else outer)
    try:
        yield
    finally:
        _workers.reset(tokens[0])
        _lasting.reset(tokens[1])
        for pool in pools.values():
            pool.shutdown(cancel_futures=True)


def threads_for(array: Any) -> int:
    """Threads for work on an array: those of `computing`, or one on a GPU, whose kernels are parallel."""
    return 1 if on_device(array) else _workers.get()


def in_threads(work: Callable[[_Given], _Made], jobs: Iterable[_Given], workers: int) -> Iterator[_Made]:
    """Run the jobs in threads, for kernels that release the GIL; results are in the order of the jobs.

    Examples
    --------
    >>> list(in_threads(abs, [-2, 1], workers=2))
    [2, 1]
    """
    if workers <= 1:
        yield from map(work, jobs)
        return
    kept = _lasting.get()
    pool = (kept or {}).get(workers) or ThreadPoolExecutor(workers)
    if kept is not None:
        kept[workers] = pool
    try:
        yield from pool.map(timed_beside(work), jobs)
    finally:
        if kept is None:
            pool.shutdown(cancel_futures=True)


class Team:
    """Threads that stay alive for many jobs of ten microseconds or so, because starting threads takes longer.

    Parameters
    ----------
    size : int
        How many; with one the caller's thread does all.

    Examples
    --------
    >>> with Team(2) as team:
    ...     team.do(abs, [-2, 1])
    [2, 1]
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool: ThreadPoolExecutor | None = None

    def do(self, work: Callable[[_Given], _Made], jobs: Sequence[_Given]) -> list[_Made]:
        """Run the jobs at the same time, one in each thread; results are in the order of the jobs."""
        if self.size <= 1 or len(jobs) <= 1:
            return list(map(work, jobs))
        self._pool = self._pool or ThreadPoolExecutor(self.size)
        return list(self._pool.map(timed_beside(work), jobs))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class Ahead(Generic[_Made]):
    """Iterate over the items; a thread prepares the next item while the current one is in use.

    The first item is begun at once. Leave it by `close`, unless all items are taken.

    Parameters
    ----------
    items : iterable
        Advanced by one thread at a time.
    stage : str
        Name of the stage to which its seconds are added; see `stages_timed`.

    Examples
    --------
    >>> list(Ahead(range(3), "counting"))
    [0, 1, 2]
    """

    def __init__(self, items: Iterable[_Made], stage: str) -> None:
        self._items, self._stage, self._end = iter(items), stage, object()
        self._pool = ThreadPoolExecutor(1)
        self._coming = self._pool.submit(timed_beside(self._make))

    def _make(self) -> _Made | object:
        made = next(self._items, self._end)
        lap(self._stage)
        return made

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> _Made:
        try:
            item = self._coming.result()
        except BaseException:
            self.close()
            raise
        if item is self._end:
            self.close()
            raise StopIteration
        self._coming = self._pool.submit(timed_beside(self._make))
        return cast("_Made", item)

    def close(self) -> None:
        """End the thread, and the items if they are a generator."""
        self._pool.shutdown(cancel_futures=True)
        if isinstance(self._items, Generator):
            self._items.close()


def begun(work: Callable[[*_Arguments], _Made], *given: *_Arguments) -> Future[_Made]:
    """Start work in a background thread. `result` waits for it; the end of the program does not.

    Examples
    --------
    >>> begun(abs, -2).result()
    2
    """
    made: Future[_Made] = Future()
    timed = timed_beside(work)

    def make() -> None:
        try:
            made.set_result(timed(*given))
        except BaseException as error:
            made.set_exception(error)

    Thread(target=make, daemon=True).start()
    return made
