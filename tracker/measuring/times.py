"""Times of detections: those of a column of times where frames were dropped, or their times jitter."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..particles.calibration import interval_of
from ..particles.tracks import Tracks
from .likelihood import Floats

_LONGEST = 1000
"""Guard: intervals of a gap, at most; no lag is as long, and times are exact."""


class Timed(NamedTuple):
    """Tracks with the time of each detection.

    Parameters
    ----------
    tracks : Tracks
        Frame numbers count intervals: where a frame was dropped they skip one.
    time : (N,) float64 array
        Seconds, or frame numbers.
    interval : float or None
        The most frequent time between two frame numbers; None if it is not known.
    remark : str or None
        How times are irregular.
    """

    tracks: Tracks
    time: Floats
    interval: float | None
    remark: str | None = None


def timed(tracks: Tracks, interval: float | None, *, given: bool = False) -> Timed:
    """The times of tracks: by a column of times if these are irregular, else by the frame numbers.

    Parameters
    ----------
    tracks : Tracks
    interval : float or None
        Seconds between two frame numbers.
    given : bool
        Whether the caller gave the interval, which then replaces the column.

    Examples
    --------
    >>> from outbid import Detections
    >>> seen = Detections.from_table([0, 1, 2], np.zeros((3, 3)), features={"time": [0.0, 10.0, 31.0]})
    >>> found = timed(Tracks(seen, np.array([[0, 1], [1, 2]])), None)
    >>> found.tracks.detections.frame.tolist(), found.time.tolist(), found.interval
    ([0, 1, 3], [0.0, 10.0, 31.0], 10.0)
    """
    seen = tracks.detections
    even = Timed(tracks, seen.frame.astype(np.float64) * (interval or 1.0), interval)
    from ..formats.tables.times import times_in

    times = None if given else next(times_in(seen.features), None)
    if times is None or len(seen) < 2 or interval_of(seen.frame, {"time": times}) is not None:
        return even
    frames, of = np.unique(seen.frame, return_inverse=True)
    ahead = np.diff(np.bincount(of, times) / np.bincount(of))
    if not (ahead > 0).all() or not len(ahead):  # of what is not finite as well
        text = "The column of times does not grow with the frame, and is not used."
        return even._replace(remark=text if len(ahead) else None)
    usual = _most_frequent(ahead / np.diff(frames))
    skipped = np.clip(np.rint(ahead / usual), 1, _LONGEST).astype(np.int64)
    number = frames[0] + np.concatenate([[0], np.cumsum(skipped)])
    still = replace(seen, frame=number[of].astype(np.int32))
    return Timed(replace(tracks, detections=still), times, usual, _remark(ahead, skipped, usual))


def _most_frequent(ahead: Floats) -> float:
    """The middle of the half of the intervals that lie closest together."""
    values = np.sort(ahead)
    half = (len(values) + 1) // 2
    first = int(np.argmin(values[half - 1 :] - values[: len(values) - half + 1]))
    return float(f"{np.median(values[first : first + half]):.12g}")


def _remark(ahead: Floats, skipped: NDArray[np.int64], usual: float) -> str:
    off = float(np.max(np.abs(ahead - skipped * usual)[skipped == skipped.min()])) / usual
    return (
        f"Frames are at irregular times: {np.sum(skipped > skipped.min()):,} of {len(ahead):,} follow after "
        f"more than the usual {usual:.3g} s, and the others deviate from it by up to {off:.0%}. Speeds, lags "
        "and D use the column of times. To count frames instead: --interval S."
    )
