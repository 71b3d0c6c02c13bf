"""Assignment with gains, such as log odds, in place of costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module
from . import solve_and_certify
from .assignment import Assignment
from .problem import AssignmentProblem, SparseCosts
from .solver import AbstractAssignmentSolver

_UNITS = 1 << 26
"""The largest gain in integer units; integers make the certificate exact."""


def best_pairs(
    indptr: NDArray[np.int64],
    col: NDArray[np.int32],
    gain: NDArray[np.float64],
    shape: tuple[int, int],
    solver: str | AbstractAssignmentSolver = "bid_and_augment",
) -> tuple[Assignment, float]:
    """The matching with the largest sum of gains; each row and column is in at most one pair.

    Parameters
    ----------
    indptr : (R + 1,) int64 array
        Start of the pairs of each row.
    col : (K,) int32 array
        Columns, ascending within a row.
    gain : (K,) float64 array
        Positive gains; other pairs can never improve a matching.
    shape : (R, C)
    solver : str or AbstractAssignmentSolver
        If it has no kernels for a GPU where the arrays are, the answer is on the host.

    Returns
    -------
    Assignment
        Its cost, margins and gap are exact integers, in units.
    unit : float
        The gain of one unit, to which gains are rounded.

    Examples
    --------
    >>> indptr, col = np.array([0, 2, 3]), np.array([0, 1, 0], np.int32)
    >>> answer, unit = best_pairs(indptr, col, np.array([3.0, 2.0, 2.0]), (2, 2))
    >>> answer.col_of_row.tolist(), answer.gap
    ([1, 0], 0)
    """
    xp, unit = array_module(gain), max(float(gain.max()) if len(gain) else 0.0, 1e-9) / _UNITS
    costs = SparseCosts(indptr, col, (_UNITS - np.rint(gain / unit)).astype(np.int32), shape)
    row_unmatched, col_unmatched = (xp.full(size, _UNITS // 2, dtype=np.int64) for size in shape)
    answer = solve_and_certify(AssignmentProblem(costs, row_unmatched, col_unmatched), solver)
    return answer, unit
