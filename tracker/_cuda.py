"""CUDA kernels: compile the package's .cu files at their first use, and launch them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from ._arrays import cupy_module


def cuda_function(source: str, name: str, *, cooperative: bool = False, options: tuple[str, ...] = ()) -> Any:
    """Return a kernel of a .cu file in this package; it is compiled at its first use on each GPU.

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


def launch(function: Any, threads: int, arguments: tuple, *, block: int = 256) -> None:
    """Launch a kernel with at least this many threads."""
    if threads > 0:
        function((-(-threads // block),), (block,), arguments)
