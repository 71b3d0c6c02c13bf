"""Which detections are true: most pairs one to one within a distance, and the Jaccard index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial import cKDTree

from .cells import Cell, View

NEAR = 0.5  # of the radius: detections nearer than this to a spot may be it
LEAST = 1.0  # but at least a pixel
CROWDED = 1 / 3  # and at most so much of the spacing, or chance alone would match most of them
BODY = 1.0  # of the radius, for bodies, whose centres texture hides
IGNORED = 2.0  # times that distance from a spot beyond the walls, a detection is neither right nor wrong


def reach(cell: Cell) -> float:
    """The distance within which a detection may be a spot, in pixels; along z in units of its width."""
    if cell.kind == "bodies":
        return BODY * cell.radius
    return min(max(NEAR * cell.radius, LEAST), CROWDED * cell.spacing)


def scaled(place: NDArray[np.float64], cell: Cell) -> NDArray[np.float64]:
    """Positions with z in units in which a spot is round; without z in 2D."""
    if cell.dimensions == 2:
        return place[:, 1:]
    return place * [cell.sigma[1] / cell.sigma[0], 1, 1]


def pairs(found: NDArray[np.float64], truth: NDArray[np.float64], near: float) -> NDArray[np.int64]:
    """For each detection the spot that it is matched with, or -1; as many as can be."""
    if not len(found) or not len(truth):
        return np.full(len(found), -1)
    close = cKDTree(found).sparse_distance_matrix(cKDTree(truth), near, output_type="coo_matrix").tocsr()
    close.data[:] = 1  # a distance of 0 would be no pair
    return maximum_bipartite_matching(close, perm_type="column")


def counts(found: NDArray[np.float64], seen: View, cell: Cell) -> tuple[int, int, int]:
    """Right, wrong and missed."""
    near = reach(cell)
    here = scaled(found, cell)
    free = pairs(here, scaled(seen.truth, cell), near) < 0
    right = len(found) - int(free.sum())
    if len(seen.outside) and free.any():
        away = cKDTree(scaled(seen.outside, cell)).query(here[free])[0]
        free[free] = away > IGNORED * near
    return right, int(free.sum()), len(seen.truth) - right


def jaccard(count: tuple[int, int, int]) -> float:
    """Right over all that is right, wrong or missed; 1 where there is nothing.

    Examples
    --------
    >>> jaccard((6, 2, 4))
    0.5
    """
    return count[0] / sum(count) if sum(count) else 1.0
