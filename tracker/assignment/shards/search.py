"""A Hungarian search by one of several shards, from its own block to matching, duals and their proof."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays import array_module, on_device, to_device, to_host
from ..._threads import Team
from ..dense import DenseMatrix
from ..hungarian import Found, refuse, unmatched_forest
from ..points import matrix_of
from ..problem import DenseCosts, forbidden
from .blocks import Blocks, read
from .classical import search_pairs
from .communicator import Communicator, ShardError
from .state import Reduced, Tally, agreed_types, column_least, even, gathered_lines, row_extremes
from .tree import search_trees


class Work(NamedTuple):
    """How a shard works.

    Parameters
    ----------
    variant : {"tree", "classical"}
        Columns or rows are divided.
    is_on_gpu : bool
        Whether it works on the current GPU.
    workers : int
        Threads on the CPU.
    edges : tuple of int, optional
        Where the columns or rows of each shard begin, and where they end; by default as equal as can be.
    """

    variant: str
    is_on_gpu: bool = False
    workers: int = 1
    edges: tuple[int, ...] | None = None


class Proved(NamedTuple):
    """A perfect matching of all rows with duals, its cost and the sum of the duals, which bounds it."""

    col_of_row: NDArray[np.int32]
    row_dual: NDArray
    col_dual: NDArray
    cost: int | float
    bound: int | float
    stats: dict[str, int | float]


def found(blocks: Blocks, way: Communicator, work: Work) -> Found:
    """What one device finds, with the same matching, duals and counts; on the host, in all shards alike.

    Raises
    ------
    ShardError
        If there are more shards than columns, or rows; if a block cannot be read; if a shard has ended.
    ValueError
        If some row cannot be matched.
    """
    _, answer, stats = _searched(blocks, way, work)
    return Found(*answer, stats)


def proved(blocks: Blocks, way: Communicator, work: Work) -> Proved:
    """`found`, with the certificate that the shards compute from their own blocks."""
    start, (col_of_row, v), stats = _searched(blocks, way, work)
    v = v.astype(forbidden(v.dtype).dtype)
    # Of more columns than rows a free one must keep the dual 0, and no other may have more.
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
    """What a block leaves of each row's dual, and what the pairs in it cost."""
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
    blocks: Blocks, way: Communicator, work: Work
) -> tuple[Reduced, tuple[NDArray[np.int32], NDArray], dict[str, int | float]]:
    """State, matching and duals of columns, and counts."""
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
    """Algorithm 1, see `Hungarian`; extent: the shape of the matrix, and the edges of the shards."""
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
