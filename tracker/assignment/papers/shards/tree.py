"""Date & Nagi's alternating tree variant, with the columns of the matrix divided over shards.

All shards have the same matching, trees and row duals. In each pass they scan the same frontier. Columns
whose slack has become zero are gathered as records of 24 bytes, together with the least slack of the other
columns; so a dual update needs no separate message.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....compute.arrays import array_module, on_device, to_device, to_host
from ..hungarian import Forest, refuse
from .communicator import Communicator
from .state import ON_HOST, Reduced, Tally

RECORDS = 32
"""Number of records in the first message of a pass; further records follow in a second message."""
_UPDATES = 4
"""Index of the counter of dual updates in `Forest.words`."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The own columns of a shard, on its device.

    Parameters
    ----------
    costs : (R, W) array
    first : int
        Number of the first own column.
    dual, slack : (W,) arrays
    state : (W,) int8 array
    row_before, root : (W,) int32 arrays
        The row that reaches each column with the least slack, and the root of its tree.
    found_in : (W,) int64 array
        The pass in which this row was found.
    bar : (W,) array
        Bound for a quick check of costs.
    """

    costs: NDArray
    first: int
    dual: NDArray
    slack: NDArray
    state: NDArray[np.int8]
    row_before: NDArray[np.int32]
    root: NDArray[np.int32]
    found_in: NDArray[np.int64]
    bar: NDArray


def columns_of(costs: NDArray, first: int, dual: NDArray) -> Columns:
    """Own columns before a search."""
    xp = array_module(costs)
    dual = to_device(dual) if on_device(costs) else dual
    width = costs.shape[1]
    before, root = xp.zeros((2, width), np.int32)
    found_in, bar = xp.zeros(width, np.int64), xp.empty_like(dual)
    state = xp.zeros(width, np.int8)
    return Columns(costs, first, dual, xp.empty_like(dual), state, before, root, found_in, bar)


def search_trees(start: Reduced, way: Communicator, tally: Tally) -> NDArray:
    """Search; returns the (W,) duals of own columns; written: the forest of `start`."""
    forest, edges = start.forest, start.edges
    first, last = edges[way.rank], edges[way.rank + 1]
    columns = columns_of(start.block, first, forest.col_dual[first:last].copy())
    on: Any = import_module(".tree_gpu" if on_device(start.block) else ".tree_cpu", __package__)
    while tally.waiting:
        ON_HOST.optimality_check(forest)
        tally.lap("optimality_check")
        _Growth(start, columns, way, on).grow()
        tally.lap("search")
        tally.augment(forest, start.team)
    return to_host(columns.dual)


class _Growth:
    """Algorithms 4 and 9: grow trees from all unassigned rows until one reaches a free column."""

    def __init__(self, start: Reduced, columns: Columns, way: Communicator, on: Any) -> None:
        self.start, self.columns, self.way, self.on = start, columns, way, on
        self.forest: Forest = start.forest
        self.count = int(self.forest.words[0])
        waiting = self.forest.waiting[: self.count]
        self.bases = np.empty(len(self.forest.waiting), self.forest.row_dual.dtype)
        self.forest.joined[: self.count] = self.forest.roots[: self.count] = waiting
        self.bases[: self.count] = self.forest.row_dual[waiting]
        on.open_columns(columns, start.types.never)

    def grow(self) -> None:
        forest, never, words = self.forest, self.start.types.never, self.forest.words
        level, first = self.bases.dtype.type(0), 0
        while True:
            least = never
            while first < self.count:
                words[3] += 1
                frontier = tuple(of[first : self.count] for of in (forest.joined, forest.roots, self.bases))
                arguments = (int(words[3]), self.start.types.tie, self.start.team)
                self.on.scan(self.columns, frontier, *arguments)
                first, least = self.count, self._joined(level)
            if words[1]:
                break
            if least >= never:
                refuse(int(forest.waiting[0]))
            level = max(level, least)
            words[_UPDATES] += 1
            self._joined(level)
        words[5] = self.count
        ends = forest.ends[: words[1]] - self.columns.first
        own = ends[(ends >= 0) & (ends < len(self.columns.slack))]
        self.on.lower_duals(self.columns, level, own)
        forest.row_dual[forest.joined[: self.count]] = self.bases[: self.count] + level

    def _joined(self, level: Any) -> Any:
        """Let rows and ends join at a level, in all shards; returns the least slack of the other columns."""
        never, kind = self.start.types.never, self.bases.dtype
        found, slack, before, root, least = self.on.join(self.columns, level, never)
        col = found.astype(np.int64) + self.columns.first
        row = self.forest.row_of_col[col]
        base = np.where(row < 0, kind.type(0), self.forest.row_dual[row] - slack)
        parts, left = exchanged(self.way, packed(row, before, root, col, base), least)
        row, before, root, col, base = unpacked(parts, kind)
        is_end = row < 0
        self._add_ends(col[is_end], before[is_end], root[is_end])
        self._add_rows(row[~is_end], before[~is_end], root[~is_end], base[~is_end])
        return kind.type(left)

    def _add_ends(self, col: NDArray, before: NDArray, root: NDArray) -> None:
        forest, count = self.forest, int(self.forest.words[1])
        forest.ends[count : count + len(col)] = col
        forest.col_before[col], forest.col_root[col] = before, root
        forest.words[1] += len(col)

    def _add_rows(self, row: NDArray, before: NDArray, root: NDArray, base: NDArray) -> None:
        forest, here = self.forest, slice(self.count, self.count + len(row))
        forest.joined[here], forest.roots[here], self.bases[here] = row, root, base
        forest.row_before[row] = before
        self.count += len(row)


def packed(row: NDArray, before: NDArray, root: NDArray, col: NDArray, base: NDArray) -> NDArray[np.int64]:
    """Pack (k, 3) int64 records: row and previous row, root and column, base."""
    wide = base.astype(np.float64 if base.dtype.kind == "f" else np.int64)
    first = row.astype(np.int64) << 32 | before.astype(np.int64)
    return np.column_stack([first, root.astype(np.int64) << 32 | col, wide.view(np.int64)])


def unpacked(records: NDArray[np.int64], kind: np.dtype) -> tuple[NDArray, ...]:
    """Unpack the records of `packed`."""
    first, second, base = np.ascontiguousarray(records.T)
    wide = base.view(np.float64) if kind.kind == "f" else base
    low = 0xFFFFFFFF
    numbers = (first >> 32, first & low, second >> 32, second & low)
    return (*(number.astype(np.int32) for number in numbers), wide.astype(kind))


def exchanged(way: Communicator, records: NDArray[np.int64], least: Any) -> tuple[NDArray[np.int64], Any]:
    """Exchange records: returns those of all shards in order of rank, and the minimum of their numbers.

    The first message has a fixed size: the count of records, the number, and the first records.
    """
    number = np.asarray(least, np.float64 if np.asarray(least).dtype.kind == "f" else np.int64)
    message = np.zeros(2 + 3 * RECORDS, np.int64)
    message[:2] = len(records), number.view(np.int64)
    few = records[:RECORDS].reshape(-1)
    message[2 : 2 + len(few)] = few
    heard = way.gather(message)
    counts, numbers = heard[:, 0], np.ascontiguousarray(heard[:, 1]).view(number.dtype)
    parts = [part[2 : 2 + 3 * min(n, RECORDS)] for part, n in zip(heard, counts, strict=True)]
    more = int(counts.max()) - RECORDS
    if more > 0:
        rest = np.zeros(3 * more, np.int64)
        left = records[RECORDS:].reshape(-1)
        rest[: len(left)] = left
        rests = way.gather(rest)
        parts = [
            np.concatenate([part, other[: 3 * max(0, n - RECORDS)]])
            for part, other, n in zip(parts, rests, counts, strict=True)
        ]
    return np.concatenate(parts).reshape(-1, 3), numbers.min()
