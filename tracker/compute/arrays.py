"""Array modules: NumPy on the host or CuPy on a GPU. Only this module imports CuPy."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray


def free_memory() -> int:
    """Bytes of main memory available without swapping; all, or 4 GiB, where the system does not report it."""
    try:
        sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4 << 30


def on_device(array: Any) -> bool:
    """Whether an array is in the memory of a GPU."""
    return type(array).__module__.startswith("cupy")


def array_module(array: Any) -> ModuleType:
    """The module that creates arrays on the same device: `cupy` for an array on a GPU, else `numpy`."""
    return cupy_module() if on_device(array) else np


def kernels(module: str, array: Any) -> ModuleType:
    """The kernels for the array's device: the module named `module` plus "_cpu" or "_gpu".

    Examples
    --------
    >>> kernels("outbid.geometry.gating", np.zeros(3)).__name__
    'outbid.geometry.gating_cpu'
    """
    return _loaded(f"{module}_{'gpu' if on_device(array) else 'cpu'}")


_loaded = cache(import_module)  # to ask Python for a module again takes as long as a small kernel


crossing: ContextVar[Any] = ContextVar("crossing", default=None)
"""Functions that copy large arrays to and from the GPU in this thread, instead of CuPy; see `streams`."""

_LARGE = 1 << 20
"""Bytes from which on an array is large."""


def to_host(array: Any) -> NDArray:
    """Copy the array to main memory; an array that is there already is returned as it is."""
    if not on_device(array):
        return array
    way = crossing.get()
    return cupy_module().asnumpy(array) if way is None or array.nbytes < _LARGE else way.to_host(array)


def rows_here(array: Any, rows: NDArray[np.int64]) -> NDArray:
    """Some rows of an array that may be on a GPU, on the host."""
    return to_host(array[array_module(array).asarray(rows)])


def to_device(array: NDArray) -> Any:
    """Copy the array to the current GPU."""
    way = crossing.get()
    return cupy_module().asarray(array) if way is None or array.nbytes < _LARGE else way.to_device(array)


Axis = Literal["row", "link", "division", "frame", "side"]
"""What an axis of an array counts: detections, links, divisions, frames, or both directions of time."""
ROW: Mapping[Axis, int] = {"row": 0}
LINK: Mapping[Axis, int] = {"link": 0}
DIVISION: Mapping[Axis, int] = {"division": 0}
FRAME: Mapping[Axis, int] = {"frame": 0}
ROW_BY_SIDE: Mapping[Axis, int] = {"side": 0, "row": 1}
LINK_BY_SIDE: Mapping[Axis, int] = {"side": 0, "link": 1}
BACKWARD = slice(None, None, -1)
"""Index of all entries of an axis, the last first."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """Base of records whose fields say what their axes count, so that all are selected in one way.

    ``field(metadata=ROW)`` declares an axis of detections; a field that is such a record declares its own.
    What is None or empty, because it is not known yet, stays as it is.

    Examples
    --------
    >>> from dataclasses import field
    >>> @dataclass(frozen=True, eq=False)
    ... class Some(Arrays):
    ...     weight: NDArray = field(metadata=LINK)
    ...     rivals: NDArray = field(metadata=LINK_BY_SIDE)
    ...     omega: float = 1.0
    >>> some = Some(np.arange(3), np.arange(6).reshape(2, 3))
    >>> part = some.take("link", some.weight > 0)
    >>> part.weight.tolist(), part.rivals.tolist(), part.take("side", BACKWARD).rivals.tolist()
    ([1, 2], [[1, 2], [4, 5]], [[4, 5], [1, 2]])
    >>> part.join(some, "link").weight.tolist(), some.paste(part, "link", [0, 1]).rivals.tolist()
    ([1, 2, 0, 1, 2], [[1, 2, 2], [4, 5, 5]])
    """

    def take(self, axis: Axis, index: Any) -> Self:
        """The entries of an axis at an index: a mask, a slice or numbers."""
        if getattr(index, "dtype", None) == np.bool_:
            index = np.flatnonzero(index)  # by numbers several times as fast as by a mask
        taken = {
            name: value.take(axis, index)
            if isinstance(value, Arrays)
            else value[(*before, index)]
            if isinstance(index, slice)
            else np.take(value, index, axis=len(before))
            for name, value, before in self._along(axis)
        }
        return replace(self, **taken)

    def join(self, other: Self, axis: Axis) -> Self:
        """The record with the entries of another one after its own."""
        both = {
            name: value.join(getattr(other, name), axis)
            if isinstance(value, Arrays)
            else array_module(value).concatenate([value, getattr(other, name)], axis=len(before))
            for name, value, before in self._along(axis, empty=True)
        }
        return replace(self, **both)

    def paste(self, part: Self, axis: Axis, to: Any, of: Any = slice(None)) -> Self:
        """A copy whose entries `to` are those of a part of the same kind at `of`."""
        pasted: dict[str, Any] = {}
        for name, value, before in self._along(axis):
            other = getattr(part, name)
            if isinstance(value, Arrays):
                pasted[name] = value.paste(other, axis, to, of)
            else:
                pasted[name] = value.copy()
                pasted[name][(*before, to)] = other[(*before, of)]
        return replace(self, **pasted)

    def _along(self, axis: Axis, *, empty: bool = False) -> Iterator[tuple[str, Any, tuple[slice, ...]]]:
        """Name and value of each field with this axis, and the index of all entries of the axes before it."""
        for each in fields(self):
            value, before = getattr(self, each.name), (slice(None),) * each.metadata.get(axis, 0)
            known = axis in each.metadata and value is not None and (empty or value.shape[len(before)] > 0)
            if isinstance(value, Arrays) or known:
                yield each.name, value, before

    def moves(self, each: Field[Any]) -> bool:
        """Whether a field goes to a GPU: what counts detections or links does, other fields are small."""
        nested = isinstance(getattr(self, each.name), Arrays | tuple)
        return nested or not {"row", "link"}.isdisjoint(each.metadata)


def placed(record: Any, place: Callable[[Any], Any]) -> Any:
    """A record (dataclass or tuple, of records) with its arrays placed by `to_host` or `to_device`.

    Of a record of `Arrays` what counts neither detections nor links stays.

    Examples
    --------
    >>> placed((np.zeros(2), (np.ones(1), None)), len)
    (2, (1, None))
    """
    if isinstance(record, np.ndarray) or on_device(record):
        return place(record)
    if isinstance(record, tuple):
        made = [placed(part, place) for part in record]
        return type(record)(*made) if hasattr(record, "_fields") else tuple(made)
    if is_dataclass(record) and not isinstance(record, type):
        move = [each.name for each in fields(record) if not isinstance(record, Arrays) or record.moves(each)]
        return replace(record, **{name: placed(getattr(record, name), place) for name in move})
    return record


def free_device_memory() -> int:
    """Bytes of the current GPU's memory that are free or in CuPy's memory pool."""
    pool = cupy_module().get_default_memory_pool()
    return int(cupy_module().cuda.Device().mem_info[0]) + pool.free_bytes()


def release_device_memory() -> None:
    """Return the memory of CuPy's pool to the GPU, if a GPU is in use."""
    if "cupy" in sys.modules:
        cupy_module().get_default_memory_pool().free_all_blocks()


def cupy_module() -> ModuleType:
    """Import CuPy and return the module."""
    import cupy

    return cupy


def nccl_module() -> ModuleType | None:
    """CuPy's module for NCCL, which ``import cupy`` alone does not load; None if it is not installed."""
    try:
        with warnings.catch_warnings():  # which say how to install it
            warnings.simplefilter("ignore")
            nccl = import_module("cupy.cuda.nccl")
    except ImportError:
        return None
    return nccl if getattr(nccl, "available", True) else None


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
