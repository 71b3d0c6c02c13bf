"""Numbers plotted in a report: accuracy over time, displacements, lengths, least certain links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid.measuring.choice import fitted
from outbid.measuring.groups import rows_apart
from outbid.particles.calibration import Calibration, calibration_given
from outbid.particles.tracks import Tracks

from .judged import JudgedLinks
from .layers import link_speed

_MOST_BINS = 300
_MOST_LAGS = 30


class Displacement(NamedTuple):
    """Mean square displacement over 1, 2, … frames, of all tracks and times together.

    Parameters
    ----------
    lag : (L,) int64 array
        Frames; lags without a pair of detections are omitted.
    mean_square : (L,) float64 array
        In the unit of the positions, squared.
    pairs : (L,) int64 array
        How many pairs of detections each mean is taken over.
    fit : (L,) float64 array or None
        Of the motion that explains the steps best, as in `outbid.measure`; None for too few steps.
    motion : str
        That motion.
    exponent : float
        Of fractional Brownian motion: 1 for diffusion, 2 for straight motion.
    """

    lag: NDArray[np.int64]
    mean_square: NDArray[np.float64]
    pairs: NDArray[np.int64]
    fit: NDArray[np.float64] | None
    motion: str
    exponent: float


class WorstLinks(NamedTuple):
    """Links to check, the least certain first.

    Parameters
    ----------
    row : (K,) int64 array
        Rows of `Tracks.links`.
    measure : str
        By what they were chosen: ``probability``, ``margin``, ``cost`` or ``speed``.
    value : (K,) float64 array
        Of that measure.
    """

    row: NDArray[np.int64]
    measure: str
    value: NDArray[np.float64]


class _Groups(NamedTuple):
    """Equal groups of frames, at most 300: one frame each in movies of up to 300.

    Parameters
    ----------
    edges : (B + 1,) int64 array
        First frame of each group, and the first after them.
    middle : (B,) float64 array
    sizes : (B,) int64 array
        Frames of each group up to the last one of the movie.
    """

    edges: NDArray[np.int64]
    middle: NDArray[np.float64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, frame: NDArray) -> _Groups:
        """Groups of the frames from the first one to the last."""
        first, stop = (int(frame.min()), int(frame.max()) + 1) if len(frame) else (0, 1)
        width = -(-(stop - first) // _MOST_BINS)
        edges = np.arange(first, stop + width, width)
        return cls(edges, (edges[1:] + edges[:-1] - 1) / 2, np.diff(np.minimum(edges, stop)))

    def within(self, frame: NDArray) -> NDArray[np.int64]:
        """(B,): number of frames in each group."""
        return np.histogram(frame, self.edges)[0]


def accuracy_over_time(
    judged: JudgedLinks,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Middle of each group of frames, and precision and recall of the links that start in its frames, (B,).

    NaN without links. Divisions do not count, as in the scores.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> from .judged import judge_links
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> found, truth = Tracks(seen, np.array([[0, 1], [0, 2]])), Tracks(seen, np.array([[0, 1], [1, 2]]))
    >>> [side.tolist() for side in accuracy_over_time(judge_links(found, truth))]
    [[0.0, 1.0], [0.5, nan], [1.0, 0.0]]
    """
    found = _start_frames(judged.tracks)[judged.found_counts]
    true = _start_frames(judged.truth)[judged.true_counts]
    groups = _Groups.of(np.concatenate([found, true]))
    with np.errstate(invalid="ignore"):
        precision = groups.within(found[judged.right[judged.found_counts]]) / groups.within(found)
        recall = groups.within(true[judged.found_again[judged.true_counts]]) / groups.within(true)
    return groups.middle, precision, recall


