"""State of a shard in a Hungarian search: its block, the common forest, and counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....compute.arrays import array_module, kernels, on_device, to_device, to_host
from ....compute.threads import Team
from ....compute.timing import Stopwatch
from ..hungarian import Forest, Types, counts_of, refuse, types_of
from .communicator import Communicator

ON_HOST: Any = kernels("outbid.assignment.papers.hungarian", np.empty(0))
"""The stages that all shards perform identically."""
_PATHS, _UPDATES = 2, 4
"""Indices of the counters in `Forest.words`."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """The state after Algorithm 1.

    Parameters
    ----------
    block : (R, W) or (W, C) array
        Own columns or rows, on the device of the shard.
    edges : (P + 1,) tuple
        First column or row of each shard, and the total number.
    forest : Forest
        On the host, the same in all shards; in the tree variant, duals of own columns are stored separately.
    types : Types
    team : Team
    """

    block: NDArray
    edges: tuple[int, ...]
    forest: Forest
    types: Types
    team: Team


class Tally:
    """Counters and times of the stages, as for one device."""

    def __init__(self, rows: int) -> None:
        self.rows = self.waiting = self.waiting_first = rows
        self.paths: list[int] = []
        self.totals = np.zeros(16, np.int64)
        self._clock = Stopwatch(np.empty(0))

    def lap(self, stage: str) -> None:
        """Add the time since the last call to this stage."""
        self._clock.lap(stage)

    def augment(self, forest: Forest, team: Team) -> None:
        """Algorithms 5 and 6, performed identically by all shards."""
        ON_HOST.reverse_pass(forest)
        ON_HOST.augmentation_pass(forest, team)
        self.lap("augmentation_pass")
        self.paths.append(self.count(forest, _PATHS))
        self.waiting -= self.paths[-1]

    def count(self, forest: Forest, wanted: int) -> int:
        """Add up the counters of an iteration; raise an error if the required one is zero."""
        words = forest.words[:16]
        if not words[wanted]:
            refuse(int(forest.waiting[0]))
        if not self.totals[_UPDATES]:
            self.waiting_first = self.waiting if words[_UPDATES] else 0
        self.totals += words
        return int(words[wanted])

    def stats(self, way: Communicator) -> dict[str, int | float]:
        """Counters, seconds, and the traffic of the communicator."""
        counts = counts_of(self.paths, self.totals, self.rows - self.waiting_first)
        seconds = {f"{name}_seconds": value for name, value in self._clock.seconds().items()}
        return counts | {"shards": way.size, "messages": way.messages, "bytes_sent": way.sent} | seconds


def even(length: int, size: int) -> tuple[int, ...]:
    """Boundaries of a number of nearly equal parts of a length.

    Examples
    --------
    >>> even(10, 4)
    (0, 2, 5, 7, 10)
    """
    return tuple(length * part // size for part in range(size + 1))


def gathered_lines(way: Communicator, own: NDArray, edges: tuple[int, ...]) -> NDArray:
    """Concatenate the lines of all shards, which may differ in number, in order of rank."""
    xp, most = array_module(own), int(np.diff(edges).max(initial=0))
    padded = xp.zeros((most, *own.shape[1:]), own.dtype)
    padded[: len(own)] = own
    parts = way.gather(padded)
    return xp.concatenate([part[:width] for part, width in zip(parts, np.diff(edges).tolist(), strict=True)])


def row_extremes(block: NDArray, team: Team) -> tuple[NDArray, NDArray]:
    """On the host, least and largest finite cost of each row in a block, which may have no columns."""
    dtype = block.dtype
    limit = np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max
    above = np.inf if dtype.kind == "f" else limit
    if not block.size:
        return np.full(len(block), above, dtype), np.full(len(block), -limit, dtype)
    low, high = array_module(block).empty((2, len(block)), dtype)
    on: Any = kernels("outbid.assignment.papers.hungarian", block)
    on.row_extremes(block, low, high, dtype.type(limit), team)
    return to_host(low), to_host(high)


def agreed_types(way: Communicator, low: NDArray, high: NDArray, dtype: np.dtype) -> Types:
    """Dtypes of duals and slacks, from the extremes over all shards."""
    ends = (of.astype(np.float64).min(initial=np.inf) for of in (low, -high.astype(np.float64)))
    least, most = way.least(np.array(list(ends)))
    return types_of(dtype, max(abs(float(least)), abs(float(most))))


def column_least(block: NDArray, row_dual: NDArray, never: Any, team: Team) -> NDArray:
    """On the host, second part of Algorithm 1 for a block of rows or columns; `never` if it is empty."""
    found = array_module(block).full(block.shape[1], never, row_dual.dtype)
    if block.size:
        on: Any = kernels("outbid.assignment.papers.hungarian", block)
        on.column_reduction(block, to_device(row_dual) if on_device(block) else row_dual, found, team)
    return to_host(found)
