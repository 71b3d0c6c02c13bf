"""Matrices solved by sorting rows and columns: products, distances along a line, equal rows."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module
from ..solver import Answer

_TURNS = 2
"""Number of times that the extreme rows and columns are determined alternately from each other."""


class Matrix(Protocol):
    """The methods of `DenseMatrix` that are used here."""

    def pairs(self, rows: NDArray, cols: NDArray) -> NDArray: ...
    def lower_to_slack(self, v: NDArray, u: NDArray) -> None: ...


def solved_by_order(matrix: Matrix, never: NDArray, rounding: float) -> Answer | None:
    """Solve a square matrix whose rows and columns can be sorted so that it has the Monge property.

    In such an order, c_ij + c_kl <= c_il + c_kj for all i < k and j < l, and it is optimal to match the first
    row with the first column, the second with the second, and so on (Hoffman 1963). Column duals prove this
    if their steps are between c_kl - c_kj and c_il - c_ij of neighbouring rows and columns. A solver with
    candidate pairs is slow for these matrices, because all pairs near the diagonal have nearly the same
    reduced cost (an example is the matrix i·j of Machol and Wien). A matrix of another kind is recognised
    quickly, from about 11 n of its n² costs.

    Parameters
    ----------
    matrix : Matrix
        (N, N) costs, integers or floats; inf forbids.
    never : (N,) int64 or float64 array
        Above all costs; it also determines the device and the dtype of the duals.
    rounding : float
        Tolerance for negative reduced costs.

    Returns
    -------
    Answer or None
        An answer proved by a pass over all pairs, or None if sorting does not solve the matrix.

    Examples
    --------
    >>> from outbid.assignment.matrix import DenseMatrix
    >>> product = DenseMatrix(np.outer([3, 1, 2], [1, 3, 2]))
    >>> solved_by_order(product, np.full(3, 2**62), 0).col_of_row.tolist()
    [0, 1, 2]
    """
    xp, dtype = array_module(never), never.dtype
    with np.errstate(invalid="ignore"):
        rows, cols = _in_order(matrix, never)
        held = matrix.pairs(rows, cols).astype(dtype)
        most = matrix.pairs(rows[:-1], cols[1:]).astype(dtype) - held[:-1]
        least = held[1:] - matrix.pairs(rows[1:], cols[:-1]).astype(dtype)
        room = most - least
    if not bool((held < never).all() and ((room >= 0) & (room < never[1:])).all()):
        return None
    v, u = xp.zeros_like(never), never.copy()
    v[cols[1:]] = xp.cumsum(least + (room // 2 if dtype.kind == "i" else room / 2))
    matrix.lower_to_slack(v, u)
    if not bool((held - v[cols] <= u[rows] + rounding).all()):
        return None
    col_of_row = xp.empty(len(rows), np.int32)
    col_of_row[rows] = cols
    return Answer(col_of_row, v - v.max(), {"passes": 1})


def _in_order(matrix: Matrix, never: NDArray) -> tuple[NDArray, NDArray]:
    """Sort rows and columns by the change of their costs between the extremes of the other side."""
    xp = array_module(never)
    every = xp.arange(len(never))

    def row(place: int) -> NDArray:
        return matrix.pairs(xp.full_like(every, place), every).astype(never.dtype)

    def col(place: int) -> NDArray:
        return matrix.pairs(every, xp.full_like(every, place)).astype(never.dtype)

    first, last = 0, len(never) - 1
    for _ in range(_TURNS):
        of_cols = row(last) - row(first)
        left, right = int(of_cols.argmin()), int(of_cols.argmax())
        of_rows = col(right) - col(left)
        first, last = int(of_rows.argmin()), int(of_rows.argmax())
    return xp.argsort(of_rows)[::-1], xp.argsort(of_cols)
