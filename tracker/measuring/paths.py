"""Paths: lengths, speeds, shape and angles of single tracks, and their steps in pieces without a gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .likelihood import LONGEST, Floats, Pieces

Rows = NDArray[np.int64]


def steps_of(owner: Rows) -> Rows:
    """Places in the rows of tracks from which a step leads to the next row of the same track."""
    return np.flatnonzero(owner[1:] == owner[:-1])


def usual_lag(frame: Rows, owner: Rows) -> int:
    """The difference of frame numbers between detections that follow one another most often.

    Examples
    --------
    >>> usual_lag(np.array([0, 2, 4, 8, 0]), np.array([0, 0, 0, 0, 1]))
    2
    """
    begin = steps_of(owner)
    lags = frame[begin + 1] - frame[begin]
    return int(np.bincount(lags).argmax()) if len(lags) else 1


def pieces_of(position: Floats, frame: Rows, owner: Rows, lag: int, count: int) -> Pieces:
    """The steps over one interval, in pieces without a gap.

    Parameters
    ----------
    position : (M, A) float64 array
    frame : (M,) int64 array
    owner : (M,) int64 array
        Track of each row, ascending, by frame in each track.
    lag : int
        Frame numbers of an interval.
    count : int
        Number of tracks.
    """
    begin = steps_of(owner)
    begin = begin[frame[begin + 1] - frame[begin] == lag]
    new = np.concatenate([[True], np.diff(begin) != 1])[: len(begin)]
    number = np.arange(len(begin))
    within = number - np.maximum.accumulate(np.where(new, number, 0))
    piece = np.cumsum(within % LONGEST == 0) - 1
    pieces = int(piece[-1]) + 1 if len(piece) else 0
    length = np.bincount(piece, minlength=pieces)
    step = np.zeros((int(length.max(initial=1)), pieces, position.shape[1]))
    step[within % LONGEST, piece] = position[begin + 1] - position[begin]
    return Pieces(step, length, owner[begin][within % LONGEST == 0], count)


def turns(position: Floats, frame: Rows, owner: Rows, lag: int) -> tuple[Floats, Rows]:
    """Angles in degrees between one step and the next, both over one interval, and the track of each.

    Examples
    --------
    >>> corner = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> turns(corner, np.arange(3), np.zeros(3, np.int64), 1)[0].round(6).tolist()
    [90.0]
    """
    begin = steps_of(owner)
    step, whole = position[begin + 1] - position[begin], frame[begin + 1] - frame[begin] == lag
    first = np.flatnonzero((np.diff(begin) == 1) & whole[1:] & whole[:-1])
    cosine = (step[first] * step[first + 1]).sum(axis=1)
    norm = np.linalg.norm(step[first], axis=1) * np.linalg.norm(step[first + 1], axis=1)
    turned = norm > 0
    angle = np.degrees(np.arccos(np.clip(cosine[turned] / norm[turned], -1, 1)))
    return angle, owner[begin[first[turned]]]


def paths(position: Floats, frame: Rows, owner: Rows, lag: int, time: Floats) -> dict[str, Floats]:
    """Lengths, speeds, shape and angles of each track; NaN where a track is too short.

    Parameters
    ----------
    position, frame, owner, lag
        As for `pieces_of`; every track has a row.
    time : (M,) float64 array
        Of each row.
    """
    count = int(owner[-1]) + 1 if len(owner) else 0
    size = np.bincount(owner, minlength=count).astype(np.float64)
    last = np.cumsum(size).astype(np.int64) - 1
    first = last - size.astype(np.int64) + 1
    begin = steps_of(owner)
    step, ahead = position[begin + 1] - position[begin], frame[begin + 1] - frame[begin]
    length, of = np.linalg.norm(step, axis=1), owner[begin]
    whole = ahead == lag
    angle, turning = turns(position, frame, owner, lag)
    centre = np.column_stack([_mean(position[:, axis], owner, count) for axis in range(position.shape[1])])
    displacement = np.linalg.norm(position[last] - position[first], axis=1)
    path, duration = np.bincount(of, length, count), time[last] - time[first]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "detections": size,
            "start": time[first],
            "duration": duration,
            "path": path,
            "displacement": displacement,
            "straightness": displacement / path,
            "speed_mean": path / duration,
            "speed_median": _medians(length / (time[begin + 1] - time[begin]), of, count),
            "msd_1": _mean(np.square(length[whole]), of[whole], count),
            "radius_of_gyration": np.sqrt(
                _mean(np.square(position - centre[owner]).sum(axis=1), owner, count)
            ),
            "turning_angle": _mean(angle, turning, count),
        }


def most_frequent(values: NDArray[np.int64], owner: Rows, count: int) -> tuple[Rows, Rows]:
    """The most frequent value (a number from 0) among the rows of each track, and how many rows have it.

    Of values that are as frequent, the one that comes first in the track counts.

    Examples
    --------
    >>> most_frequent(np.array([2, 0, 0, 1, 3]), np.array([0, 0, 0, 1, 1]), 2)
    (array([0, 1]), array([2, 1]))
    """
    width = int(values.max(initial=0)) + 1
    pair, first, rows = np.unique(owner * width + values, return_index=True, return_counts=True)
    order = np.lexsort((-first, rows, pair // width))
    last = order[np.append(np.diff(pair[order] // width), 1) > 0] if len(order) else order
    found, most = np.zeros((2, count), dtype=np.int64)
    found[pair[last] // width], most[pair[last] // width] = pair[last] % width, rows[last]
    return found, most


def confinement(path: dict[str, Floats], mean_step: Floats, noise: float, frames: Floats) -> Floats:
    """Squared radius of gyration that free diffusion would have, over the observed one.

    It is about 1 for diffusion, above for confined and below for directed motion. N detections of diffusion
    with the mean square step s have s (N² - 1) / 6N.

    Parameters
    ----------
    path : dict
        As `paths` gives it.
    mean_step : (T,) float64 array
        Mean square step of each track without localisation error.
    noise : float
        Variance of the localisation error, summed over the axes.
    frames : (T,) float64 array
        Intervals of each track, plus 1.
    """
    observed = np.square(path["radius_of_gyration"]) - noise * (1 - 1 / path["detections"])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(observed > 0, mean_step * (np.square(frames) - 1) / (6 * frames) / observed, np.nan)


def _mean(values: Floats, owner: Rows, count: int) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.bincount(owner, values, count) / np.bincount(owner, minlength=count)


def _medians(values: Floats, owner: Rows, count: int) -> Floats:
    order = np.lexsort((values, owner))
    size = np.bincount(owner, minlength=count)
    first = np.cumsum(size) - size
    found, some = np.full(count, np.nan), size > 0
    low, high = first + (size - 1) // 2, first + size // 2
    found[some] = (values[order][low[some]] + values[order][high[some]]) / 2
    return found


def mean_feature(values: NDArray, owner: Rows) -> Floats:
    """Mean of a feature over each track, without missing values."""
    given = np.isfinite(values)
    return _mean(values[given].astype(np.float64), owner[given], int(owner[-1]) + 1)
