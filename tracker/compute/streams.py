"""Lanes: threads that each own a GPU stream, so that copies and computation overlap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .arrays import crossing, cupy_module
from .threads import in_threads

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def in_lanes(work: Callable[[_Given], _Made], jobs: Iterable[_Given], lanes: int) -> Iterator[_Made]:
    """Run the jobs in threads as `in_threads`, each thread with a stream of its own on the current GPU.

    The arrays of one job are therefore copied to or from the GPU while another job computes. Inside a
    job, `to_device` and `to_host` copy through pinned memory of that thread.
    """
    if "cupy" not in sys.modules:
        yield from in_threads(work, jobs, lanes)
        return
    device = cupy_module().cuda.Device()
    idle = _idle_lanes.setdefault(device.id, [])

    def in_lane(job: _Given) -> _Made:
        with device:
            lane = idle.pop() if idle else _Lane()
            token = crossing.set(lane)
            try:
                with lane.stream:
                    return work(job)
            finally:
                lane.stream.synchronize()
                crossing.reset(token)
                idle.append(lane)

    yield from in_threads(in_lane, jobs, lanes)


class _Lane:
    """A stream of the current GPU, and two pinned buffers through which arrays are copied in pieces.

    The host fills or empties one buffer while the other is copied. CuPy's own pool of pinned memory is kept
    by size, so it would grow with every new array size.
    """

    STEP = 1 << 23

    def __init__(self) -> None:
        cuda = cupy_module().cuda
        self.stream = cuda.Stream(non_blocking=True)
        # A buffer, the memory it views, and an event after which it may be used again.
        self._buffers = [
            (np.frombuffer(memory, np.uint8, self.STEP), memory, cuda.Event(disable_timing=True))
            for memory in (cuda.alloc_pinned_memory(self.STEP) for _ in range(2))
        ]

    def to_device(self, array: NDArray) -> Any:
        there = cupy_module().empty(array.shape, array.dtype)
        source = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for number, begin in enumerate(range(0, len(source), self.STEP)):
            piece = source[begin : begin + self.STEP]
            buffer, _, free = self._buffers[number % 2]
            free.synchronize()
            buffer[: len(piece)] = piece
            self._copy(there.data.ptr + begin, buffer.ctypes.data, len(piece), "memcpyHostToDevice")
            free.record(self.stream)
        return there

    def to_host(self, array: Any) -> NDArray:
        array = cupy_module().ascontiguousarray(array)
        here = np.empty(array.shape, array.dtype)
        target = here.reshape(-1).view(np.uint8)
        begins = range(0, len(target), self.STEP)
        for number in range(len(begins) + 1):
            if number < len(begins):
                begin = begins[number]
                buffer, _, full = self._buffers[number % 2]
                size = min(self.STEP, len(target) - begin)
                self._copy(buffer.ctypes.data, array.data.ptr + begin, size, "memcpyDeviceToHost")
                full.record(self.stream)
            if number:
                buffer, _, full = self._buffers[(number - 1) % 2]
                piece = target[begins[number - 1] :][: self.STEP]
                full.synchronize()
                piece[:] = buffer[: len(piece)]
        return here

    def _copy(self, target: int, source: int, size: int, direction: str) -> None:
        runtime = cupy_module().cuda.runtime
        runtime.memcpyAsync(target, source, size, getattr(runtime, direction), self.stream.ptr)


_idle_lanes: dict[int, list[_Lane]] = {}
"""Idle lanes of each GPU. They are reused because CuPy's memory pool belongs to a stream."""
