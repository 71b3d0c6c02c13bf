"""What every shard of a Hungarian search keeps: its block, the forest alike in all, and the counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays import array_module, kernels, on_device, to_device, to_host
from ..._threads import Team
from ..._timing import Stopwatch
from ..hungarian import Forest, Types, counts_of, refuse, types_of
from .communicator import Communicator

ON_HOST: Any = kernels("outbid.assignment.hungarian", np.empty(0))
"""The stages that every shard does alike."""
_PATHS, _UPDATES = 2, 4
"""Places of the counts in `Forest.words`."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """What Algorithm 1 leaves.

    Parameters
    ----------
    block : (R, W) or (W, C) array
        Own columns or rows, where the shard works.
    edges : (P + 1,) tuple
        Where the columns or rows of each shard begin.
    forest : Forest
        On the host, alike in all shards; the tree variant keeps the duals of its own columns elsewhere.
    types : Types
    team : Team
    """

    block: NDArray
    edges: tuple[int, ...]
    forest: Forest
    types: Types
    team: Team


class Tally:
    """Counts and times of the stages, as those of one device."""

    def __init__(self, rows: int) -> None:
        self.rows = self.waiting = self.waiting_first = rows
        self.paths: list[int] = []
        self.totals = np.zeros(16, np.int64)
        self._clock = Stopwatch(np.empty(0))

    def lap(self, stage: str) -> None:
        """The time since the last lap belongs to this stage."""
        self._clock.lap(stage)

    def augment(self, forest: Forest, team: Team) -> None:
        """Algorithms 5 and 6, which every shard does alike."""
        ON_HOST.reverse_pass(forest)
        ON_HOST.augmentation_pass(forest, team)
        self.lap("augmentation_pass")
        self.paths.append(self.count(forest, _PATHS))
        self.waiting -= self.paths[-1]

    def count(self, forest: Forest, wanted: int) -> int:
        """Adds up what an iteration counted; refuses if it has none of what is wanted."""
        words = forest.words[:16]
        if not words[wanted]:
            refuse(int(forest.waiting[0]))
        if not self.totals[_UPDATES]:
            self.waiting_first = self.waiting if words[_UPDATES] else 0
        self.totals += words
        return int(words[wanted])

    def stats(self, way: Communicator) -> dict[str, int | float]:
        """Counts and seconds, and what went through the communicator."""
        counts = counts_of(self.paths, self.totals, self.rows - self.waiting_first)
        seconds = {f"{name}_seconds": value for name, value in self._clock.seconds().items()}
        return counts | {"shards": way.size, "messages": way.messages, "bytes_sent": way.sent} | seconds


def even(length: int, size: int) -> tuple[int, ...]:
    """Where each of so many nearly equal parts of a length begins, and where the last one ends.

    Examples
    --------
    >>> even(10, 4)
    (0, 2, 5, 7, 10)
    """
    return tuple(length * part // size for part in range(size + 1))


def gathered_lines(way: Communicator, own: NDArray, edges: tuple[int, ...]) -> NDArray:
    """The lines of all shards, which may be of different numbers, joined in the order of their ranks."""
    xp, most = array_module(own), int(np.diff(edges).max(initial=0))
    padded = xp.zeros((most, *own.shape[1:]), own.dtype)
    padded[: len(own)] = own
    parts = way.gather(padded)
    return xp.concatenate([part[:width] for part, width in zip(parts, np.diff(edges).tolist(), strict=True)])


def row_extremes(block: NDArray, team: Team) -> tuple[NDArray, NDArray]:
    """On the host, the least and the largest finite cost of each row of a block, which may have no column."""
    dtype = block.dtype
    limit = np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max
    above = np.inf if dtype.kind == "f" else limit
    if not block.size:
        return np.full(len(block), above, dtype), np.full(len(block), -limit, dtype)
    low, high = array_module(block).empty((2, len(block)), dtype)
    on: Any = kernels("outbid.assignment.hungarian", block)
    on.row_extremes(block, low, high, dtype.type(limit), team)
    return to_host(low), to_host(high)


def agreed_types(way: Communicator, low: NDArray, high: NDArray, dtype: np.dtype) -> Types:
    """Types of duals and slacks, from the extremes of the rows of all shards."""
    ends = (of.astype(np.float64).min(initial=np.inf) for of in (low, -high.astype(np.float64)))
    least, most = way.least(np.array(list(ends)))
    return types_of(dtype, max(abs(float(least)), abs(float(most))))


def column_least(block: NDArray, row_dual: NDArray, never: Any, team: Team) -> NDArray:
    """On the host, second part of Algorithm 1 for a block of rows or columns; `never` where it is empty."""
    found = array_module(block).full(block.shape[1], never, row_dual.dtype)
    if block.size:
        on: Any = kernels("outbid.assignment.hungarian", block)
        on.column_reduction(block, to_device(row_dual) if on_device(block) else row_dual, found, team)
    return to_host(found)
