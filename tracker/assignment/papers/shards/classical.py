"""Date & Nagi's classical variant, with the rows of the matrix divided over shards.

After each dual update, every shard compresses its own rows. The lists of pairs with zero slack are gathered,
and all shards perform the same search in them. For a dual update, shards exchange one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....compute.arrays import kernels, on_device, to_device, to_host
from ..hungarian import Forest, tie_of_duals
from .communicator import Communicator
from .state import ON_HOST, Reduced, Tally, gathered_lines

_UPDATES = 4
"""Index of the counter of dual updates in `Forest.words`."""


@dataclass(frozen=True, eq=False)
class _Duals:
    """Duals of own rows and of all columns, on the device of the shard, for the compression."""

    row_dual: NDArray
    col_dual: NDArray


def search_pairs(start: Reduced, way: Communicator, tally: Tally) -> None:
    """Perform the search; written: the forest of `start`."""
    forest, pairs = start.forest, None
    while tally.waiting:
        if pairs is None:
            pairs = _compressed(start, way)
            tally.lap("compress")
        ON_HOST.optimality_check(forest)
        tally.lap("optimality_check")
        ON_HOST.forward_pass(*pairs, forest)
        tally.lap("forward_pass")
        if int(forest.words[1]):
            tally.augment(forest, start.team)
            continue
        least = way.least(np.array([_own_least(start, way.rank)]))[0]
        ON_HOST.shift_duals(forest, least, start.types.never)
        tally.lap("dual_update")
        tally.count(forest, _UPDATES)
        pairs = None


def _compressed(start: Reduced, way: Communicator) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Gather the pairs with zero slack of all rows as CSR."""
    forest, block = start.forest, start.block
    first, last = start.edges[way.rank], start.edges[way.rank + 1]
    own = np.zeros(last - first, np.int32)
    indices = np.empty(0, np.int32)
    if block.size:
        on: Any = kernels("outbid.assignment.papers.hungarian", block)
        tie = tie_of_duals(start.types.tie, forest)
        indptr, indices = map(to_host, on.compress(block, _there(start, first, last), tie, start.team))
        own = np.diff(indptr).astype(np.int32)
    counts = gathered_lines(way, own, start.edges)
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    ends = tuple(int(indptr[edge]) for edge in start.edges)
    return indptr, gathered_lines(way, indices, ends)


def _there(start: Reduced, first: int, last: int) -> _Duals:
    duals = start.forest.row_dual[first:last], start.forest.col_dual
    return _Duals(*map(to_device, duals)) if on_device(start.block) else _Duals(*duals)


def _own_least(start: Reduced, rank: int) -> Any:
    """Algorithm 7 for own rows: the least slack between joined rows and uncovered columns."""
    forest: Forest = start.forest
    first, last = start.edges[rank], start.edges[rank + 1]
    joined = forest.joined[: forest.words[5]]
    joined = joined[(joined >= first) & (joined < last)] - np.int32(first)
    never = start.types.never
    if not len(joined):
        return never
    duals = forest.row_dual[first:last], forest.col_dual
    if not on_device(start.block):
        return ON_HOST.least_uncovered(start.block, duals, forest.covered, joined, never, start.team)
    there: Any = import_module(".classical_device", __package__)
    return there.least_uncovered(start.block, duals, forest.covered, joined, never)
