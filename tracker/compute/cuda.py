"""CUDA kernels: compile the package's .cu files at their first use, and launch them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from .arrays import cupy_module


def cuda_function(source: str, name: str, *, cooperative: bool = False, options: tuple[str, ...] = ()) -> Any:
    """Return a kernel of a .cu file in this package; it is compiled at its first use on each GPU.

    Parameters
    ----------
    source : str
        File name relative to the package `outbid`.
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
    text = _with_headers(Path(__file__).parents[1] / source)
    # Without fused multiply-adds a distance has the same bits as on the CPU.
    return cupy_module().RawModule(
        code=text, options=("-std=c++17", "--fmad=false", *options), enable_cooperative_groups=cooperative
    )


def _with_headers(path: Path, seen: set[str] | None = None) -> str:
    """Insert each header into a source once, so that the compiler's cache notices when a header changes."""
    seen = set() if seen is None else seen

    def put_in(name: re.Match[str]) -> str:
        known = name[1] in seen
        seen.add(name[1])
        return "" if known else _with_headers(path.parent / name[1], seen)

    return re.sub(r'#include "(.+)"', put_in, path.read_text())


def processors() -> int:
    """Number of multiprocessors of the current GPU."""
    return _attribute("MultiProcessorCount", cupy_module().cuda.Device().id)


def shared_memory() -> tuple[int, int]:
    """Shared memory in bytes: limit for a block, and for a multiprocessor, of the current GPU."""
    device = cupy_module().cuda.Device().id
    return (
        _attribute("MaxSharedMemoryPerBlockOptin", device),
        _attribute("MaxSharedMemoryPerMultiprocessor", device),
    )


@cache
def _attribute(name: str, device: int) -> int:
    return int(cupy_module().cuda.Device(device).attributes[name])


@contextmanager
def driver_starting(*, wanted: bool) -> Iterator[None]:
    """Start the CUDA driver on the first GPU in a thread, since it takes a second; ends with that thread.

    CuPy then finds the driver started. An error is ignored here: CuPy meets it again and explains it.
    """
    starting = Thread(target=_start_driver)
    if wanted:
        starting.start()
    try:
        yield
    finally:  # a process that ends while the driver starts may crash
        if wanted:
            starting.join()


def _start_driver() -> None:
    """Create the context that CuPy uses, by the C library, which needs no interpreter's lock."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def launch(function: Any, threads: int, arguments: tuple, *, block: int = 256) -> None:
    """Launch a kernel with at least this many threads."""
    if threads > 0:
        function((-(-threads // block),), (block,), arguments)
