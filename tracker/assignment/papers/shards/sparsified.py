"""`Sparsified` with the rows of a matrix divided over shards; all shards have all candidates.

On the CPU, the matching, duals and counters equal those of one device. On GPUs, the candidates differ from
those of one device, because they depend on the position of a row within its block; the answer is optimal as
well.

Each shard searches its own rows, and the results are gathered. So all shards choose the same candidates,
solve the same sparse problem and find the same pairs that violate the duals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....compute.arrays import array_module, on_device, to_device, to_host
from ...dense.core import Core
from ...dense.sparsified import Sparsified
from ...points import matrix_of
from ...problem import AssignmentProblem, DenseCosts, PointCosts
from ...scales import cost_scales
from ...solver import Answer
from .blocks import blocks_of
from .communicator import Communicator, ShardError
from .search import Setup, found
from .state import even, gathered_lines

_CLASSES = 64
"""For each column, a GPU finds at most one row per class (row modulo 64); shards begin at multiples of 64."""


class DividedMatrix:
    """A `DenseMatrix` of which this shard has some rows; its methods are those of `DenseMatrix`.

    Parameters
    ----------
    costs : DenseCosts or PointCosts
        Costs of own rows, on the device of the shard.
    way : Communicator
    edges : tuple of int
        First row of each shard, and the number of rows.
    """

    def __init__(self, costs: DenseCosts | PointCosts, way: Communicator, edges: tuple[int, ...]) -> None:
        self.way, self.edges = way, edges
        self.first, self.last = edges[way.rank], edges[way.rank + 1]
        self.own: Any = matrix_of(costs, (self.first, edges[-1]))
        self.shape = edges[-1], costs.shape[1]

    def lower_to_slack(self, v: NDArray, u: NDArray) -> None:
        mine = u[self.first : self.last].copy()
        self.own.lower_to_slack(v, mine)
        u[:] = gathered_lines(self.way, mine, self.edges)

    def nearest_of_rows(self, v: NDArray, limit: NDArray, most: int) -> tuple[NDArray, NDArray]:
        nearest, count = self.own.nearest_of_rows(v, limit[self.first : self.last], most)
        return gathered_lines(self.way, nearest, self.edges), gathered_lines(self.way, count, self.edges)

    def nearest_of_cols(self, u: NDArray, limit: NDArray, most: int) -> tuple[NDArray, NDArray, NDArray]:
        xp, cols = array_module(u), self.shape[1]
        rows, count, _ = self.own.nearest_of_cols(u[self.first : self.last], limit, most)
        width = min(most, self.shape[0], _CLASSES if on_device(u) else most)
        keys = xp.full((cols, width), _never(u.dtype), u.dtype)
        nearest = xp.full((cols, width), -1, np.int32)
        col, place = xp.nonzero(xp.arange(rows.shape[1]) < count[:, None])
        row = rows[col, place]
        keys[col, place] = self.own.pairs(row, col.astype(np.int32)).astype(u.dtype) - u[self.first + row]
        nearest[col, place] = row + self.first
        return _merged(self.way.gather(keys), self.way.gather(nearest), limit)

    def pairs(self, rows: NDArray, cols: NDArray) -> NDArray:
        xp = array_module(rows)
        mine = xp.nonzero((rows >= self.first) & (rows < self.last))[0]
        values = self.own.pairs(rows[mine] - self.first, cols[mine])
        found = xp.zeros(len(rows), values.dtype)
        found[mine] = values
        return self.way.total(found)


def _merged(keys: NDArray, rows: NDArray, limit: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """(P, C, most) nearest rows of each column in every shard; on a GPU, one per class."""
    xp, (size, cols, most) = array_module(keys), keys.shape
    keys = xp.ascontiguousarray(keys.transpose(1, 0, 2)).reshape(cols, size * most)
    rows = xp.ascontiguousarray(rows.transpose(1, 0, 2)).reshape(cols, size * most)
    # Sort by key, then by row, as one device does.
    by_row = xp.argsort(xp.where(rows < 0, np.int32(2**31 - 1), rows), axis=1, kind="stable")
    order = xp.take_along_axis(
        by_row, xp.argsort(xp.take_along_axis(keys, by_row, axis=1), axis=1, kind="stable"), axis=1
    )
    keys, rows = (xp.take_along_axis(of, order, axis=1) for of in (keys, rows))
    if on_device(keys):
        keys, rows = _one_of_each_class(keys, rows, most)
    keys, rows = keys[:, :most], rows[:, :most]
    count = (rows >= 0).sum(axis=1).astype(np.int32)
    return xp.where(rows < 0, 0, rows), count, xp.where(count > 0, keys[:, 0].astype(limit.dtype), limit)


def _one_of_each_class(keys: NDArray, rows: NDArray, most: int) -> tuple[NDArray, NDArray]:
    """Move the first entry of each class to the front of its line."""
    xp = array_module(keys)
    kind = xp.where(rows < 0, -1, rows % _CLASSES)
    seen = xp.zeros(rows.shape, bool)
    for place in range(1, rows.shape[1]):
        before = kind[:, :place] == kind[:, place : place + 1]
        seen[:, place] = before.any(axis=1) & (rows[:, place] >= 0)
    order = xp.argsort(seen | (rows < 0), axis=1, kind="stable")[:, :most]
    left = xp.take_along_axis(seen, order, axis=1)
    keys, rows = (xp.take_along_axis(of, order, axis=1) for of in (keys, rows))
    return keys, xp.where(left, -1, rows)


def _never(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def solved(problem: AssignmentProblem, solver: Sparsified, way: Communicator, is_on_gpu: bool) -> Answer:
    """Solve as `Sparsified` on one device, as one of several shards.

    Parameters
    ----------
    problem : AssignmentProblem
        A matrix or points; this shard reads its own rows.
    solver : Sparsified
    way : Communicator
    is_on_gpu : bool
        Whether to solve a matrix on the host on the current GPU.

    Raises
    ------
    ShardError
        If there are more shards than rows.
    ValueError
        If some row cannot be matched.
    """
    rows = problem.shape[0]
    if way.size > max(rows, 1):
        raise ShardError(f"{way.size} shards are more than {rows} lines to divide. Choose at most {rows}.")
    edges = _edges(rows, way.size, is_on_gpu or on_device(problem.array))
    core = _core(problem, way, edges, is_on_gpu)
    answer = core.in_order() or solver.from_candidates(problem, core)
    if answer is None:
        answer = _by_trees(problem, core, way, is_on_gpu)
    stats = {**answer.stats, "shards": way.size, "messages": way.messages, "bytes_sent": way.sent}
    if not on_device(problem.array):
        return Answer(to_host(answer.col_of_row), to_host(answer.col_dual), stats)
    return Answer(answer.col_of_row, answer.col_dual, stats)


def _by_trees(problem: AssignmentProblem, core: Core, way: Communicator, is_on_gpu: bool) -> Answer:
    """If candidates do not suffice, search all pairs with the alternating trees of all shards."""
    assert isinstance(problem.costs, DenseCosts | PointCosts)
    there = is_on_gpu or on_device(problem.array)
    col_of_row, v, stats = found(blocks_of(problem.costs), way, Setup("tree", there))
    v = v.astype(core.v.dtype)
    v -= v.max() if core.is_square else v.dtype.type(0)
    move = to_device if on_device(problem.array) else np.asarray
    return Answer(move(col_of_row), move(v), {**core.stats, **stats, "by_trees": 1})


def _edges(rows: int, size: int, is_on_gpu: bool) -> tuple[int, ...]:
    if not is_on_gpu or rows < _CLASSES * size:
        return even(rows, size)
    return (*(edge // _CLASSES * _CLASSES for edge in even(rows, size)[:-1]), rows)


def _core(problem: AssignmentProblem, way: Communicator, edges: tuple[int, ...], is_on_gpu: bool) -> Core:
    """A `Core` whose matrix is divided over shards."""
    costs, own = problem.costs, slice(edges[way.rank], edges[way.rank + 1])
    moves = is_on_gpu and not on_device(problem.array)
    move = to_device if moves else lambda array: array
    if isinstance(costs, PointCosts):
        points = PointCosts(move(costs.source), move(costs.target), costs.metric)
        given = replace(problem, costs=points)
        part: DenseCosts | PointCosts = PointCosts(points.source[own], points.target, points.metric)
    else:
        assert isinstance(costs, DenseCosts)
        part = DenseCosts(move(costs.values[own]))
        given = problem if not moves else replace(problem, costs=_outline(costs, part.values))
    core = Core(given, costs, lambda _: DividedMatrix(part, way, edges))
    core.usual, core.largest = cost_scales(problem)
    return core


def _outline(costs: DenseCosts, like: NDArray) -> DenseCosts:
    """Placeholder costs with the same shape and extremes, on the device of `like`."""
    xp = array_module(like)
    outline = DenseCosts(xp.broadcast_to(xp.zeros(1, costs.values.dtype), costs.shape))
    outline.__dict__["extremes"] = costs.extremes
    return outline
