"""A dense matrix and its kernels: least reduced costs of each row and each column."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module, on_device
from ..compute.threads import in_threads

_NARROW = 2**28
"""Bound below which integers and their differences are compared as int32, twice as many at a time."""
_MANY = 1 << 20
"""Number of elements from which extremes are searched by several threads."""


class DenseMatrix:
    """Costs of all pairs, on the host.

    Parameters
    ----------
    values : (R, C) array of a real dtype
        Copied only if it is not int32, int64, float32 or float64, or not C-contiguous.
    extremes : (least, largest), optional
        The extremes, if they are already known.
    place : (int, int), optional
        If these are rows of a larger matrix: the number of the first one, and the number of all rows.

    Attributes
    ----------
    values : (R, C) array
        The matrix in the form that the kernels read.

    Examples
    --------
    >>> matrix = DenseMatrix(np.array([[3, 1, 2], [0, 5, 1]]))
    >>> nearest, count = matrix.nearest_of_rows(np.zeros(3, np.int64), np.array([3, 1]), 2)
    >>> nearest[0, :2].tolist(), count.tolist()
    ([1, 2], [2, 1])
    """

    def __init__(
        self,
        values: NDArray,
        extremes: tuple[int | float, int | float] | None = None,
        place: tuple[int, int] | None = None,
    ) -> None:
        self.values = readable(values)
        self._extremes = extremes
        self._place = place or (0, len(values))

    def lower_to_slack(self, v: NDArray, u: NDArray) -> None:
        """u_i := min(u_i, min_j (c_ij - v_j)).

        Parameters
        ----------
        v : (C,) int64 or float64 array
        u : (R,) int64 or float64 array, written
        """
        from . import matrix_cpu

        if self.values.size == 0:
            return
        dtype = self._key_dtype(v)
        least = np.full(len(u), np.iinfo(dtype).max if dtype == np.int32 else u.max(), dtype)
        in_blocks(matrix_cpu.lower_to_slack, len(u), self.values, v.astype(dtype, copy=False), least)
        np.minimum(u, least, out=u)

    def nearest_of_rows(
        self, v: NDArray, limit: NDArray, most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The columns with the least c_ij - v_j below a limit, for each row.

        Parameters
        ----------
        v : (C,) int64 or float64 array
        limit : (R,) int64 or float64 array
        most : int
            Largest number of columns per row.

        Returns
        -------
        nearest : (R, most) int32 array
            Columns, ascending in c_ij - v_j.
        count : (R,) int32 array
            How many of them there are.
        """
        from . import matrix_cpu

        rows, cols = self.values.shape
        nearest, count = np.empty((rows, min(most, cols)), np.int32), np.zeros(rows, np.int32)
        dtype = self._key_dtype(v)
        arrays = (self.values, v.astype(dtype), limit_in(limit, dtype), *self._place, nearest, count)
        in_blocks(matrix_cpu.nearest_of_rows, rows, *arrays)
        return nearest, count

    def nearest_of_cols(
        self, u: NDArray, limit: NDArray, most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray]:
        """The rows with the least c_ij - u_i below a limit, for each column.

        Parameters
        ----------
        u : (R,) int64 or float64 array
        limit : (C,) int64 or float64 array
        most : int
            Largest number of rows per column.

        Returns
        -------
        nearest : (C, most) int32 array
            Rows, ascending in c_ij - u_i.
        count : (C,) int32 array
            How many of them there are.
        least : (C,) array
            The least c_ij - u_i, or the limit if none is below it.
        """
        from . import matrix_cpu

        rows, cols = self.values.shape
        nearest, count = np.empty((cols, min(most, rows)), np.int32), np.zeros(cols, np.int32)
        dtype = self._key_dtype(u)
        keys = np.empty(nearest.shape, dtype)
        arrays = (self.values, u.astype(dtype), limit_in(limit, dtype), keys, nearest, count)
        in_blocks(matrix_cpu.nearest_of_cols, cols, *arrays, 0)
        return nearest, count, np.where(count > 0, keys[:, 0].astype(limit.dtype), limit)

    def matrix(self) -> NDArray:
        """(R, C) costs of all pairs."""
        return self.values

    def pairs(self, rows: NDArray, cols: NDArray) -> NDArray:
        """(P,) costs of pairs."""
        return self.values[rows, cols]

    def _key_dtype(self, dual: NDArray) -> np.dtype:
        """int32 if all differences of costs and duals fit, else the dtype of the duals."""
        if self.values.dtype != np.int32 or self.values.size == 0:
            return dual.dtype
        self._extremes = self._extremes or extremes(self.values)
        return key_dtype(self._extremes, dual)


def extremes(values: NDArray) -> tuple[int | float, int | float]:
    """Least and largest element; NaN if the array contains NaN, and 0 if it is empty.

    Examples
    --------
    >>> extremes(np.array([[3, 1, 2], [0, 5, 1]]))
    (0, 5)
    """
    if values.size == 0:
        return 0, 0
    if on_device(values) or values.size < _MANY or values.dtype not in (np.int32, np.int64):
        return values.min().item(), values.max().item()
    from . import matrix_cpu

    low, high = np.empty((2, len(values)), values.dtype)
    in_blocks(matrix_cpu.extremes, len(low), values, low, high)
    return int(low.min()), int(high.max())


def readable(values: NDArray) -> NDArray:
    """The costs in the form that the kernels read: int32, int64, float32 or float64, C-contiguous."""
    wanted = values.dtype if values.dtype.str[1:] in ("i4", "i8", "f4", "f8") else None
    if wanted is None:
        wanted = np.dtype(np.float64 if values.dtype.kind == "f" else np.int64)
    return array_module(values).ascontiguousarray(values, dtype=wanted.newbyteorder("="))


def key_dtype(extremes: tuple[int | float, int | float], dual: NDArray) -> np.dtype:
    """int32 if all differences of int32 costs and duals fit, else the dtype of the duals."""
    if dual.dtype.kind == "f" or dual.size == 0:
        return dual.dtype
    narrow = min(extremes[0], int(dual.min())) > -_NARROW and max(extremes[1], int(dual.max())) < _NARROW
    return np.dtype(np.int32) if narrow else dual.dtype


def limit_in(limit: NDArray, dtype: np.dtype) -> NDArray:
    """A copy of the limits with infinity replaced by a value above all keys, to avoid inf - inf."""
    most = 2 * _NARROW if dtype == np.int32 else np.finfo(dtype).max if dtype.kind == "f" else 2**62
    return array_module(limit).minimum(limit, most).astype(dtype)


def in_blocks(kernel: Callable[..., None], length: int, *arguments: Any, work: int | None = None) -> None:
    """Run a kernel on blocks of rows or columns, one block per processor available to this process.

    A small amount of work is not divided; by default it is measured by the size of the largest array.
    """
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    bounds = [length * k // workers for k in range(workers + 1)]
    blocks = list(zip(bounds[:-1], bounds[1:], strict=True))
    work = max(map(np.size, arguments)) if work is None else work
    for _ in in_threads(lambda block: kernel(*arguments, *block), blocks, workers if work > 1 << 16 else 1):
        pass
