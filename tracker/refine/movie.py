"""Movies in the form that kernels read, and the part of a movie that calibration uses first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..detections import Detections
from ..errors import InputError
from ..gating import pairs_within
from ..motion import Motion

_PART = 10_000
"""Number of detections that suffice to estimate motion."""
_LEAST_FRAMES = 7
"""Least number of frames for this."""
_SOME, _FLAT = 10_000, 1e-5
"""Number of detections from which their spacing is estimated; relative extent below which an axis is flat."""
_LARGEST, _ROUNDED = 1e18, 1e-14
"""Largest spacing of detections, and inverse of the least one, because variances have single precision; and
spacing relative to the distance from the origin below which it is rounding."""
_SLICES, _ROUGH = 0.1, 1e-6
"""Share of distinct coordinates below which an axis consists of slices; and least distance of slices relative
to the spacing, because all coordinates are rounded."""
HOLE, _MANY = 10, 10
"""Largest number of consecutive empty frames that are taken as not recorded; and least mean number of
detections in the other frames."""
_AMISS, _SELDOM = 0.05, 0.05
"""Largest mean deviation of frame numbers from multiples of an interval; and share of frames after longer
holes."""
_OFTEN, _RECORDED = 0.1, 0.25
"""Least share of consecutive frames one interval apart; with fewer, a step scale describes uneven frames
better. And the least share in the part of a movie used for learning."""
_FAR, _SPAN = 1000, 50
"""Number of frames that no link can span, to which longer empty stretches are shortened; and the same if
frames were not recorded."""
_IN_A_CELL, _CELLS = 1, 8
"""Number of detections per cell in which the flows of two frames are compared, and largest number of cells
per axis."""


@dataclass(frozen=True, eq=False)
class Movie:
    """Detections in the form that kernels read: sorted by space within frames, without flat axes.

    Parameters
    ----------
    frame : (N,) int64 array
        Non-decreasing; counted in intervals.
    position : (N, axes) float64 array
    order : (N,) int64 array
        Row of each detection in the original order.
    frame_start : (F + 1,) int64 array
        As in `Detections`.
    names : str
        Names of the axes, among z, y, x.
    interval : int
        Difference between consecutive frame numbers: above 1 if the numbers are times.
    pace : (F,) float64 array, optional
        Step scale from each frame to the next; its mean square over links is 1. Default: no variation.
    time : (F,) int64 array, optional
        Time of each frame in intervals, with any origin, if some frames were not recorded. Default:
        consecutive.
    """

    frame: NDArray[np.int64]
    position: NDArray[np.float64]
    order: NDArray[np.int64]
    frame_start: NDArray[np.int64]
    names: str
    interval: int = 1
    pace: NDArray[np.float64] | None = None
    time: NDArray[np.int64] | None = None

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """(2, axes) least and largest coordinate along each axis; 0 if there are no detections."""
        if not len(self.frame):
            return np.zeros((2, self.axes))
        return np.array([[limit(column) for column in self.position.T] for limit in (np.min, np.max)])

    @cached_property
    def ahead(self) -> NDArray[np.int64]:
        """(F,) number of frames from each one to the next non-empty one; 1 if there is none."""
        held = np.nonzero(np.diff(self.frame_start))[0]
        ahead = np.ones(len(self.frame_start) - 1, dtype=np.int64)
        ahead[held[:-1]] = np.diff(held)
        return ahead

    @cached_property
    def far(self) -> float:
        """Typical distance of detections from the origin, which determines their rounding; or 1."""
        some = self.position[:: max(1, len(self.position) // _SOME)]
        return float(np.median(np.abs(some).max(axis=1))) or 1.0 if len(some) else 1.0

    @cached_property
    def slices(self) -> NDArray[np.float64]:
        """(axes,) distance of slices along axes with few distinct coordinates; 0 for other axes."""
        some = self.position[:: max(1, len(self.position) // _SOME)]
        return np.array([_apart(np.sort(column)) for column in some.T])

    @property
    def axes(self) -> int:
        """Number of axes that are not flat."""
        return self.position.shape[1]

    @property
    def paces(self) -> NDArray[np.float64]:
        """(F,) step scale of each frame, or (1,) a common one."""
        return np.ones(1) if self.pace is None else self.pace

    @cached_property
    def when(self) -> NDArray[np.int64]:
        """(N,) time of each detection, in intervals."""
        return self.frame if self.time is None else self.time[self.frame]

    def lasting(self, frames: int) -> NDArray[np.int64]:
        """(F,) number of intervals from each frame to a later one, or (1,) if it is the same for all."""
        if self.time is None:
            return np.array([frames])
        return np.append(self.time, self.time[-1] + np.arange(1, frames + 1))[frames:] - self.time

    def steps(self, follower: NDArray[np.int64]) -> NDArray[np.float64]:
        """(N, axes) steps per frame to the followers (N,); NaN without one in the next non-empty frame."""
        ahead = self.ahead[self.frame]
        steps = self.position[follower] - self.position
        steps[(follower < 0) | (self.frame[follower] != self.frame + ahead)] = np.nan
        return steps if (ahead == 1).all() else steps / ahead[:, None]

    def transitions(
        self, motion: Motion, longest: int, shift: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """(F, longest + 1, axes, 7) `Motion.transition` from each frame, or (1, ...) if all are the same.

        The last two values give the displacement by the flow, as a factor of `shift` and an offset: the mean
        flow of later frames is known, and the deviation of a particle from it is assumed constant.

        Parameters
        ----------
        motion : Motion
        longest : int
            Largest number of frames between two detections; at least 1.
        shift : (N, axes) float64 array, optional
            Predicted displacement of each detection to the next frame. Default: none.

        Examples
        --------
        >>> movie = movie_of(Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 4]]), (1, 1, 1))
        >>> uneven, motion = replace(movie, pace=np.sqrt([0.2, 1.8, 1])), Motion.static((1.0,))
        >>> uneven.transitions(motion, 2)[:2, 1:, 0, 2].round(2).tolist()
        [[0.2, 2.0], [1.8, 2.8]]
        >>> holed = replace(movie, time=np.array([0, 1, 5]))
        >>> holed.transitions(motion, 2)[:2, 1:, 0, 2].tolist()
        [[1.0, 5.0], [4.0, 5.0]]
        >>> table, shift = movie.transitions(motion, 2, np.array([[1.0], [3.0], [0.0]])), 1.0
        >>> float(table[0, 2, 0, 5] * shift + table[0, 2, 0, 6])
        4.0
        """
        lasting = np.stack([self.lasting(frames) for frames in range(longest + 1)], axis=1)
        each, place = np.unique(lasting, return_inverse=True)
        table = np.stack([motion.transition(float(time)) for time in each])[place.reshape(lasting.shape)]
        times = lasting / lasting[:, 1:2]
        flown = np.zeros((1, longest + 1, self.axes)) if shift is None else self._flown(shift, times)
        table = np.concatenate(
            [
                np.broadcast_to(part, (max(len(table), len(flown)), *table.shape[1:3], part.shape[-1]))
                for part in (table, times[:, :, None, None], flown[..., None])
            ],
            axis=-1,
        )
        table[:, 0] = 0.0
        if self.pace is None:
            return table
        pace = np.stack([np.ones(len(self.pace)), *map(self._pace_over, range(1, longest + 1))], axis=1)
        # Positions go so far; velocities do not change.
        same = np.ones_like(pace)
        scale = np.stack([pace, same, pace**2, pace, same, same, same], axis=-1)
        return np.asarray(table * scale[:, :, None, :])

    def _flown(self, shift: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
        """(F, longest + 1, axes) mean flow over several frames minus the extrapolated flow of the first.

        shift as in `transitions`; times (F or 1, longest + 1). Or (1, ...) zeros, if nothing flows.
        """
        longest = times.shape[1] - 1
        if not shift.any():
            return np.zeros((1, longest + 1, self.axes))
        rate = self._rates(shift)
        step = np.concatenate([rate * self.lasting(1)[:, None], np.zeros((longest, self.axes))])
        way = np.cumsum(np.concatenate([step[:1] * 0, step]), axis=0)
        frames = np.arange(len(rate))[:, None] + np.arange(longest + 1)
        return np.asarray(way[frames] - way[: len(rate), None] - times[:, :, None] * step[: len(rate), None])

    def _rates(self, shift: NDArray[np.float64]) -> NDArray[np.float64]:
        """(F, axes) mean flow of each frame per interval, relative to that of the first frame.

        The displacement fields (flows) of consecutive frames are compared only at positions that both
        frames contain. A frame that shares no position with the frame before gets the mean displacement
        of the frame before.
        """
        from .movie_cpu import farther

        count, (low, high) = len(self.frame_start) - 1, self.bounds
        shown = len(self.frame) / max(int((np.diff(self.frame_start) > 0).sum()), 1)
        cells = int(np.clip((shown / _IN_A_CELL) ** (1 / self.axes), 1, _CELLS))
        scale, rate = cells / np.where(high > low, high - low, 1.0), np.zeros((count, self.axes))
        lasting = np.broadcast_to(self.lasting(1), count)
        farther(self.position, self.frame_start, shift, lasting, low, scale, cells, rate)
        return rate

    def _pace_over(self, frames: int) -> NDArray[np.float64]:
        """(F,) root mean square step scale of the time from each frame to a later one."""
        square = np.append(self.paces**2 * self.lasting(1), np.full(frames - 1, self.paces[-1] ** 2))
        return np.sqrt(np.convolve(square, np.ones(frames), mode="valid") / self.lasting(frames))

    def reaches(self, motion: Motion) -> NDArray[np.float64]:
        """(F,) or (1,) step to the next frame relative to the average step per interval."""
        motion = motion.floored()
        lasting, place = np.unique(self.lasting(1), return_inverse=True)
        once = motion.step_variance(1)
        farther = [(motion.step_variance(float(time)) / once).mean() for time in lasting]
        return np.asarray(self.paces * np.sqrt(farther)[place])

    def moved(self, way: NDArray[np.float64]) -> Movie:
        """The movie with each frame shifted by `way` (F, axes)."""
        return replace(self, position=self.position + np.repeat(way, np.diff(self.frame_start), axis=0))

    def paced(self, pace: NDArray[np.float64] | None) -> Movie:
        """The movie with this step scale (F,), or with a constant one."""
        return self if pace is self.pace else replace(self, pace=pace)

    def backward(self) -> Movie:
        """The time-reversed movie: row i becomes row N - 1 - i."""
        rows = slice(None, None, -1)
        return replace(
            self, frame=(self.frame[-1:] - self.frame)[rows].copy(), position=self.position[rows].copy(),
            order=self.order[rows].copy(), frame_start=self.frame_start[-1] - self.frame_start[rows],
            pace=None if self.pace is None else np.roll(self.pace[rows], -1),
            time=None if self.time is None else self.time[-1] - self.time[rows],
        )  # fmt: skip

    def middle(self) -> tuple[int, int]:
        """Consecutive frames, first to last - 1, that suffice to learn the model; all of a short movie.

        All frames are also used if few of the middle ones were recorded: persistence is estimated from frames
        one interval apart.
        """
        start = self.frame_start
        frames = len(start) - 1
        if len(self.frame) < _PART:
            return 0, frames
        middle = int(np.searchsorted(start, len(self.frame) // 2, side="right")) - 1
        first, last = middle, middle + 1
        while last - first < frames and (start[last] - start[first] < _PART or last - first < _LEAST_FRAMES):
            first, last = max(first - 1, 0), min(last + 1, frames)
        few = self.time is not None and (np.diff(self.time[first:last]) == 1).mean() < _RECORDED
        return (0, frames) if few or start[last] - start[first] > len(self.frame) / 2 else (first, last)

    def part(self, first: int, last: int) -> Movie:
        """The frames first to last - 1, or the movie itself if these are all."""
        start = self.frame_start
        if last - first == len(start) - 1:
            return self
        rows = slice(start[first], start[last])
        return Movie(
            self.frame[rows] - first, self.position[rows], self.order[rows],
            start[first : last + 1] - start[first], self.names, self.interval,
            None if self.pace is None else self.pace[first:last],
            None if self.time is None else self.time[first:last],
        )  # fmt: skip


def _apart(place: NDArray[np.float64]) -> float:
    """Distance of the slices at which sorted coordinates lie, up to rounding; 0 if there are no slices."""
    if not len(place):
        return 0.0
    usual = place[len(place) * 9 // 10] - place[len(place) // 10]
    apart = np.diff(place)
    apart = apart[apart > _ROUGH * usual]
    return float(np.median(apart)) if 0 < len(apart) < _SLICES * len(place) else 0.0


def movie_of(
    detections: Detections,
    spacing: tuple[float, float, float],
    *,
    interval: int | None = None,
    holes: bool = False,
) -> Movie:
    """The movie of detections, sorted by position in each frame, without axes along which nothing varies.

    Parameters
    ----------
    detections : Detections
    spacing : (float, float, float)
    interval : int, optional
        Difference between consecutive frame numbers. Default: the median difference. If frames may be
        missing: the lower quartile, if all differences are multiples of it and few are large.
    holes : bool
        Whether empty frames count as not recorded, if the other frames have so many detections that not all
        can be missed.

    Raises
    ------
    InputError
        If positions are too large or too small for the computation.
    """
    from .movie_cpu import sort_in_cells

    point = detections.position * np.asarray(spacing)
    holes = holes and len(detections) >= _MANY * len(np.unique(detections.frame))
    interval = interval or (_multiple(detections.frame) if holes else None)
    number, interval = _numbered(detections.frame, interval)
    number, time = _without_holes(number) if holes else (number, None)
    start = np.searchsorted(number, np.arange(number[-1] + 2 if len(number) else 1)).astype(np.int64)
    extent = np.array([np.ptp(column) for column in point.T]) if len(point) else np.zeros(3)
    some = np.quantile(point[:: max(1, len(point) // _SOME)], (0.1, 0.9), axis=0) if len(point) else extent
    usual, farthest = float(np.ptp(some, axis=0).max()), float(np.abs(point).max(initial=0.0))
    still = usual <= _ROUNDED * float(np.abs(some).max())
    if farthest > _LARGEST**2 or not (still or 1 / _LARGEST < usual < _LARGEST):
        raise InputError(
            f"Positions x spacing vary by {usual:g} and are up to {farthest:g}, too large or small to reckon "
            "with: choose another unit of length, or drop what is astray."
        )
    # What is rounded varies a little, and what strays makes all others look flat.
    wide = extent > _FLAT * usual
    # Cells that hold a few points each; what is near then stands together, which is all that matters.
    most = max(np.diff(start).max(initial=1), 1)
    cell = float(extent.max()) * (4 / most) ** (1 / max(wide.sum(), 1))
    cloud = pairs_within(point, point[:0], cell, start, np.zeros_like(start)).rows
    # Nothing that is learned may depend on the order in which a frame's detections were given.
    place = np.empty(len(point), dtype=np.int64)
    sort_in_cells(cloud.point, cloud.key, cloud.block_start, place)
    order = cloud.order[place].astype(np.int64)
    axes = np.nonzero(wide)[0] if wide.any() else np.array([0])
    position = point[order] if wide.all() else np.ascontiguousarray(point[order][:, axes])
    return Movie(number, position, order, start, "".join("zyx"[axis] for axis in axes), interval, time=time)


def _numbered(frame: NDArray[np.int32], interval: int | None) -> tuple[NDArray[np.int64], int]:
    """(N,) frames from 0, counted in intervals, and the length of an interval."""
    first = np.append(True, frame[1:] > frame[:-1])[: len(frame)]
    ahead, index = np.diff(frame[first].astype(np.int64)), np.cumsum(first) - 1
    if interval is None:
        interval = int(np.median(ahead)) if len(ahead) else 1
    counted = np.rint(ahead / interval).astype(np.int64)
    # Times may come so unevenly that some are less than half an interval apart: a frame is a frame.
    counted = np.clip(counted, 1, _FAR)
    return np.concatenate([[0], np.cumsum(counted)])[index].astype(np.int64), interval


def _multiple(frame: NDArray[np.int32]) -> int | None:
    """Lower quartile of frame differences, if all are multiples of it; otherwise None.

    Examples
    --------
    >>> _multiple(np.array([0, 20, 30, 50, 60, 90])), _multiple(np.array([0, 9, 21, 30, 38, 53]))
    (10, None)
    """
    ahead = np.diff(np.unique(frame).astype(np.int64))
    if not len(ahead):
        return None
    least = int(np.quantile(ahead, 0.25, method="lower"))
    times = np.rint(ahead / least)
    multiples = np.abs(ahead / least - times).mean() < _AMISS
    return least if multiples and (times > HOLE + 1).mean() < _SELDOM else None


def _without_holes(number: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """(N,) frames from 0 without those not recorded, and the time of each; None if all were recorded.

    Examples
    --------
    >>> frame, time = _without_holes(np.repeat([0, 1, 2, 5, 6], 20))
    >>> frame[::20].tolist(), time.tolist()
    ([0, 1, 2, 3, 4], [0, 1, 2, 5, 6])
    """
    seen, index = np.unique(number, return_inverse=True)
    ahead = np.diff(seen)
    if not ((ahead > 1) & (ahead <= HOLE + 1)).any():
        return number, None
    # Longer ones stay longer than any link spans; what is cut off comes last.
    long = np.where(ahead > _SPAN + HOLE, _SPAN, ahead)
    frame, once = np.append(0, np.cumsum(np.where(ahead <= HOLE + 1, 1, long))), ahead == 1
    every = np.arange(frame[-1] + 1)
    if (once[1:] & once[:-1]).sum() < _OFTEN * once.sum():
        return frame[index].astype(np.int64), every
    last = np.searchsorted(frame, every, side="right") - 1
    return frame[index].astype(np.int64), seen[last] + every - frame[last]