def detections_a_frame(tracks: Tracks) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Middle of each group of frames, and the mean number of detections of its frames, both (B,).

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([2, 4, 4], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> [side.tolist() for side in detections_a_frame(Tracks(seen, np.empty((0, 2), np.int64)))]
    [[2.0, 3.0, 4.0], [1.0, 0.0, 2.0]]
    """
    groups = _Groups.of(tracks.detections.frame)
    return groups.middle, groups.within(tracks.detections.frame) / groups.sizes


def step_lengths(tracks: Tracks, calibration: Calibration | None = None) -> NDArray[np.float64]:
    """Lengths of the links from a frame to the next, without links over gaps."""
    frame = tracks.detections.frame
    consecutive = frame[tracks.links[:, 1]] - frame[tracks.links[:, 0]] == 1
    return link_speed(tracks, calibration)[consecutive]


def starts_and_ends(tracks: Tracks) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Middle of each group of frames, and the mean number of tracks that start and end in its frames, (B,).

    Tracks that are there in the first frame do not start, and those in the last do not end; unlinked
    detections are omitted.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2, 3], [[0, 0, x] for x in range(4)])
    >>> [side.tolist() for side in starts_and_ends(Tracks(seen, np.array([[1, 2]])))]
    [[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """
    frame = tracks.detections.frame
    groups = _Groups.of(frame)
    first, last = groups.edges[0], groups.edges[0] + groups.sizes.sum() - 1
    starts = frame[(tracks.successors > 0) & (tracks.predecessors == 0) & (frame > first)]
    ends = frame[(tracks.predecessors > 0) & (tracks.successors == 0) & (frame < last)]
    return groups.middle, groups.within(starts) / groups.sizes, groups.within(ends) / groups.sizes


def speed_over_time(tracks: Tracks, calibration: Calibration | None = None) -> NDArray[np.float64]:
    """(4, B) float64: middle of each group of frames, and quartiles of the speed of links that start in it.

    In the unit of the positions a frame; NaN without links.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 3]])
    >>> speed_over_time(Tracks(seen, np.array([[0, 1], [1, 2]])))[2].tolist()
    [1.0, 2.0]
    """
    start = _start_frames(tracks)
    groups = _Groups.of(start)
    order = np.argsort(start, kind="stable")
    speeds = np.split(
        link_speed(tracks, calibration)[order], np.searchsorted(start[order], groups.edges[1:-1])
    )
    quartiles = [np.percentile(one, [25, 50, 75]) if len(one) else np.full(3, np.nan) for one in speeds]
    return np.vstack([groups.middle, np.transpose(quartiles)])


def mean_square_displacement(
    tracks: Tracks,
    calibration: Calibration | None = None,
    most_lags: int = _MOST_LAGS,
    spacing: Sequence[float] | None = None,
) -> Displacement:
    r"""Mean square displacement of all pairs of detections of one track.

    .. math:: \text{MSD}(k) = \langle |r(t + k) - r(t)|^2 \rangle

    Parameters
    ----------
    tracks : Tracks
    calibration : Calibration, optional
        What the positions mean; by default that of the detections.
    most_lags : int
        The greatest lag, in frames.
    spacing
        The former argument, for one release.

    Examples
    --------
    A particle that moves straight by 2 a frame, and is missed in frame 2:

    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 3], [[0, 0, 0], [0, 0, 2], [0, 0, 6]])
    >>> found = mean_square_displacement(Tracks.from_track_ids(seen, [0, 0, 0]))
    >>> found.lag.tolist(), found.mean_square.tolist(), found.pairs.tolist()
    ([1, 2, 3], [4.0, 16.0, 36.0], [1, 1, 1])
    """
    order = np.lexsort((tracks.detections.frame, tracks.track_id))
    track, frame = tracks.track_id[order], tracks.detections.frame[order].astype(np.int64)
    of = calibration_given(calibration, tracks.detections.calibration, spacing)
    position = tracks.detections.position[order] * of.spacing
    key = track * (int(np.ptp(frame)) + most_lags + 1 if len(frame) else 1) + frame
    rows = [rows_apart(key, lag) for lag in range(1, most_lags + 1)]
    squares = [np.square(position[there] - position[here]).sum(axis=1) for here, there in rows]
    pairs = np.array([len(one) for one in squares])
    seen = np.flatnonzero(pairs) + 1
    mean = np.array([one.mean() for one in squares if len(one)])
    some = position[:, np.ptp(position, axis=0) > 0] if len(position) else position
    fits = fitted(some, frame, np.unique(track, return_inverse=True)[1])
    curve = None if fits.best is None else fits.best.displacement(seen.astype(np.float64))
    anomalous = fits.fit["anomalous"]
    exponent = np.nan if anomalous is None else anomalous.parameter
    return Displacement(seen, mean, pairs[seen - 1], curve, fits.chosen or "", exponent)


def worst_links(tracks: Tracks, count: int, calibration: Calibration | None = None) -> WorstLinks:
    """The links with the lowest probability, else the smallest margin, the highest cost or speed.

    Links without a measure (NaN) are omitted.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 3]])
    >>> worst_links(Tracks(seen, np.array([[0, 1], [1, 2]])), 1)
    WorstLinks(row=array([1]), measure='speed', value=array([2.]))
    """
    for measure, values, sign in (
        ("probability", tracks.link_probability, 1),
        ("margin", tracks.link_margin, 1),
        ("cost", tracks.link_cost, -1),
        ("speed", link_speed(tracks, calibration), -1),
    ):
        if values is not None and np.isfinite(values).any():
            order = np.argsort(sign * np.where(np.isfinite(values), values, np.nan), kind="stable")
            chosen = order[: min(count, int(np.isfinite(values).sum()))]
            return WorstLinks(chosen, measure, values[chosen])
    return WorstLinks(np.empty(0, np.int64), "speed", np.empty(0))


def _start_frames(tracks: Tracks) -> NDArray[np.int64]:
    return tracks.detections.frame[tracks.links[:, 0]].astype(np.int64)
