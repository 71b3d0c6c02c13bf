"""Gating: all pairs of points nearer than a radius, as sparse candidates.

Both clouds are cut into cubic cells as wide as the radius and sorted by cell, so that the
neighbours of a point stand in nine runs of consecutive points. Sorting also puts near points near
each other in memory, which is what makes the solvers that follow fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._arrays import in_threads
from .errors import ResourceError

_MOST_CELLS = 1 << 20
"""Cells along an axis: three axes then fit a 64-bit key."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points in blocks (frames), sorted by cell inside each block.

    Parameters
    ----------
    point : (3, N) float64 array
        Axes z, y, x; sorted.
    key : (N,) int64 array
        Linear index of each point's cell, non-decreasing inside a block.
    order : (N,) int32 array
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
        In the same unit.
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
    from . import gating_cpu as kernels

    origin, edge, size = _grid(rows, cols, radius)
    row_cloud, col_cloud = in_threads(
        lambda given: _sorted_by_cell(*given, origin, edge, size),
        [(rows, row_start), (cols, col_start)],
        workers,
    )
    count = np.zeros(len(rows) + 1, dtype=np.int64)
    chunks = _chunks(len(rows), workers)
    reach = (
        row_cloud.point,
        row_cloud.key,
        row_cloud.block_start,
        col_cloud.point,
        col_cloud.key,
        col_cloud.block_start,
        size,
        np.array(offsets, dtype=np.int64),
        float(radius) ** 2,
    )
    list(in_threads(lambda chunk: kernels.count_pairs(*chunk, *reach, count[1:]), chunks, workers))
    indptr = np.cumsum(count)
    pairs = int(indptr[-1])
    if most_bytes is not None and pairs * 12 > most_bytes:
        raise ResourceError(
            f"{pairs:,} pairs are within {radius:g}: {pairs * 12 / 1e9:.1f} GB, more than the "
            f"{most_bytes / 1e9:.1f} GB that may be used. Lower the largest distance."
        )
    indices = np.empty(pairs, dtype=np.int32)
    distance2 = np.empty(pairs, dtype=np.float64)
    list(
        in_threads(
            lambda chunk: kernels.fill_pairs(*chunk, *reach, indptr, indices, distance2), chunks, workers
        )
    )
    return Candidates(row_cloud, col_cloud, indptr, indices, distance2)


def _grid(
    rows: NDArray[np.float64], cols: NDArray[np.float64], radius: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Origin, cell edge and number of cells of a grid over both clouds."""
    corners = [f(cloud, axis=0) for cloud in (rows, cols) if len(cloud) for f in (np.min, np.max)]
    if not corners:
        corners = [np.zeros(3)]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    # A hair wider than the radius, so that rounding never puts a pair at the gate two cells apart.
    edge = np.maximum(min(radius, np.finfo(float).max / 4) * (1 + 1e-9), (high - low) / (_MOST_CELLS - 4))
    edge = np.where(edge > 0, edge, 1.0)
    size = ((high - low) / edge).astype(np.int64) + 3
    return low, edge, size


def _sorted_by_cell(
    point: NDArray[np.float64],
    block_start: NDArray[np.int64],
    origin: NDArray[np.float64],
    edge: NDArray[np.float64],
    size: NDArray[np.int64],
) -> Cloud:
    from . import gating_cpu as kernels

    count = len(point)
    order, key = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int64)
    sorted_point = np.empty((3, count), dtype=np.float64)
    kernels.sort_cells(point, block_start, origin, 1 / edge, size, order, key, sorted_point)
    return Cloud(sorted_point, key, order, block_start)


def _chunks(count: int, workers: int) -> list[tuple[int, int]]:
    """Cut 0..count into one run a worker."""
    bounds = np.linspace(0, count, max(1, workers) + 1).astype(int).tolist()
    return list(zip(bounds[:-1], bounds[1:], strict=True))
