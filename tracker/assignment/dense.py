"""A dense matrix as its kernels read it: least reduced costs, row by row and column by column."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module, on_device
from .._threads import in_threads

_NARROW = 2**28
"""Below it, integers and their differences are compared as int32, twice as many at a time."""
_MANY = 1 << 20
"""Numbers from which threads look for the extremes together."""


class DenseMatrix:
    """Costs of all pairs, on the host.

    Parameters
    ----------
    values : (R, C) array of a real dtype
        Copied only if it is not int32, int64, float32 or float64, or not row after row.
    extremes : (least, largest), optional
        If they are known already.
    place : (int, int), optional
        The number of the first row among so many, if these are some rows of a larger matrix.

    Attributes
    ----------
    values : (R, C) array
        As the kernels read it.

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
        from . import dense_cpu

        if self.values.size == 0:
            return
        dtype = self._key_dtype(v)
        least = np.full(len(u), np.iinfo(dtype).max if dtype == np.int32 else u.max(), dtype)
        in_blocks(dense_cpu.lower_to_slack, len(u), self.values, v.astype(dtype, copy=False), least)
        np.minimum(u, least, out=u)

    def nearest_of_rows(
        self, v: NDArray, limit: NDArray, most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The columns of least c_ij - v_j below a limit, row by row.

        Parameters
        ----------
        v : (C,) int64 or float64 array
        limit : (R,) int64 or float64 array
        most : int
            Columns a row.

        Returns
        -------
        nearest : (R, most) int32 array
            Columns, ascending in c_ij - v_j.
        count : (R,) int32 array
            How many of them there are.
        """
        from . import dense_cpu

        rows, cols = self.values.shape
        nearest, count = np.empty((rows, min(most, cols)), np.int32), np.zeros(rows, np.int32)
        dtype = self._key_dtype(v)
        arrays = (self.values, v.astype(dtype), limit_in(limit, dtype), *self._place, nearest, count)
        in_blocks(dense_cpu.nearest_of_rows, rows, *arrays)
        return nearest, count

    def nearest_of_cols(
        self, u: NDArray, limit: NDArray, most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray]:
        """The rows of least c_ij - u_i below a limit, column by column.

        Parameters
        ----------
        u : (R,) int64 or float64 array
        limit : (C,) int64 or float64 array
        most : int
            Rows a column.

        Returns
        -------
        nearest : (C, most) int32 array
            Rows, ascending in c_ij - u_i.
        count : (C,) int32 array
            How many of them there are.
        least : (C,) array
            The least c_ij - u_i; the limit where there is none below.
        """
        from . import dense_cpu

        rows, cols = self.values.shape
        nearest, count = np.empty((cols, min(most, rows)), np.int32), np.zeros(cols, np.int32)
        dtype = self._key_dtype(u)
        keys = np.empty(nearest.shape, dtype)
        arrays = (self.values, u.astype(dtype), limit_in(limit, dtype), keys, nearest, count)
        in_blocks(dense_cpu.nearest_of_cols, cols, *arrays, 0)
        return nearest, count, np.where(count > 0, keys[:, 0].astype(limit.dtype), limit)

    def matrix(self) -> NDArray:
        """(R, C) costs of all pairs."""
        return self.values

    def pairs(self, rows: NDArray, cols: NDArray) -> NDArray:
        """(P,) costs of pairs."""
        return self.values[rows, cols]

    def _key_dtype(self, dual: NDArray) -> np.dtype:
        """int32 where it holds all differences of costs and duals, else the type of the duals."""
        if self.values.dtype != np.int32 or self.values.size == 0:
            return dual.dtype
        self._extremes = self._extremes or extremes(self.values)
        return key_dtype(self._extremes, dual)


def extremes(values: NDArray) -> tuple[int | float, int | float]:
    """Least and largest number, NaN if there is one; 0 of none.

    Examples
    --------
    >>> extremes(np.array([[3, 1, 2], [0, 5, 1]]))
    (0, 5)
    """
    if values.size == 0:
        return 0, 0
    if on_device(values) or values.size < _MANY or values.dtype not in (np.int32, np.int64):
        return values.min().item(), values.max().item()
    from . import dense_cpu

    low, high = np.empty((2, len(values)), values.dtype)
    in_blocks(dense_cpu.extremes, len(low), values, low, high)
    return int(low.min()), int(high.max())


def readable(values: NDArray) -> NDArray:
    """The costs as the kernels read them: int32, int64, float32 or float64, row after row."""
    wanted = values.dtype if values.dtype.str[1:] in ("i4", "i8", "f4", "f8") else None
    if wanted is None:
        wanted = np.dtype(np.float64 if values.dtype.kind == "f" else np.int64)
    return array_module(values).ascontiguousarray(values, dtype=wanted.newbyteorder("="))


def key_dtype(extremes: tuple[int | float, int | float], dual: NDArray) -> np.dtype:
    """int32 where it holds all differences of int32 costs and duals, else the type of the duals."""
    if dual.dtype.kind == "f" or dual.size == 0:
        return dual.dtype
    narrow = min(extremes[0], int(dual.min())) > -_NARROW and max(extremes[1], int(dual.max())) < _NARROW
    return np.dtype(np.int32) if narrow else dual.dtype


def limit_in(limit: NDArray, dtype: np.dtype) -> NDArray:
    """A copy of the limits, cut off to what no key reaches: between infinities there is no difference."""
    most = 2 * _NARROW if dtype == np.int32 else np.finfo(dtype).max if dtype.kind == "f" else 2**62
    return array_module(limit).minimum(limit, most).astype(dtype)


def in_blocks(kernel: Callable[..., None], length: int, *arguments: Any, work: int | None = None) -> None:
    """Run a kernel on blocks of rows or columns, one for each processor that this process may use.

    Little work is not shared out; by default it is the size of the largest array.
    """
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    bounds = [length * k // workers for k in range(workers + 1)]
    blocks = list(zip(bounds[:-1], bounds[1:], strict=True))
    work = max(map(np.size, arguments)) if work is None else work
    for _ in in_threads(partial(_run_block, kernel, arguments), blocks, workers if work > 1 << 16 else 1):
        pass


def _run_block(kernel: Callable[..., None], arguments: tuple[Any, ...], block: tuple[int, int]) -> None:
    kernel(*arguments, *block)
