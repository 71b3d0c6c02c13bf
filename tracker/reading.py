"""Reading: detections as the arrays that the inference reads, and frames that were not recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ._arrays import to_device, to_host
from .detections import Detections
from .errors import InputError
from .model.levels import LARGEST, LEAST

_SAMPLE = 10_000
"""Guard: detections from which the extent is estimated."""
_ROUNDED = 1e-14
"""Guard: extent relative to the distance from the origin below which it is rounding."""
_STRAY = 1e4
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
        In the unit of position x spacing.
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
        return np.array([_slice_distance(np.sort(column)) for column in _sample(self.position).T])

    def without_strays(self) -> Reading:
        """The detections whose distance from the middle does not make all others look like one point."""
        away = np.zeros(len(self.position))
        for column in self.position.T:  # several times faster than rows of all axes
            np.maximum(away, np.abs(column - np.median(column)), out=away)
        middle = np.median(away)
        near = away <= _STRAY * middle
        if near.all() or not middle > 0:
            return self
        start = np.concatenate([[0], np.cumsum(near)])[self.frame_start]
        return replace(
            self, frame=self.frame[near], position=self.position[near], order=self.order[near],
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
        Where the detections are sorted.

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
    point = detections.position * np.asarray(spacing)
    holes = holes and len(detections) >= _MANY * len(_distinct(detections.frame))
    number, interval = _counted(detections.frame, _multiple(detections.frame) if holes else None)
    number, time = _without_holes(number) if holes else (number, None)
    start = np.searchsorted(number, np.arange(number[-1] + 2 if len(number) else 1)).astype(np.int64)
    bounds = np.array([[column.min(initial=np.inf), column.max(initial=-np.inf)] for column in point.T])
    wide = np.ptp(bounds, axis=1) > LEAST * _extent(point, bounds) if len(point) else np.zeros(3, np.bool_)
    axes = np.flatnonzero(wide) if wide.any() else np.array([0])
    order = _by_place(point, number, axes, bounds, device)
    position = np.ascontiguousarray(point[order][:, axes])
    return Reading(number, position, order, start, "".join("zyx"[axis] for axis in axes), interval, time)


def _sample(position: NDArray[np.float64]) -> NDArray[np.float64]:
    return position[:: max(1, len(position) // _SAMPLE)]


def _distinct(frame: NDArray[np.integer]) -> NDArray[np.integer]:
    """Distinct values of frames (N,), which do not decrease."""
    return frame[np.append(True, frame[1:] > frame[:-1])[: len(frame)]]


def _extent(point: NDArray[np.float64], bounds: NDArray[np.float64]) -> float:
    """Extent of four fifths of the points along the longest axis, which strays do not change."""
    some = np.quantile(_sample(point), (0.1, 0.9), axis=0)
    width, farthest = float(np.ptp(some, axis=0).max()), float(np.abs(bounds).max())
    still = width <= _ROUNDED * float(np.abs(some).max())
    if farthest > LARGEST**2 or not (still or 1 / LARGEST < width < LARGEST):
        raise InputError(
            f"Positions x spacing vary by {width:g} and are up to {farthest:g}, too large or small to reckon "
            "with: choose another unit of length, or drop what is astray."
        )
    return width


def _by_place(
    point: NDArray[np.float64], frame: NDArray[np.int64], axes: NDArray[np.int64],
    bounds: NDArray[np.float64], device: str,
) -> NDArray[np.int64]:  # fmt: skip
    """(N,) order of the points by frame, then by cell, then by z, y, x; axes are those that vary.

    bounds (3, 2) are the least and the largest coordinates.
    """
    if not len(point):
        return frame
    low, extent = bounds[:, 0], np.ptp(bounds, axis=1)
    edge = float(extent.max()) * (_IN_A_CELL / int(np.bincount(frame).max())) ** (1 / len(axes)) or 1.0
    cell = frame
    for values, least, wide in zip(point.T, low, extent, strict=True):
        cell = cell * (int(wide / edge) + 1) + ((values - least) / edge).astype(np.int64)
    # One key has the place within the cell along the first axis in its last bits; few of them are alike.
    first = (point[:, axes[0]] - low[axes[0]]) / edge
    parts = min(np.iinfo(np.int32).max, np.iinfo(np.int64).max // (int(cell.max()) + 1))
    key = cell * parts + ((first - np.floor(first)) * parts).astype(np.int64)
    order = to_host((to_device(key) if device == "gpu" else key).argsort())
    same = np.diff(key[order]) == 0
    alike = np.append(same, False) | np.append(False, same)
    rows = np.sort(order[alike])
    order[alike] = rows[np.lexsort((*point[rows].T[::-1], key[rows]))]
    return order


def _slice_distance(place: NDArray[np.float64]) -> float:
    """Distance of the slices at which sorted coordinates lie, up to rounding; 0 if there are no slices."""
    if not len(place):
        return 0.0
    width = place[len(place) * 9 // 10] - place[len(place) // 10]
    apart = np.diff(place)
    apart = apart[apart > LEAST * width]
    return float(np.median(apart)) if 0 < len(apart) < _FEW * len(place) else 0.0


def _counted(frame: NDArray[np.int32], interval: int | None) -> tuple[NDArray[np.int64], int]:
    """(N,) frames from 0, counted in intervals, and the interval: by default the median difference."""
    first = np.append(True, frame[1:] > frame[:-1])[: len(frame)]
    ahead, index = np.diff(frame[first].astype(np.int64)), np.cumsum(first) - 1
    if interval is None:
        interval = int(np.median(ahead)) if len(ahead) else 1
    # Uneven times may be less than half an interval apart: they are different frames all the same.
    counted = np.clip(np.rint(ahead / interval).astype(np.int64), 1, _FAR)
    return np.concatenate([[0], np.cumsum(counted)])[index].astype(np.int64), interval


def _multiple(frame: NDArray[np.int32]) -> int | None:
    """Lower quartile of frame differences, if all are multiples of it; otherwise None.

    Examples
    --------
    >>> _multiple(np.array([0, 20, 30, 50, 60, 90])), _multiple(np.array([0, 9, 21, 30, 38, 53]))
    (10, None)
    """
    ahead = np.diff(_distinct(frame).astype(np.int64))
    if not len(ahead):
        return None
    least = int(np.quantile(ahead, 0.25, method="lower"))
    times = np.rint(ahead / least)
    multiples = np.abs(ahead / least - times).mean() < _SELDOM
    return least if multiples and (times > HOLE + 1).mean() < _SELDOM else None


def _without_holes(number: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """(N,) frames from 0 without those not recorded, and the time of each; None if all were recorded.

    Examples
    --------
    >>> frame, time = _without_holes(np.repeat([0, 1, 2, 5, 6], 20))
    >>> frame[::20].tolist(), time.tolist()
    ([0, 1, 2, 3, 4], [0, 1, 2, 5, 6])
    """
    seen = _distinct(number)
    ahead = np.diff(seen)
    if not ((ahead > 1) & (ahead <= HOLE + 1)).any():
        return number, None
    index = np.searchsorted(seen, number)
    # Longer ones stay longer than any link spans; what is cut off comes last.
    long = np.where(ahead > _FAR + HOLE, _FAR, ahead)
    frame, once = np.append(0, np.cumsum(np.where(ahead <= HOLE + 1, 1, long))), ahead == 1
    every = np.arange(frame[-1] + 1)
    if (once[1:] & once[:-1]).sum() < _FEW * once.sum():
        return frame[index].astype(np.int64), every
    last = np.searchsorted(frame, every, side="right") - 1
    return frame[index].astype(np.int64), seen[last] + every - frame[last]
