"""Seconds that stages of work take: of a thread, of those that work for it, and of a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar, TypeVarTuple

from ._arrays import cupy_module, on_device
from ._interrupt import end_if_asked

_Made = TypeVar("_Made")
_Arguments = TypeVarTuple("_Arguments")


class _Stages:
    """Seconds of stages: of the thread that asked, and of those that work for it."""

    def __init__(self, seconds: dict[str, float], beside: dict[str, float], counting: Lock) -> None:
        self.seconds, self.beside, self.counting = seconds, beside, counting
        self.last = time.perf_counter()

    def add(self, stage: str) -> None:
        now = time.perf_counter()
        with self.counting:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.last
        self.last = now


_stages: ContextVar[_Stages | None] = ContextVar("stages", default=None)


@contextmanager
def stages_timed() -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Seconds of the stages that `lap` names inside the block: in this thread, and in others beside it.

    The first add up to the time that the block takes. The second are those of the threads that it starts,
    together: these work at the same time.

    Examples
    --------
    >>> with stages_timed() as (seconds, beside):
    ...     lap("nothing")
    >>> list(seconds), beside
    (['nothing'], {})
    """
    stages = _Stages({}, {}, Lock())
    token = _stages.set(stages)
    try:
        yield stages.seconds, stages.beside
    finally:
        _stages.reset(token)


def timed_beside(work: Callable[[*_Arguments], _Made]) -> Callable[[*_Arguments], _Made]:
    """The work as another thread does it, whose laps count beside those of this one."""
    stages = _stages.get()
    if stages is None:
        return work

    def timed(*given: *_Arguments) -> _Made:
        token = _stages.set(_Stages(stages.beside, stages.beside, stages.counting))
        try:
            return work(*given)
        finally:
            _stages.reset(token)

    return timed


def lap(stage: str, array: Any = None) -> None:
    """The time since the last lap, or since the block began, belongs to this stage; free where nobody asks.

    With an array on a GPU, what was launched there belongs to it as well. Between stages a run can be ended.
    """
    end_if_asked()
    counted = _stages.get()
    if counted is None:
        return
    if on_device(array):
        cupy_module().cuda.get_current_stream().synchronize()
    counted.add(stage)


class Stopwatch:
    """Seconds spent in the stages of work, by the host's clock or by events between the GPU's.

    Parameters
    ----------
    array : array
        Where it lives, the work is done.

    Examples
    --------
    >>> import numpy as np
    >>> clock = Stopwatch(np.zeros(1))
    >>> clock.lap("nothing")
    >>> list(clock.seconds())
    ['nothing']
    """

    def __init__(self, array: Any) -> None:
        self._make_event = cupy_module().cuda.Event if on_device(array) else None
        self._total: dict[str, float] = {}
        self._laps: list[tuple[str, Any]] = [("", self._now())]

    def lap(self, stage: str) -> None:
        """The time since the last lap, or since the start, belongs to this stage."""
        self._laps.append((stage, self._now()))
        if len(self._laps) > 1000:
            self.seconds()

    def seconds(self) -> dict[str, float]:
        """Seconds of each stage so far; waits for the GPU."""
        if self._make_event:
            self._laps[-1][1].synchronize()
        for (_, start), (stage, stop) in pairwise(self._laps):
            taken = (
                cupy_module().cuda.get_elapsed_time(start, stop) / 1e3 if self._make_event else stop - start
            )
            self._total[stage] = self._total.get(stage, 0.0) + taken
        del self._laps[:-1]
        return dict(self._total)

    def _now(self) -> Any:
        if self._make_event is None:
            return time.perf_counter()
        event = self._make_event()
        event.record()
        return event
