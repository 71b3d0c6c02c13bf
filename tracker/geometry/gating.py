"""Gating: all pairs of points nearer than a radius, as sparse candidates.

Both point clouds are divided into cubic grid cells as wide as the radius and sorted by cell, so that all
neighbours of a point are found in nine ranges of consecutive points. Sorting by grid cell also puts
points that are close in space close in memory, which makes the assignment solvers faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module, kernels, on_device, to_host
from ..errors import InputError, ResourceError, SettingsError


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

    def without(self, pairs: NDArray[np.int64]) -> Candidates:
        """The candidates without some pairs (M, 2), of rows and columns as they were given; on the host."""
        xp = array_module(self.indices)
        row, column = (
            np.argsort(to_host(cloud.order))[side]
            for cloud, side in zip((self.rows, self.cols), pairs.T, strict=True)
        )
        of = xp.searchsorted(self.indptr, xp.arange(len(self.indices)), side="right") - 1
        count = len(self.cols)
        keep = ~xp.isin(of * count + self.indices, xp.asarray(row * count + column))
        before = xp.concatenate([xp.zeros(1, self.indptr.dtype), xp.cumsum(keep).astype(self.indptr.dtype)])
        return Candidates(self.rows, self.cols, before[self.indptr], self.indices[keep], self.distance2[keep])


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
    """All pairs of a row point and a column point within `radius` whose blocks differ by an allowed offset.

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
    InputError
        If a coordinate is no finite number.
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
    on = kernels("outbid.geometry.gating", rows)
    if not on_device(rows):
        _refuse_infinite(rows, cols)
    # A hair wider than the radius, so that rounding never puts a pair at the gate two cells apart.
    least_edge = min(radius, np.finfo(float).max / 4) * (1 + 1e-9)
    # Three axes and the block together fit a 64-bit key.
    most = 1 << ((62 - len(row_start).bit_length()) // 3)
    *clouds, cells = on.sort_by_cell(rows, cols, row_start, col_start, least_edge, most, workers)
    starts = (row_start, col_start)
    row_cloud, col_cloud = (
        Cloud(point, key, order, start) for (order, key, point), start in zip(clouds, starts, strict=True)
    )
    reach = (row_cloud, col_cloud, cells, offsets, float(radius) * radius, workers)
    indptr = on.count_pairs(*reach)
    pairs = int(indptr[-1])
    if pairs < 0:  # as a GPU reports, for the host waits for the number of pairs anyway
        _refuse_infinite(rows, cols)
    if most_bytes is not None and pairs * 12 > most_bytes:
        raise ResourceError(
            f"{pairs:,} pairs are within {radius:g}: {pairs * 12 / 1e9:.1f} GB, more than the "
            f"{most_bytes / 1e9:.1f} GB that may be used. Lower the largest distance."
        )
    return Candidates(row_cloud, col_cloud, indptr, *on.fill_pairs(*reach, indptr, pairs))


def pairs_in_box(
    rows: NDArray[np.float64],
    cols: NDArray[np.float64],
    radius: float,
    starts: tuple[NDArray[np.int64], NDArray[np.int64]],
    offsets: tuple[int, int],
    box: tuple[float, float, float],
    *,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Candidates:
    """As `pairs_within`, in a periodic box: what leaves on one side comes in on the other.

    Columns near a side are copied to beyond the opposite side, and pairs with a copy are pairs with the
    column itself.

    Parameters
    ----------
    rows, cols, radius, offsets, workers, most_bytes
        As for `pairs_within`; on the host.
    starts : (row_start, col_start)
    box : (float, float, float)
        Size along z, y, x; 0 along an axis that is not periodic.

    Raises
    ------
    SettingsError
        If the radius is half of the box or more, so that a pair could be near on two sides.

    Examples
    --------
    >>> points = np.array([[0, 0, 0.5], [0, 0, 9.5]])
    >>> one = np.array([0, 2]), np.array([0, 2])
    >>> pairs_in_box(points, points, 2.0, one, (0, 0), (0, 0, 10.0)).distance2.tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    axes = [axis for axis in range(3) if box[axis] > 0]
    least = min((box[axis] for axis in axes), default=np.inf)
    if 2 * radius >= least:
        raise SettingsError(
            f"max_distance is {radius:g}; in a periodic box of {least:g} it must be below half of that."
        )
    rows, cols = rows.copy(), cols.copy()
    for axis in axes:
        for points in (rows, cols):
            points[:, axis] %= box[axis]
    of, place = np.arange(len(cols)), cols
    for axis in axes:
        for near, shift in (
            (place[:, axis] <= radius, box[axis]), (place[:, axis] >= box[axis] - radius, -box[axis])
        ):  # fmt: skip
            moved = place[: len(near)][near]
            moved[:, axis] += shift
            of, place = np.concatenate([of, of[: len(near)][near]]), np.concatenate([place, moved])
    row_start, col_start = starts
    block = np.repeat(np.arange(len(col_start) - 1), np.diff(col_start))[of]
    order = np.argsort(block, kind="stable")
    start = np.searchsorted(block[order], np.arange(len(col_start)))
    found = pairs_within(
        rows, place[order], radius, row_start, start, offsets, workers=workers, most_bytes=most_bytes
    )
    given = order[found.cols.order]  # copies follow the columns themselves
    own = given < len(cols)
    number = np.empty(len(cols), dtype=found.indices.dtype)
    number[given[own]] = np.arange(len(cols))
    indices = number[of[given[found.indices]]]
    sort = np.lexsort((indices, np.repeat(np.arange(len(rows)), np.diff(found.indptr))))
    cloud = Cloud(
        found.cols.point[:, own], found.cols.key[own], given[own].astype(found.cols.order.dtype), col_start
    )
    return Candidates(found.rows, cloud, found.indptr, indices[sort], found.distance2[sort])


def _refuse_infinite(rows: NDArray, cols: NDArray) -> None:
    for points in (rows, cols):
        finite = array_module(points).isfinite(points)
        if not finite.all():
            row = int(finite.all(axis=1).argmin())
            raise InputError(
                f"Point {row} of {len(points)} has a coordinate that is not finite. Remove the point."
            )
