"""Reading: detections as the arrays that the inference reads, and frames that were not recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import array_module, to_device, to_host
from ..compute.tolerances import LARGEST, LEAST
from ..errors import InputError
from ..particles.detections import Detections

_SAMPLE = 10_000
"""Guard: detections from which the extent is estimated."""
_ROUNDED = 1e-14
"""Guard: extent relative to the distance from the origin below which it is rounding."""
_OUTLIER = 1e4
"""Guard: distance from the middle, in median distances, beyond which a detection gets no link."""
HOLE, _MANY = 10, 10
"""Priors: most consecutive empty frames that count as not recorded; and least mean number of detections in
the other frames, so that not all can be missed."""
_SELDOM = 0.05
"""Error level: mean deviation of frame numbers from multiples of an interval; share of frames after longer
holes."""
_FEW = 0.1
"""Prior: share of distinct coordinates below which an axis consists of slices; and of consecutive frames one
interval apart, below which frames count as uneven."""
_FAR = 1000
"""Guard: number of frames that no link spans, to which longer empty stretches are shortened."""
_IN_A_CELL = 4
"""Guard: mean detections of a cell, the order of which keeps neighbours near each other in memory."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Detections by frame, sorted by position within frames, without flat axes.

    Parameters
    ----------
    frame : (N,) int64 array
        Non-decreasing; counted in intervals.
    position : (N, A) float64 array
        In the unit of position x spacing; on the device where the detections were sorted, as is the order.
    order : (N,) int64 array
        Row of each detection in the original order.
    frame_start : (F + 1,) int64 array
        As in `Detections`.
    axes : str
        Names of the A axes, among z, y, x.
    interval : int
        Difference between consecutive frame numbers: above 1 if the numbers are times.
    time : (F,) int64 array, optional
        Time of each frame in intervals, with any origin, if some frames were not recorded. Default:
        consecutive.
    """

    frame: NDArray[np.int64]
    position: NDArray[np.float64]
    order: NDArray[np.int64]
    frame_start: NDArray[np.int64]
    axes: str
    interval: int = 1
    time: NDArray[np.int64] | None = None

    @cached_property
    def slices(self) -> NDArray[np.float64]:
        """(A,) distance of slices along axes with few distinct coordinates; 0 for other axes."""
        some = to_host(_sample(self.position))
        return np.array([_slice_distance(np.sort(column)) for column in some.T])

    def without_outliers(self) -> Reading:
        """The detections whose distance from the middle does not make all others look like one point."""
        away = np.zeros_like(self.position, shape=len(self.position))
        for column in self.position.T:  # several times faster than rows of all axes
            np.maximum(away, np.abs(column - np.median(column)), out=away)
        middle = float(np.median(away)) if len(away) else 0.0
        near = away <= _OUTLIER * middle
        if near.all() or not middle > 0:
            return self
        here = to_host(near)
        start = np.concatenate([[0], np.cumsum(here)])[self.frame_start]
        return replace(
            self, frame=self.frame[here], position=self.position[near], order=self.order[near],
            frame_start=start,
        )  # fmt: skip


def read_movie(
    detections: Detections,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    *,
    holes: bool = False,
    device: str = "cpu",
) -> Reading:
    """Read detections in the unit of position x spacing.

    Results do not depend on the order of the detections of a frame, because they are sorted by position.

    Parameters
    ----------
    detections : Detections
    spacing : (float, float, float)
        Size of a voxel along z, y, x.
    holes : bool
        Whether empty frames count as not recorded, if the other frames have so many detections that not all
        can be missed.
    device : {"cpu", "gpu"}
        Where the detections are sorted, and stay.

    Raises
    ------
    InputError
        If positions are too large or too small for the computation.

    Examples
    --------
    >>> found = read_movie(Detections.from_table([0, 10, 10], [[0, 1, 1], [0, 3, 2], [0, 2, 5]]))
    >>> found.axes, found.interval, found.order.tolist(), found.position.tolist()
    ('yx', 10, [0, 2, 1], [[1.0, 1.0], [2.0, 5.0], [3.0, 2.0]])
    """
    place = to_device if device == "gpu" else np.asarray
    point = place(detections.position) * place(np.asarray(spacing))
    given = detections.frame
    first = np.flatnonzero(np.append(True, given[1:] != given[:-1])[: len(given)])
    seen, many = given[first].astype(np.int64), np.diff(first, append=len(given))
    holes = holes and len(given) >= _MANY * len(seen)
    number, interval = _counted(seen, _multiple(seen) if holes else None)
    number, time = _without_holes(number) if holes else (number, None)
    frames = np.arange(number[-1] + 2 if len(number) else 1)
    start = np.concatenate([[0], np.cumsum(many)])[np.searchsorted(number, frames)].astype(np.int64)
    frame = np.repeat(number, many)
    if not len(point):
        return Reading(
            frame=frame, position=point[:, :1], order=frame, frame_start=start, axes="z", interval=interval,
            time=time,
        )  # fmt: skip
    bounds = np.array([[float(column.min()), float(column.max())] for column in point.T])
    wide = np.ptp(bounds, axis=1) > LEAST * _extent(to_host(_sample(point)), bounds)
    axes = np.flatnonzero(wide) if wide.any() else np.array([0])
    order = _by_place(point, place(frame), axes, bounds, int(many.max()))
    position = array_module(point).ascontiguousarray(point[order][:, place(axes)])
    return Reading(
        frame=frame, position=position, order=order, frame_start=start,
        axes="".join("zyx"[axis] for axis in axes), interval=interval, time=time,
    )  # fmt: skip


def _sample(position: NDArray[np.float64]) -> NDArray[np.float64]:
    return position[:: max(1, len(position) // _SAMPLE)]


def _extent(sample: NDArray[np.float64], bounds: NDArray[np.float64]) -> float:
    """Extent of four fifths of the points along the longest axis, which outliers do not change."""
    some = np.quantile(sample, (0.1, 0.9), axis=0)
    width, farthest = float(np.ptp(some, axis=0).max()), float(np.abs(bounds).max())
    still = width <= _ROUNDED * float(np.abs(some).max())
    if farthest > LARGEST**2 or not (still or 1 / LARGEST < width < LARGEST):
        raise InputError(
            f"Positions x spacing vary by {width:g} and are up to {farthest:g}, too large or small to "
            "compute with: choose another unit of length, or drop outliers."
        )
    return width


def _by_place(
    point: NDArray[np.float64], frame: NDArray[np.int64], axes: NDArray[np.int64],
    bounds: NDArray[np.float64], most: int,
) -> NDArray[np.int64]:  # fmt: skip
    """(N,) order of the points by frame, then by cell, then by z, y, x; axes are those that vary.

    bounds (3, 2) are the least and the largest coordinates; a frame holds `most` points at most.
    """
    low, extent = bounds[:, 0].tolist(), np.ptp(bounds, axis=1)
    edge = float(extent.max()) * (_IN_A_CELL / most) ** (1 / len(axes)) or 1.0
    cell = frame
    for values, least, wide in zip(point.T, low, extent, strict=True):
        cell = cell * (int(wide / edge) + 1) + ((values - least) / edge).astype(np.int64)
    # One key has the place within the cell along the first axis in its last bits; few of them are alike.
    first = (point[:, axes[0]] - low[axes[0]]) / edge
    parts = min(np.iinfo(np.int32).max, np.iinfo(np.int64).max // (int(cell.max()) + 1))
    key = cell * parts + ((first - np.floor(first)) * parts).astype(np.int64)
    order = key.argsort()
    ordered, xp = key[order], array_module(key)
    same, alike = ordered[1:] == ordered[:-1], xp.zeros(len(key), np.bool_)
    alike[1:] = same
    alike[:-1] |= same
    where = np.flatnonzero(alike)
    rows = np.sort(order[where])
    places, keys = to_host(point[rows]), to_host(key[rows])
    order[where] = rows[xp.asarray(np.lexsort((*places.T[::-1], keys)))]
    return order


def _slice_distance(place: NDArray[np.float64]) -> float:
    """Distance of the slices at which sorted coordinates lie, up to rounding; 0 if there are no slices."""
    if not len(place):
        return 0.0
    width = place[len(place) * 9 // 10] - place[len(place) // 10]
    apart = np.diff(place)
    apart = apart[apart > LEAST * width]
    return float(np.median(apart)) if 0 < len(apart) < _FEW * len(place) else 0.0


def _counted(seen: NDArray[np.int64], interval: int | None) -> tuple[NDArray[np.int64], int]:
    """(F,) frames from 0, counted in intervals, and the interval: by default the median difference.

    Seen (F,) are the numbers of frames with detections, increasing; as in the functions below.
    """
    ahead = np.diff(seen)
    if interval is None:
        interval = int(np.median(ahead)) if len(ahead) else 1
    # Uneven times may be less than half an interval apart: they are different frames all the same.
    counted = np.clip(np.rint(ahead / interval).astype(np.int64), 1, _FAR)
    return np.append(0, np.cumsum(counted))[: len(seen)], interval


def _multiple(seen: NDArray[np.int64]) -> int | None:
    """Lower quartile of frame differences, if all are multiples of it; otherwise None.

    Examples
    --------
    >>> _multiple(np.array([0, 20, 30, 50, 60, 90])), _multiple(np.array([0, 9, 21, 30, 38, 53]))
    (10, None)
    """
    ahead = np.diff(seen)
    if not len(ahead):
        return None
    least = int(np.quantile(ahead, 0.25, method="lower"))
    times = np.rint(ahead / least)
    multiples = np.abs(ahead / least - times).mean() < _SELDOM
    return least if multiples and (times > HOLE + 1).mean() < _SELDOM else None


def _without_holes(seen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """(F,) frames from 0 without those not recorded, and the time of each; None if all were recorded.

    Examples
    --------
    >>> frame, time = _without_holes(np.array([0, 1, 2, 5, 6]))
    >>> frame.tolist(), time.tolist()
    ([0, 1, 2, 3, 4], [0, 1, 2, 5, 6])
    """
    ahead = np.diff(seen)
    if not ((ahead > 1) & (ahead <= HOLE + 1)).any():
        return seen, None
    # Longer ones stay longer than any link spans; what is cut off comes last.
    long = np.where(ahead > _FAR + HOLE, _FAR, ahead)
    frame, once = np.append(0, np.cumsum(np.where(ahead <= HOLE + 1, 1, long))), ahead == 1
    every = np.arange(frame[-1] + 1)
    if (once[1:] & once[:-1]).sum() < _FEW * once.sum():
        return frame, every
    last = np.searchsorted(frame, every, side="right") - 1
    return frame, seen[last] + every - frame[last]
