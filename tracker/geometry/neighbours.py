"""Neighbours: the nearest few points of every point of a movie, by a cell list of each frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module, kernels
from ..compute.threads import in_threads, threads_for


def nearest(
    position: NDArray[np.float64],
    frame_start: NDArray[np.int64],
    rows: NDArray[np.int64],
    count: int,
    *,
    offset: int = 0,
    within: float = np.inf,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The nearest other points of some points, in the same frame or in one a few frames later.

    Parameters
    ----------
    position : (N, axes) float64 array
        One to three axes.
    frame_start : (F + 1,) int64 array
        Frame f holds the rows frame_start[f] to frame_start[f + 1].
    rows : (M,) increasing int64 array
        Whose neighbours are sought; each with frame + offset below F.
    count : int
        How many neighbours.
    offset : int
        Frames from those who ask to those who are asked. In one's own frame one is no neighbour.
    within : float
        Largest distance; farther ones are not sought, but may be returned.

    Returns
    -------
    (M, count) int32 array, (M, count) float64 array
        The rows of the neighbours, nearest first, -1 where there are no more; and the squared distances, inf
        where there are none.

    Examples
    --------
    >>> place = np.array([[0.0], [1.0], [3.0]])
    >>> near, distance2 = nearest(place, np.array([0, 3]), np.arange(3), 2)
    >>> near.tolist(), distance2.tolist()
    ([[1, 2], [0, 2], [1, 0]], [[1.0, 9.0], [1.0, 4.0], [4.0, 9.0]])
    """
    on, xp = kernels("outbid.geometry.neighbours", position), array_module(position)
    near = xp.full((len(rows), count), -1, dtype=np.int32)
    distance2 = xp.full((len(rows), count), np.inf)
    workers = max(1, threads_for(position))
    cuts = np.linspace(0, len(rows), workers + 1).astype(int).tolist()
    runs = list(zip(cuts[:-1], cuts[1:], strict=True))

    def search(run: tuple[int, int]) -> None:
        on.nearest_of_rows(*run, rows, frame_start, position, offset, within, near, distance2)

    list(in_threads(search, runs, workers))
    return near, distance2
