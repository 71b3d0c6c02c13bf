"""Asks the GPU about all pairs: `DenseMatrix` and `PointMatrix` where costs or points are in its memory.

Methods take and give what theirs do, with one liberty that changes candidates and no answer: of every row at
most one column of each of 256 classes is found, of every column at most one row of each of 64. The nearest is
always among them.
"""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ..compute.arrays import array_module, to_device, to_host
from ..compute.cuda import cuda_function, launch
from .matrix import key_dtype, limit_in, readable

_SOURCE = "assignment/matrix.cu"
_THREADS, _ROWS, _CLASSES, _COLS = 256, 4, 64, 4
"""As in dense.cu: threads and rows a block, classes of rows, columns of a block that merges classes."""
_MOST_BLOCKS = 65_535
"""Blocks that a launch may have in its second direction."""


class DeviceMatrix:
    """Costs of all pairs, stored (`values`) or of points, in the memory of a GPU.

    Parameters
    ----------
    costs : DenseCosts or PointCosts
    """

    def __init__(self, costs):
        self.shape, self._costs = costs.shape, costs
        if hasattr(costs, "metric"):
            xp = array_module(costs.source)
            self.first, self.other = xp.ascontiguousarray(costs.source), xp.ascontiguousarray(costs.target.T)
            axes, squared = costs.source.shape[1], costs.metric == "squared"
            self.kind = (f"-DAXES={axes if axes <= 3 else 0}",)
        else:
            self.values = self.first = self.other = readable(costs.values)
            axes, squared, self.kind = 0, False, (f"-DCOST={self.first.dtype.str[1:]}",)
        self._pairs = (self.first, self.other, *map(np.int64, self.shape), np.int32(axes), np.int32(squared))

    def lower_to_slack(self, v, u):
        """u_i := min(u_i, min_j (c_ij - v_j)); written: u (R,)."""
        if 0 in self.shape:
            return
        dtype = self._key_dtype(v)
        least = u.copy() if dtype == u.dtype else limit_in(u, dtype)
        self._run("lower_to_slack", dtype, self._row_blocks(), (v.astype(dtype), least))
        array_module(u).minimum(u, least, out=u)

    def nearest_of_rows(self, v, limit, most):
        """The columns of least c_ij - v_j below a limit, row by row; see `DenseMatrix`."""
        xp, (rows, cols) = array_module(v), self.shape
        most, dtype = min(most, cols, _THREADS), self._key_dtype(v)
        nearest, count = xp.empty((rows, most), np.int32), xp.zeros(rows, np.int32)
        if most and rows:
            given = (v.astype(dtype), limit_in(limit, dtype), np.int32(most), nearest, count)
            self._run("nearest_of_rows", dtype, self._row_blocks(), given)
        return nearest, count

    def nearest_of_cols(self, u, limit, most):
        """The rows of least c_ij - u_i below a limit, column by column; see `DenseMatrix`."""
        xp, (rows, cols) = array_module(u), self.shape
        most, dtype = min(most, rows, _CLASSES), self._key_dtype(u)
        nearest, count = xp.empty((cols, most), np.int32), xp.zeros(cols, np.int32)
        if not most or not cols:
            return nearest, count, limit.copy()
        keys, rows_of = xp.empty((_CLASSES, cols), dtype), xp.empty((_CLASSES, cols), np.int32)
        grid = (-(-cols // _THREADS), _CLASSES)
        self._run("least_of_cols", dtype, grid, (u.astype(dtype), keys, rows_of))
        bound, least = limit_in(limit, dtype), xp.empty(cols, dtype)
        merge = (keys, rows_of, bound, *map(np.int64, self.shape), np.int32(most), nearest, count, least)
        self._function("nearest_of_cols", dtype)((-(-cols // _COLS),), (_THREADS,), merge)
        return nearest, count, xp.where(count > 0, least.astype(limit.dtype), limit)

    def pairs(self, rows, cols):
        """(P,) costs of pairs."""
        found = array_module(self.first).empty(len(rows), self.first.dtype)
        given = (*self._pairs, rows.astype(np.int64), cols.astype(np.int32), np.int64(len(rows)), found)
        launch(self._function("pairs", found.dtype), len(rows), given)
        return found

    def matrix(self):
        """(R, C) costs of all pairs."""
        found = array_module(self.first).empty(self.shape, self.first.dtype)
        if found.size:
            grid = (-(-self.shape[1] // _THREADS), min(self.shape[0], _MOST_BLOCKS))
            self._run("all_pairs", found.dtype, grid, (found,))
        return found

    def _row_blocks(self):
        return (-(-self.shape[0] // _ROWS),)

    def _run(self, name, dtype, grid, given):
        self._function(name, dtype)(grid, (_THREADS,), (*self._pairs, *given))

    def _function(self, name, dtype):
        return cuda_function(_SOURCE, name, options=(*self.kind, f"-DKEY={dtype.str[1:]}"))

    def _key_dtype(self, dual):
        """int32 where it holds all differences of costs and duals, else the type of the duals."""
        if self.first.dtype != np.int32:
            return dual.dtype
        return key_dtype(self._costs.extremes, dual)


class AskedFromHost:
    """A `DeviceMatrix` that takes and gives arrays in main memory."""

    def __init__(self, matrix):
        self._matrix = matrix

    def lower_to_slack(self, v, u):
        lowered = to_device(u)
        self._matrix.lower_to_slack(to_device(v), lowered)
        u[:] = to_host(lowered)

    def nearest_of_rows(self, v, limit, most):
        return tuple(map(to_host, self._matrix.nearest_of_rows(to_device(v), to_device(limit), most)))

    def nearest_of_cols(self, u, limit, most):
        return tuple(map(to_host, self._matrix.nearest_of_cols(to_device(u), to_device(limit), most)))

    def pairs(self, rows, cols):
        return to_host(self._matrix.pairs(to_device(rows), to_device(cols)))
