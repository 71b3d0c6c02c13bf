"""Timing of the stages of a computation: in this thread, in its worker threads, and on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar, TypeVarTuple

from .arrays import cupy_module, on_device
from .interrupt import end_if_asked

_Made = TypeVar("_Made")
_Arguments = TypeVarTuple("_Arguments")


class _Stages:
    """Seconds of each stage: in the thread that measures, and in its worker threads."""

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
    """Collect the seconds of the stages named by `lap` inside the block: in this thread, and in its workers.

    The seconds of this thread add up to the duration of the block. Seconds of worker threads are summed
    over all workers, which run at the same time.

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
    """Wrap a function for a worker thread, so that its stages are added to those of the workers."""
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
    """Add the time since the last `lap`, or since the block began, to a stage; no cost outside a block.

    If the array is on a GPU, the time includes the kernels that were launched there. Each call of `lap`
    also raises KeyboardInterrupt if the run was interrupted.
    """
    end_if_asked()
    counted = _stages.get()
    if counted is None:
        return
    if on_device(array):
        cupy_module().cuda.get_current_stream().synchronize()
    counted.add(stage)


class Stopwatch:
    """Seconds spent in each stage, by the host's clock or by GPU events.

    Parameters
    ----------
    array : array
        Any array on the device whose work is timed.

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
        """Add the time since the last lap, or since the start, to this stage."""
        self._laps.append((stage, self._now()))
        if len(self._laps) > 1000:
            self.seconds()

    def seconds(self) -> dict[str, float]:
        """Seconds of each stage so far; waits for the GPU to finish."""
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
