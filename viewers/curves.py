"""Numbers plotted in a report: accuracy over time, displacements, lengths, least certain links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outbid.measuring.pooled import fitted
from outbid.tracks import Tracks

from .judged import JudgedLinks
from .layers import link_speed

_MOST_BINS = 300
_MOST_LAGS = 30


class Accuracy(NamedTuple):
    """Share of right links by the frame in which a link starts; NaN where there is none.

    Parameters
    ----------
    frame : (B,) float64 array
        Middle of each group of frames; a group is one frame in movies of up to 300.
    precision : (B,) float64 array
        Of the found links.
    recall : (B,) float64 array
        Of the true links.
    """

    frame: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]


class Displacement(NamedTuple):
    """Mean square displacement over 1, 2, … frames, of all tracks and times together.

    Parameters
    ----------
    lag : (L,) int64 array
        Frames; lags without a pair of detections are left out.
    mean_square : (L,) float64 array
        In the unit of the positions, squared.
    pairs : (L,) int64 array
        How many pairs of detections each mean is taken over.
    fit : (L,) float64 array or None
        Of fractional Brownian motion with localisation error; None where there are too few steps.
    exponent : float
        Of this motion: 1 for diffusion, 2 for straight motion.
    """

    lag: NDArray[np.int64]
    mean_square: NDArray[np.float64]
    pairs: NDArray[np.int64]
    fit: NDArray[np.float64] | None
    exponent: float


class WorstLinks(NamedTuple):
    """Links to check, the most doubtful first.

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


def accuracy_over_time(judged: JudgedLinks) -> Accuracy:
    """Precision and recall of the links that start in each frame; divisions do not count, as in the scores.

    Examples
    --------
    >>> from outbid.detections import Detections
    >>> from .judged import judge_links
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> found, truth = Tracks(seen, np.array([[0, 1], [0, 2]])), Tracks(seen, np.array([[0, 1], [1, 2]]))
    >>> accuracy = accuracy_over_time(judge_links(found, truth))
    >>> accuracy.frame.tolist(), accuracy.precision.tolist(), accuracy.recall.tolist()
    ([0.0, 1.0], [0.5, nan], [1.0, 0.0])
    """
    found = _start_frames(judged.tracks)[judged.found_counts]
    true = _start_frames(judged.truth)[judged.true_counts]
    edges = _frame_groups(np.concatenate([found, true]))
    right = judged.right[judged.found_counts]
    again = judged.found_again[judged.true_counts]
    with np.errstate(invalid="ignore"):
        precision = np.histogram(found[right], edges)[0] / np.histogram(found, edges)[0]
        recall = np.histogram(true[again], edges)[0] / np.histogram(true, edges)[0]
    return Accuracy((edges[1:] + edges[:-1] - 1) / 2, precision, recall)


