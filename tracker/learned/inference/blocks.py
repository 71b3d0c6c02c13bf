"""Blocks of rows, for kernels that run in several threads and write each row alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...compute.threads import in_threads, threads_for

_Made = TypeVar("_Made")

BLOCK = 2048
"""Guard: number of rows for which a further thread is used."""


def blocks(first: int, last: int, workers: int) -> list[tuple[int, int]]:
    """Division of a range of rows into four blocks per worker, to balance the load.

    Examples
    --------
    >>> blocks(0, 5000, 2)
    [(0, 2500), (2500, 5000)]
    """
    many = max(1, min(4 * workers, (last - first) // BLOCK))
    cuts = np.linspace(first, last, many + 1).astype(int).tolist()
    return list(zip(cuts[:-1], cuts[1:], strict=True))


def in_blocks(work: Callable[[tuple[int, int]], _Made], count: int, array: Any) -> list[_Made]:
    """Apply `work` on an array to each block of `count` rows, in the threads of `computing`.

    Examples
    --------
    >>> from outbid.compute.threads import computing
    >>> with computing(2):
    ...     in_blocks(lambda block: block[1] - block[0], 5000, np.empty(0))
    [2500, 2500]
    """
    workers = threads_for(array)
    if workers <= 1 or count < 2 * BLOCK:
        return [work((0, count))]
    return list(in_threads(work, blocks(0, count, workers), workers))
