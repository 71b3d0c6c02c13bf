"""A Hungarian search by one of several shards, from its own block to a matching, duals and a certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....compute.arrays import array_module, on_device, to_device, to_host
from ....compute.threads import Team
from ...matrix import DenseMatrix
from ...points import matrix_of
from ...problem import DenseCosts, forbidden
from ..hungarian import Matching, refuse, unmatched_forest
from .blocks import Blocks, read
from .classical import search_pairs
from .communicator import Communicator, ShardError
from .state import Reduced, Tally, agreed_types, column_least, even, gathered_lines, row_extremes
from .tree import search_trees


class Setup(NamedTuple):
    """Settings of a shard.

    Parameters
    ----------
    variant : {"tree", "classical"}
        The ``tree`` variant divides columns, the ``classical`` variant rows.
    is_on_gpu : bool
        Whether the shard works on the current GPU.
    workers : int
        Number of threads on the CPU.
    edges : tuple of int, optional
        First column or row of each shard, and the total number; by default the shards are equal in size.
    """

    variant: str
    is_on_gpu: bool = False
    workers: int = 1
    edges: tuple[int, ...] | None = None


class Proved(NamedTuple):
    """A perfect matching of all rows with duals, its cost, and the lower bound from the duals."""

    col_of_row: NDArray[np.int32]
    row_dual: NDArray
    col_dual: NDArray
    cost: int | float
    bound: int | float
    stats: dict[str, int | float]


def found(blocks: Blocks, way: Communicator, work: Setup) -> Matching:
    """The result of one device, with the same matching, duals and counters; on the host, in all shards.

    Raises
    ------
    ShardError
        If there are more shards than columns or rows, if a block cannot be read, or if a shard has ended.
    ValueError
        If some row cannot be matched.
    """
    _, answer, stats = _searched(blocks, way, work)
    return Matching(*answer, stats)


def proved(blocks: Blocks, way: Communicator, work: Setup) -> Proved:
    """`found` with its certificate, which the shards compute from their own blocks."""
    start, (col_of_row, v), stats = _searched(blocks, way, work)
    v = v.astype(forbidden(v.dtype).dtype)
    # If columns outnumber rows, free columns must have the dual 0, and no dual may be above 0.
    v -= v.max() if len(v) == len(col_of_row) else max(v.max(), v.dtype.type(0))
    own = slice(start.edges[way.rank], start.edges[way.rank + 1])
    by_columns = work.variant == "tree"
    u, cost = slack_and_cost(start.block, own, by_columns, col_of_row, v)
    u = way.least(u) if by_columns else gathered_lines(way, u[own], start.edges)
    paid = way.total(np.array([cost]))[0].item()
    return Proved(col_of_row, u, v, paid, (u.sum() + v.sum()).item(), stats)


def slack_and_cost(
    block: NDArray, own: slice, by_columns: bool, col_of_row: NDArray[np.int32], v: NDArray
) -> tuple[NDArray, np.generic]:
    """The feasible part of each row dual according to a block, and the costs of the pairs in it."""
    rows = np.arange(len(col_of_row))
    u = np.full(len(rows), forbidden(v.dtype))
    if not block.size:
        return u, v.dtype.type(0)
    xp = array_module(block)
    of, cols = (slice(None), own) if by_columns else (own, slice(None))
    part = to_device(u[of]) if on_device(block) else u[of]
    matrix = matrix_of(DenseCosts(block)) if on_device(block) else DenseMatrix(block)
    matrix.lower_to_slack(xp.asarray(v[cols]), part)
    u[of] = to_host(part)
    line = col_of_row if by_columns else rows
    mine = (line >= own.start) & (line < own.stop)
    place = (
        (rows[mine], col_of_row[mine] - own.start)
        if by_columns
        else (rows[mine] - own.start, col_of_row[mine])
    )
    return u, to_host(block[tuple(map(xp.asarray, place))]).sum(dtype=v.dtype)


def _searched(
    blocks: Blocks, way: Communicator, work: Setup
) -> tuple[Reduced, tuple[NDArray[np.int32], NDArray], dict[str, int | float]]:
    """Search; returns the state, the matching, the column duals and the counters."""
    rows, cols = blocks.shape
    by_columns = work.variant == "tree"
    length = cols if by_columns else rows
    if work.edges is None and way.size > length:
        raise ShardError(
            f"{way.size} shards are more than {length} lines to divide. Choose at most {length}."
        )
    edges = work.edges or even(length, way.size)
    tally = Tally(rows)
    part = blocks.cols if by_columns else blocks.rows
    block = read(way, lambda: part(*edges[way.rank : way.rank + 2]), work.is_on_gpu)
    tally.lap("reading")
    with Team(work.workers) as team:
        start = _reduced(block, (blocks.shape, edges), way, by_columns, team)
        tally.lap("initial_reduction")
        if by_columns:
            v = gathered_lines(way, search_trees(start, way, tally), edges)
        else:
            search_pairs(start, way, tally)
            v = start.forest.col_dual
    return start, (start.forest.col_of_row, v), tally.stats(way)


def _reduced(
    block: NDArray,
    extent: tuple[tuple[int, int], tuple[int, ...]],
    way: Communicator,
    by_columns: bool,
    team: Team,
) -> Reduced:
    """Algorithm 1, see `Hungarian`; extent: the shape of the matrix and the boundaries of the shards."""
    (rows, cols), edges = extent
    own = slice(edges[way.rank], edges[way.rank + 1])
    low, high = row_extremes(block, team)
    low = way.least(low) if by_columns else gathered_lines(way, low, edges)
    types = agreed_types(way, low, high, block.dtype)
    if types.is_narrow:
        block = block.astype(types.key, copy=False)
    if bool((low >= types.never).any()):
        refuse(int(low.argmax()))
    row_dual, col_dual = low.astype(types.key), np.zeros(cols, types.key)
    if rows == cols:
        dual = row_dual if by_columns else row_dual[own]
        least = column_least(block, dual, types.never, team)
        if by_columns:
            col_dual[own] = least
        else:
            col_dual[:] = way.least(least)
        col_dual[col_dual >= types.never] = 0
    return Reduced(block, edges, unmatched_forest(row_dual, col_dual), types, team)
