"""Where the arrays live and what works on them: the host, its threads, and the GPU if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


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
        yield from pool.map(work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def free_memory() -> int:
    """Bytes of main memory that can be had without swapping; 4 GiB where the system does not tell."""
    try:
        sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 4 << 30


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
