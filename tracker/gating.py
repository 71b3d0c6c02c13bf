"""Gating: all pairs of points nearer than a radius, as sparse candidates.

Both clouds are cut into cubic cells as wide as the radius and sorted by cell, so that the
neighbours of a point stand in nine runs of consecutive points. Sorting also puts near points near
each other in memory, which is what makes the solvers that follow fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._arrays import array_module, in_threads, kernels
from .errors import ResourceError


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points in blocks (frames), sorted by cell inside each block.

    Parameters
    ----------
    point : (3, N) float64 array
        Axes z, y, x; sorted.
    key : (N,) int64 array
        Linear index of each point's cell, non-decreasing inside a block.
    order : (N,) int array
        Row that each sorted point had when it was given.
    block_start : (B + 1,) int64 array
        Block b holds the points block_start[b] to block_start[b + 1].
    """

    point: NDArray[np.float64]
    key: NDArray[np.int64]
    order: NDArray[np.int32]
    block_start: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs within the radius: row i has the columns indices[indptr[i]:indptr[i + 1]].

    Parameters
    ----------
    rows, cols : Cloud
        The two clouds; rows and columns are numbered in *their* sorted order.
    indptr : (R + 1,) int64 array
    indices : (P,) int32 array
    distance2 : (P,) float64 array
        Squared distance of each pair.
    """

    rows: Cloud
    cols: Cloud
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    distance2: NDArray[np.float64]


def pairs_within(
    rows: NDArray[np.float64],
    cols: NDArray[np.float64],
    radius: float,
    row_start: NDArray[np.int64],
    col_start: NDArray[np.int64],
    offsets: tuple[int, int] = (0, 0),
    *,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Candidates:
    """All pairs of a row and a column at most `radius` apart whose blocks differ by an allowed offset.

    Parameters
    ----------
    rows : (R, 3) float64 array
        Axes z, y, x, any unit.
    cols : (C, 3) float64 array
        In the same unit. Both live on the host, or both on a GPU; so does what is returned.
    radius : float
        Largest distance, inclusive; may be ``inf``.
    row_start, col_start : (B + 1,) int64 arrays
        Block b holds rows row_start[b] to row_start[b + 1], and likewise columns.
    offsets : (int, int)
        A row of block b is compared with the columns of blocks b + offsets[0] to b + offsets[1].
    workers : int
        Threads; they do not change the result.
    most_bytes : int, optional
        Memory that the pairs may take.

    Returns
    -------
    Candidates

    Raises
    ------
    ResourceError
        If the pairs would need more than `most_bytes`.

    Examples
    --------
    >>> points = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 5.0]])
    >>> one_block = np.array([0, 3])
    >>> found = pairs_within(points, points, 1.0, one_block, one_block)
    >>> found.indptr.tolist(), found.distance2.tolist()
    ([0, 2, 4, 5], [0.0, 1.0, 1.0, 0.0, 0.0])
    """
    on = kernels("outbid.tracker.gating", rows)
    xp = array_module(rows)
    origin, edge, size = _grid(rows, cols, radius, len(row_start))

    def sort(given: tuple[NDArray[np.float64], NDArray[np.int64]]) -> Cloud:
        order, key, point = on.sort_cells(*given, origin, 1 / edge, size)
        return Cloud(point, key, order, given[1])

    row_cloud, col_cloud = in_threads(sort, [(rows, row_start), (cols, col_start)], workers)
    reach = (row_cloud, col_cloud, size, offsets, float(radius) * radius, workers)
    indptr = xp.zeros(len(rows) + 1, dtype=np.int64)
    xp.cumsum(on.count_pairs(*reach), out=indptr[1:])
    pairs = int(indptr[-1])
    if most_bytes is not None and pairs * 12 > most_bytes:
        raise ResourceError(
            f"{pairs:,} pairs are within {radius:g}: {pairs * 12 / 1e9:.1f} GB, more than the "
            f"{most_bytes / 1e9:.1f} GB that may be used. Lower the largest distance."
        )
    return Candidates(row_cloud, col_cloud, indptr, *on.fill_pairs(*reach, indptr))


def _grid(
    rows: NDArray[np.float64], cols: NDArray[np.float64], radius: float, blocks: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Origin, cell edge and number of cells of a grid over both clouds, on the host."""
    on = kernels("outbid.tracker.gating", rows)
    corners = [on.bounds(cloud) for cloud in (rows, cols) if len(cloud)] or [np.zeros((2, 3))]
    low, high = np.min(corners, axis=(0, 1)), np.max(corners, axis=(0, 1))
    # Three axes and the block together fit a 64-bit key.
    most = 1 << ((62 - blocks.bit_length()) // 3)
    # A hair wider than the radius, so that rounding never puts a pair at the gate two cells apart.
    edge = np.maximum(min(radius, np.finfo(float).max / 4) * (1 + 1e-9), (high - low) / (most - 4))
    edge = np.where(edge > 0, edge, 1.0)
    size = ((high - low) / edge).astype(np.int64) + 3
    return low, edge, size
