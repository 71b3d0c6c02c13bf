"""Pairs of greatest gain: assignment as those know it who weigh pairs by their log odds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import solve_and_certify
from .assignment import Assignment
from .problem import AssignmentProblem, SparseCosts
from .solver import AbstractAssignmentSolver

_UNITS = 1 << 26
"""Integer units in the largest gain, so that the certificate is exact."""


def best_pairs(
    indptr: NDArray[np.int64],
    col: NDArray[np.int32],
    gain: NDArray[np.float64],
    shape: tuple[int, int],
    solver: str | AbstractAssignmentSolver = "bid_and_augment",
) -> tuple[Assignment, float]:
    """The pairs whose gains sum to the most, every row and column in one of them or in none.

    Parameters
    ----------
    indptr : (R + 1,) int64 array
        Where the pairs of each row begin.
    col : (K,) int32 array
        Columns, ascending within a row.
    gain : (K,) float64 array
        Above 0: others are never worth while.
    shape : (R, C)
    solver : str or AbstractAssignmentSolver

    Returns
    -------
    Assignment
        Its cost, margins and gap count units; they are exact.
    unit : float
        The gain of one unit: gains are rounded to it.

    Examples
    --------
    >>> indptr, col = np.array([0, 2, 3]), np.array([0, 1, 0], np.int32)
    >>> answer, unit = best_pairs(indptr, col, np.array([3.0, 2.0, 2.0]), (2, 2))
    >>> answer.col_of_row.tolist(), answer.gap
    ([1, 0], 0)
    """
    unit = gain.max(initial=1e-9) / _UNITS
    costs = SparseCosts(indptr, col, (_UNITS - np.rint(gain / unit)).astype(np.int32), shape)
    row_unmatched, col_unmatched = (np.full(size, _UNITS // 2, dtype=np.int64) for size in shape)
    answer = solve_and_certify(AssignmentProblem(costs, row_unmatched, col_unmatched), solver)
    return answer, float(unit)
