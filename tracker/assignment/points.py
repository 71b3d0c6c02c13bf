"""Distances of two point sets with the interface of a dense matrix, computed some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import free_device_memory, free_memory, on_device
from .matrix import DenseMatrix, in_blocks, limit_in
from .problem import AssignmentProblem, DenseCosts, PointCosts, SparseCosts

_ENTRIES = 1 << 22
"""Number of distances in memory at once: 32 MiB."""


class PointMatrix:
    """`DenseMatrix` for points, with the same methods.

    Parameters
    ----------
    costs : PointCosts
        On the host.
    place : (int, int), optional
        As in `DenseMatrix`.

    Examples
    --------
    >>> matrix = PointMatrix(PointCosts(np.array([[0.0], [3.0]]), np.array([[1.0], [5.0]])))
    >>> u = np.full(2, np.inf)
    >>> matrix.lower_to_slack(np.zeros(2), u)
    >>> u
    array([1., 2.])
    """

    def __init__(self, costs: PointCosts, place: tuple[int, int] | None = None) -> None:
        self.source = np.ascontiguousarray(costs.source)
        self.by_axis = np.ascontiguousarray(costs.target.T)
        self.squared = costs.metric == "squared"
        self.shape = costs.shape
        self._place = place or (0, self.shape[0])

    def block(self, first: int, last: int) -> NDArray[np.float64]:
        """(last - first, C) distances of some rows."""
        from . import points_cpu

        found = np.empty((last - first, self.shape[1]))
        in_blocks(
            points_cpu.distances, len(found), self.source[first:last], self.by_axis, self.squared, found
        )
        return found

    def pairs(self, rows: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """(P,) distances of pairs."""
        from . import points_cpu

        rows, cols = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(cols, np.int32)
        found = np.empty(len(rows))
        in_blocks(points_cpu.pairs, len(rows), self.source, self.by_axis, self.squared, rows, cols, found)
        return found

    def matrix(self) -> NDArray[np.float64]:
        """(R, C) costs of all pairs."""
        return self.block(0, self.shape[0])

    def lower_to_slack(self, v: NDArray, u: NDArray) -> None:
        """u_i := min(u_i, min_j (c_ij - v_j)); see `DenseMatrix`."""
        for first, last in self._blocks():
            DenseMatrix(self.block(first, last)).lower_to_slack(v, u[first:last])

    def nearest_of_rows(
        self, v: NDArray, limit: NDArray, most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The columns with the least c_ij - v_j below a limit, for each row; see `DenseMatrix`."""
        row, of = self._place
        found = [
            DenseMatrix(self.block(first, last), None, (row + first, of)).nearest_of_rows(
                v, limit[first:last], most
            )
            for first, last in self._blocks()
        ]
        nearest, count = zip(*found, strict=True)
        return np.concatenate(nearest), np.concatenate(count)

    def nearest_of_cols(
        self, u: NDArray, limit: NDArray, most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray]:
        """The rows with the least c_ij - u_i below a limit, for each column; see `DenseMatrix`."""
        from . import matrix_cpu

        rows, cols = self.shape
        nearest, count = np.empty((cols, min(most, rows)), np.int32), np.zeros(cols, np.int32)
        keys, limits = np.empty(nearest.shape), limit_in(limit, u.dtype)
        for first, last in self._blocks():
            state = (u[first:last], limits, keys, nearest, count, first)
            in_blocks(matrix_cpu.nearest_of_cols, cols, self.block(first, last), *state)
        return nearest, count, np.where(count > 0, keys[:, 0], limit)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        rows, cols = self.shape
        step = max(1, _ENTRIES // max(cols, 1))
        return ((first, min(first + step, rows)) for first in range(0, rows, step))


def matrix_of(
    costs: DenseCosts | PointCosts, place: tuple[int, int] | None = None
) -> DenseMatrix | PointMatrix:
    """A `DenseMatrix`, or its equivalent for points, where the costs live; `place` as in `DenseMatrix`."""
    if on_device(costs.source if isinstance(costs, PointCosts) else costs.values):
        on_gpu: Any = import_module(".matrix_gpu", __package__)
        return on_gpu.DeviceMatrix(costs)
    if isinstance(costs, PointCosts):
        return PointMatrix(costs, place)
    return DenseMatrix(costs.values, costs.extremes if costs.values.dtype == np.int32 else None, place)


def dense_of(costs: PointCosts) -> DenseCosts:
    """Compute all distances of two point sets as a matrix.

    Raises
    ------
    MemoryError
        If they do not fit into memory.

    Examples
    --------
    >>> dense_of(PointCosts(np.zeros((2, 3)), np.ones((4, 3)), "squared")).values[0]
    array([3., 3., 3., 3.])
    """
    needed = 8 * len(costs.source) * len(costs.target)
    if needed > 0.8 * (free_device_memory() if on_device(costs.source) else free_memory()):
        raise MemoryError(
            f"A matrix of all distances takes {needed / 2**30:.1f} GiB, more than is free. "
            "Choose solver sparsified, which needs none, or gate the pairs."
        )
    return DenseCosts(matrix_of(costs).matrix())


def stored_costs(problem: AssignmentProblem) -> DenseCosts | SparseCosts:
    """The stored costs of a problem; for points, a matrix is computed."""
    return dense_of(problem.costs) if isinstance(problem.costs, PointCosts) else problem.costs


def with_stored_costs(problem: AssignmentProblem) -> AssignmentProblem:
    """The same problem with a matrix in place of points."""
    return replace(problem, costs=stored_costs(problem)) if isinstance(problem.costs, PointCosts) else problem
