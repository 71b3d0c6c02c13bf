"""Matrices that an order of rows and columns solves: products, distances along a line, equal rows."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module
from .solver import Answer

_TURNS = 2
"""How often the ends of rows and columns are looked for, each from the other's."""


class Matrix(Protocol):
    """What is asked of `DenseMatrix` and its like."""

    def pairs(self, rows: NDArray, cols: NDArray) -> NDArray: ...
    def lower_to_slack(self, v: NDArray, u: NDArray) -> None: ...


def solved_by_order(matrix: Matrix, never: NDArray, rounding: float) -> Answer | None:
    """The answer of a square matrix whose rows and columns can be put in an order that makes it Monge.

    In such an order c_ij + c_kl <= c_il + c_kj for all i < k and j < l, and matching the first row with the
    first column, the second with the second and so on is optimal (Hoffman 1963). Steps of the column duals
    between c_kl - c_kj and c_il - c_ij of neighbours prove it. These matrices defeat candidates, for all
    pairs near the diagonal cost nearly the same (Machol and Wien's i·j is one). Where the matrix is not of
    this kind some neighbours say so at once, from some 11 n of its n² costs.

    Parameters
    ----------
    matrix : Matrix
        (N, N) costs, integers or floats; inf forbids.
    never : (N,) int64 or float64 array
        Above all costs; it says where arrays live and of which dtype duals are.
    rounding : float
        By how much a reduced cost may be negative.

    Returns
    -------
    Answer or None
        Proven by a pass over all pairs; None where this order does not solve it.

    Examples
    --------
    >>> from outbid.assignment.dense import DenseMatrix
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
    """Rows and columns by how their costs change from one end of the others to the other end."""
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