def detections_a_frame(tracks: Tracks) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Middle of each group of frames, and the mean number of detections of its frames, both (B,).

    Examples
    --------
    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([2, 4, 4], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> [side.tolist() for side in detections_a_frame(Tracks(seen, np.empty((0, 2), np.int64)))]
    [[2.0, 3.0, 4.0], [1.0, 0.0, 2.0]]
    """
    edges = _frame_groups(tracks.detections.frame)
    last = int(tracks.detections.frame.max(initial=0)) + 1
    counts = np.histogram(tracks.detections.frame, edges)[0]
    return (edges[1:] + edges[:-1] - 1) / 2, counts / np.diff(np.minimum(edges, last))


def step_lengths(tracks: Tracks, spacing: tuple[float, float, float] = (1, 1, 1)) -> NDArray[np.float64]:
    """Lengths of the links from a frame to the next; links over gaps are left out."""
    frame = tracks.detections.frame
    consecutive = frame[tracks.links[:, 1]] - frame[tracks.links[:, 0]] == 1
    return link_speed(tracks, spacing)[consecutive]


def starts_and_ends(tracks: Tracks) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Middle of each group of frames, and the mean number of tracks that start and end in its frames, (B,).

    Tracks that are there in the first frame do not start, and those in the last do not end; unlinked
    detections are left out.

    Examples
    --------
    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2, 3], [[0, 0, x] for x in range(4)])
    >>> [side.tolist() for side in starts_and_ends(Tracks(seen, np.array([[1, 2]])))]
    [[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """
    frame = tracks.detections.frame.astype(np.int64)
    edges, last = _frame_groups(frame), int(frame.max(initial=0))
    sizes = np.diff(np.minimum(edges, last + 1))
    linked = (tracks.successors + tracks.predecessors) > 0
    starts = frame[linked & (tracks.predecessors == 0) & (frame > frame.min(initial=last))]
    ends = frame[linked & (tracks.successors == 0) & (frame < last)]
    counts = [np.histogram(one, edges)[0] / sizes for one in (starts, ends)]
    return (edges[1:] + edges[:-1] - 1) / 2, counts[0], counts[1]


class Speed(NamedTuple):
    """Speed of the links by the frame in which they start; NaN where there is none.

    Parameters
    ----------
    frame : (B,) float64 array
        Middle of each group of frames.
    low, median, high : (B,) float64 arrays
        Quartiles, in the unit of the positions a frame.
    """

    frame: NDArray[np.float64]
    low: NDArray[np.float64]
    median: NDArray[np.float64]
    high: NDArray[np.float64]


def speed_over_time(tracks: Tracks, spacing: tuple[float, float, float] = (1, 1, 1)) -> Speed:
    """Quartiles of the speed over time.

    Examples
    --------
    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 3]])
    >>> speed_over_time(Tracks(seen, np.array([[0, 1], [1, 2]]))).median.tolist()
    [1.0, 2.0]
    """
    start = _start_frames(tracks)
    edges = _frame_groups(start)
    order = np.argsort(start, kind="stable")
    groups = np.split(link_speed(tracks, spacing)[order], np.searchsorted(start[order], edges[1:-1]))
    none = np.full(3, np.nan)
    low, median, high = np.transpose(
        [np.percentile(one, [25, 50, 75]) if len(one) else none for one in groups]
    )
    return Speed((edges[1:] + edges[:-1] - 1) / 2, low, median, high)


def track_lengths(tracks: Tracks) -> NDArray[np.int64]:
    """(track_count,) int64: detections of each track; one that is not linked is a track of 1."""
    return np.bincount(tracks.track_id)


def mean_square_displacement(
    tracks: Tracks, spacing: tuple[float, float, float] = (1, 1, 1), most_lags: int = _MOST_LAGS
) -> Displacement:
    r"""Mean square displacement of all pairs of detections of one track.

    .. math:: \text{MSD}(k) = \langle |r(t + k) - r(t)|^2 \rangle

    Parameters
    ----------
    tracks : Tracks
    spacing : (float, float, float)
        By which positions are multiplied.
    most_lags : int
        The greatest lag, in frames.

    Examples
    --------
    A particle that moves straight by 2 a frame, and is missed in frame 2:

    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([0, 1, 3], [[0, 0, 0], [0, 0, 2], [0, 0, 6]])
    >>> found = mean_square_displacement(Tracks.from_track_ids(seen, [0, 0, 0]))
    >>> found.lag.tolist(), found.mean_square.tolist(), found.pairs.tolist()
    ([1, 2, 3], [4.0, 16.0, 36.0], [1, 1, 1])
    """
    order = np.lexsort((tracks.detections.frame, tracks.track_id))
    track, frame = tracks.track_id[order], tracks.detections.frame[order].astype(np.int64)
    place = tracks.detections.position[order] * np.asarray(spacing, dtype=np.float64)
    pairs, squares = np.zeros(most_lags + 1, np.int64), np.zeros(most_lags + 1)
    for further in range(1, most_lags + 1):  # frames in between may be missing: a row is not a frame
        lag = frame[further:] - frame[:-further]
        near = (track[further:] == track[:-further]) & (lag <= most_lags)
        square = ((place[further:][near] - place[:-further][near]) ** 2).sum(axis=1)
        pairs += np.bincount(lag[near], minlength=most_lags + 1)
        squares += np.bincount(lag[near], weights=square, minlength=most_lags + 1)
    seen = np.nonzero(pairs)[0]
    some = place[:, np.ptp(place, axis=0) > 0] if len(place) else place
    fit = fitted(some, frame, np.unique(track, return_inverse=True)[1])
    curve = None if fit is None else fit.displacement(seen.astype(np.float64))
    exponent = np.nan if fit is None else fit.parameter
    return Displacement(seen, squares[seen] / pairs[seen], pairs[seen], curve, exponent)


def worst_links(tracks: Tracks, count: int, spacing: tuple[float, float, float] = (1, 1, 1)) -> WorstLinks:
    """The links with the lowest probability, else the smallest margin, the highest cost or speed.

    Links whose measure is not known (NaN) are left out.

    Examples
    --------
    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 3]])
    >>> worst_links(Tracks(seen, np.array([[0, 1], [1, 2]])), 1)
    WorstLinks(row=array([1]), measure='speed', value=array([2.]))
    """
    for measure, values, sign in (
        ("probability", tracks.link_probability, 1),
        ("margin", tracks.link_margin, 1),
        ("cost", tracks.link_cost, -1),
        ("speed", link_speed(tracks, spacing), -1),
    ):
        if values is not None and np.isfinite(values).any():
            order = np.argsort(sign * np.where(np.isfinite(values), values, np.nan), kind="stable")
            chosen = order[: min(count, int(np.isfinite(values).sum()))]
            return WorstLinks(chosen, measure, values[chosen])
    return WorstLinks(np.empty(0, np.int64), "speed", np.empty(0))


def _start_frames(tracks: Tracks) -> NDArray[np.int64]:
    return tracks.detections.frame[tracks.links[:, 0]].astype(np.int64)


def _frame_groups(frame: NDArray) -> NDArray[np.int64]:
    """(B + 1,) int64: first frames of at most 300 equal groups, and the first after them."""
    if len(frame) == 0:
        return np.array([0, 1])
    first, stop = int(frame.min()), int(frame.max()) + 1
    width = -(-(stop - first) // _MOST_BINS)
    return np.arange(first, stop + width, width)
