"""Sample: the part of a large movie from which its model is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import to_host
from ..inference.posterior import LinkPosterior
from ..model.movie import Movie

LAGS = 6
"""Prior: largest lag of a link in frames, until links say that there are longer gaps."""
LEAST_FRAMES = LAGS + LAGS
"""Least number of consecutive frames: the longest gap with frames before and after it."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the detections in consecutive frames.

    Parameters
    ----------
    rows : (M,) int64 array
        Increasing.
    frames : slice
        The frames.
    frame_start : (frames + 1,) int64 array
        Start of the detections of each frame among the rows.
    """

    rows: NDArray[np.int64]
    frames: slice
    frame_start: NDArray[np.int64]


def sample_of(position: NDArray[np.float64], frame_start: NDArray[np.int64], most: int) -> Sample:
    """About `most` detections: those in the middle frames and, if these are too many, near the centre.

    If hardly any detection is in the middle frames, as in a pause, the frames with most are chosen.
    All detections in a ball around the centre are taken, not a random share, so that neighbours are kept.

    Examples
    --------
    >>> found = sample_of(np.arange(40.0)[:, None], np.array([0, 20, 40]), 10)
    >>> found.rows.tolist(), found.frame_start.tolist()
    ([15, 16, 17, 18, 19, 20, 21, 22, 23, 24], [0, 5, 10])
    >>> pause = np.concatenate([np.arange(0, 60, 3), np.full(40, 60), np.arange(60, 120, 3), [120]])
    >>> sample_of(np.arange(120.0)[:, None], pause, 30).rows[[0, -1]].tolist()
    [15, 44]
    """
    frames, count = len(frame_start) - 1, len(position)
    wanted = min(frames, max(LEAST_FRAMES, int(np.ceil(most * frames / max(count, 1)))))
    counts = frame_start[wanted:] - frame_start[: frames - wanted + 1]
    first = (frames - wanted) // 2
    if counts[first] * LEAST_FRAMES < min(most, int(counts.max())):  # less than a frame of them
        first = int(counts.argmax())
    span = slice(first, first + wanted)
    begin, end = frame_start[first], frame_start[first + wanted]
    rows = np.arange(begin, end)
    if len(rows) > most:
        some = position[begin:end]
        apart = np.zeros_like(some, shape=len(some))
        for column in some.T:
            apart += np.square(column - np.median(column))
        rows = begin + to_host(np.flatnonzero(apart <= np.partition(apart, most - 1)[most - 1]))
    start = np.searchsorted(rows, frame_start[first : first + wanted + 1])
    return Sample(rows, span, start)


def part_of(movie: Movie, posterior: LinkPosterior, most: int) -> tuple[Movie, LinkPosterior, Sample]:
    """About `most` detections in the middle of a movie, and what is known of their links."""
    sample = sample_of(movie.position, movie.frame_start, most)
    part = movie.at(sample.rows).during(sample.frames)
    some, _ = posterior.at(sample.rows, part.frame)
    return part, LinkPosterior.begun(some.candidates, some.probability, some.competing), sample
