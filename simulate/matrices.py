"""Matrices of costs that the papers on assignment measure with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid.assignment import AssignmentProblem, DenseCosts, PointCosts
from outbid.assignment.points import dense_of

RANGES = {"[0, n/10]": 0.1, "[0, n]": 1.0, "[0, 10n]": 10.0}
"""Date & Nagi's ranges of integer costs: the largest one over n."""


def uniform(size: int, costs: str, seed: int) -> AssignmentProblem:
    """Uniform integers in a range, int32.

    Examples
    --------
    >>> uniform(50, "[0, n/10]", 0).array.max()
    np.int32(5)
    """
    most = round(RANGES[costs] * size)
    values = np.random.default_rng(seed).integers(0, most + 1, (size, size), dtype=np.int32)
    return AssignmentProblem(DenseCosts(values))


def geom(size: int, seed: int, side: float = 1000.0) -> AssignmentProblem:
    """The GEOM problem of Roverso et al.: the greatest sum of distances between random points of a square.

    Examples
    --------
    >>> geom(5, 0).array.diagonal().tolist()
    [-0.0, -0.0, -0.0, -0.0, -0.0]
    """
    points = side * np.random.default_rng(seed).random((size, 2))
    return AssignmentProblem(DenseCosts(-dense_of(PointCosts(points, points)).values))


def distances(source: NDArray[np.float64], target: NDArray[np.float64]) -> AssignmentProblem:
    """All distances between two frames, as Vasconcelos & Rosenhahn match them."""
    return AssignmentProblem(DenseCosts(dense_of(PointCosts(source, target)).values))
