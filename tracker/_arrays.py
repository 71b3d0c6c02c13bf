"""Where the arrays live and what works on them: the host, its threads, and the GPU if there is one."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from threading import Lock, Thread
from types import ModuleType
from typing import Any, TypeVar, TypeVarTuple, cast

import numpy as np
from numpy.typing import NDArray

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_Arguments = TypeVarTuple("_Arguments")


def in_threads(work: Callable[[_Given], _Made], jobs: Iterable[_Given], workers: int) -> Iterator[_Made]:
    """Do the jobs in threads, for kernels that release the GIL; results come in the order of the jobs.

    Examples
    --------
    >>> list(in_threads(abs, [-2, 1], workers=2))
    [2, 1]
    """
    if workers <= 1:
        yield from map(work, jobs)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        yield from pool.map(timed_beside(work), jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def ahead(items: Iterable[_Made], stage: str) -> Generator[_Made, None, None]:
    """The items, of which a thread makes the next while one is in use.

    Parameters
    ----------
    items : iterable
        Only one thread at a time asks for the next.
    stage : str
        To which the seconds that it takes belong; see `stages_timed`.

    Examples
    --------
    >>> list(ahead(range(3), "counting"))
    [0, 1, 2]
    """
    each, end = iter(items), object()

    def make() -> _Made | object:
        made = next(each, end)
        lap(stage)
        return made

    pool = ThreadPoolExecutor(1)
    try:
        coming = pool.submit(timed_beside(make))
        while (item := coming.result()) is not end:
            coming = pool.submit(timed_beside(make))
            yield cast("_Made", item)
    finally:
        pool.shutdown(cancel_futures=True)
        if isinstance(each, Generator):
            each.close()


def begun(work: Callable[[*_Arguments], _Made], *given: *_Arguments) -> Future[_Made]:
    """Work that a thread does from now on; `result` waits for it, the end of the program does not.

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


def free_memory() -> int:
    """Bytes of main memory that can be had without swapping; 4 GiB where the system does not tell."""
    try:
        sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 4 << 30


def on_device(array: Any) -> bool:
    """Whether an array lives on a GPU."""
    return type(array).__module__.startswith("cupy")


def array_module(array: Any) -> ModuleType:
    """`cupy` for an array on a GPU, else `numpy`: the module whose functions make more of its kind."""
    return cupy_module() if on_device(array) else np


def ndimage_module(array: Any) -> ModuleType:
    """`cupyx.scipy.ndimage` for an array on a GPU, else `scipy.ndimage`: the same filters on either."""
    return import_module("cupyx.scipy.ndimage" if on_device(array) else "scipy.ndimage")


def kernels(module: str, array: Any) -> ModuleType:
    """The kernels that work where an array lives: `module` with "_cpu" or "_gpu" after its name.

    Examples
    --------
    >>> kernels("outbid.tracker.gating", np.zeros(3)).__name__
    'outbid.tracker.gating_cpu'
    """
    return import_module(f"{module}_{'gpu' if on_device(array) else 'cpu'}")


crossing: ContextVar[Any] = ContextVar("crossing", default=None)
"""What brings large arrays to the GPU and back in this thread, if not CuPy; see `_lanes`."""
_LARGE = 1 << 20
"""Bytes from which an array is large."""


def to_host(array: Any) -> NDArray:
    """The array in main memory; itself if it is there already."""
    if not on_device(array):
        return array
    way = crossing.get()
    return cupy_module().asnumpy(array) if way is None or array.nbytes < _LARGE else way.to_host(array)


def to_device(array: NDArray) -> Any:
    """The array on the current GPU."""
    way = crossing.get()
    return cupy_module().asarray(array) if way is None or array.nbytes < _LARGE else way.to_device(array)


def free_device_memory() -> int:
    """Bytes of the current GPU's memory that are free or kept for reuse."""
    pool = cupy_module().get_default_memory_pool()
    return int(cupy_module().cuda.Device().mem_info[0]) + pool.free_bytes()


def release_device_memory() -> None:
    """Give memory that is kept for reuse back to the GPU, if one is in use."""
    if "cupy" in sys.modules:
        cupy_module().get_default_memory_pool().free_all_blocks()


def cuda_function(source: str, name: str, *, cooperative: bool = False, options: tuple[str, ...] = ()) -> Any:
    """A kernel of a .cu file in this package, compiled at its first use on each GPU.

    Parameters
    ----------
    source : str
        File name relative to this folder.
    name : str
        The kernel's name.
    cooperative : bool
        Whether all its threads wait for each other. Such kernels are compiled apart, because cooperative
        compilation limits every launch of a module to one resident wave.
    options : tuple of str
        Given to the compiler, such as the types that a source leaves open ("-DKEY=i8").
    """
    with _compiling:
        return _function(source, name, cooperative, options, cupy_module().cuda.Device().id)


_compiling = Lock()


@cache
def _function(source: str, name: str, cooperative: bool, options: tuple[str, ...], device: int) -> Any:
    return _cuda_module(source, cooperative, options, device).get_function(name)


@cache
def _cuda_module(source: str, cooperative: bool, options: tuple[str, ...], device: int) -> Any:  # noqa: ARG001
    text = _with_headers(Path(__file__).parent / source)
    # Without fused multiply-adds a distance has the same bits as on the CPU.
    return cupy_module().RawModule(
        code=text, options=("-std=c++17", "--fmad=false", *options), enable_cooperative_groups=cooperative
    )


def _with_headers(path: Path, seen: set[str] | None = None) -> str:
    """A source with its headers put in, each once, so that the compiler's cache sees when they change."""
    seen = set() if seen is None else seen

    def put_in(name: re.Match[str]) -> str:
        known = name[1] in seen
        seen.add(name[1])
        return "" if known else _with_headers(path.parent / name[1], seen)

    return re.sub(r'#include "(.+)"', put_in, path.read_text())


def cupy_module() -> ModuleType:
    """CuPy, which this module alone imports."""
    import cupy

    return cupy


def processors() -> int:
    """Multiprocessors of the current GPU."""
    return _attribute("MultiProcessorCount", cupy_module().cuda.Device().id)


def shared_memory() -> tuple[int, int]:
    """Bytes of shared memory that a block may use, and a multiprocessor of the current GPU."""
    device = cupy_module().cuda.Device().id
    return (
        _attribute("MaxSharedMemoryPerBlockOptin", device),
        _attribute("MaxSharedMemoryPerMultiprocessor", device),
    )


@cache
def _attribute(name: str, device: int) -> int:
    return int(cupy_module().cuda.Device(device).attributes[name])


def launch(function: Any, threads: int, arguments: tuple, *, block: int = 256) -> None:
    """Run a kernel with at least so many threads."""
    if threads > 0:
        function((-(-threads // block),), (block,), arguments)


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

    With an array on a GPU, what was launched there belongs to it as well.
    """
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


def gpu_names() -> list[str]:
    """Names of the GPUs that can be used.

    Raises
    ------
    RuntimeError
        If there is none that works; the message says why and what would help.
    """
    try:
        import cupy
    except ImportError:
        raise RuntimeError(
            "CuPy is not installed. With an NVIDIA GPU: pip install 'outbid[cuda12]' or 'outbid[cuda13]'."
        ) from None
    if not cupy.cuda.is_available():
        raise RuntimeError("CuPy finds no GPU that works. Check the driver with nvidia-smi.")
    count = cupy.cuda.runtime.getDeviceCount()
    return [cupy.cuda.runtime.getDeviceProperties(i)["name"].decode() for i in range(count)]
