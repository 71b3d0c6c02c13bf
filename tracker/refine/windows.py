"""Windows: weigh the pairs of a long movie in windows of frames.

Beliefs about a detection hardly depend on frames that are far away in time. So each window is processed with
a few additional frames on both sides, several windows at once in threads, and its beliefs are released when
its pairs are weighed. The division into windows depends only on the movie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._threads import in_threads
from .candidates import Pairs
from .movie import Movie
from .weigh import Weighed

_DETECTIONS, _FRAMES = 100_000, 100
"""Least number of detections and frames in a window: with fewer, too much is processed twice;"""
_FEWEST, _MANY = 50, 1_000_000
"""but this number of frames suffices if it has this number of detections, which need 1 GB;"""
_AT_ONCE = 8 * _MANY
"""and the largest number of detections processed at the same time by all threads, unless in one window."""
_BESIDE = 8
"""Number of additional frames on both sides of a window, beyond those that a link may span."""


class _Window(NamedTuple):
    """A window of frames first to last - 1, of which begun to ended - 1 are its own."""

    first: int
    begun: int
    ended: int
    last: int


def weighed_in_windows(
    movie: Movie,
    pairs: Pairs,
    shift: NDArray[np.float64],
    weigh: Callable[..., Weighed],
    *,
    longest: int = 1,
    workers: int = 1,
) -> Weighed:
    """Weigh the pairs of a movie window by window; a short movie is a single window.

    Parameters
    ----------
    movie : Movie
    pairs : Pairs
    shift : (N, axes) float64 array
        Displacement in one frame that is known of each detection beforehand.
    weigh : callable
        Function such as `weighed_softly` that weighs the pairs of a movie, given also `shift` and `workers`.
    longest : int
        Largest number of frames that a link may span.
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    Weighed
        The pairs that `weigh` keeps or finds, sorted by row.
    """
    windows = _windows_of(movie, _BESIDE + longest)
    if len(windows) < 2:
        return weigh(movie, pairs, shift=shift, workers=workers)

    largest = max(int(movie.frame_start[one.last] - movie.frame_start[one.first]) for one in windows)
    together = min(workers, len(windows), max(_AT_ONCE // largest, 1))
    each = max(workers // together, 1)

    def own(window: _Window) -> Weighed:
        first, begun, ended, last = movie.frame_start[list(window)]
        part = movie.part(window.first, window.last)
        found = weigh(part, _between(pairs, first, last), shift=shift[first:last], workers=each)
        kept = slice(*found.pairs.indptr[[begun - first, ended - first]])
        indptr = found.pairs.indptr[begun - first : ended - first + 1]
        own_pairs = Pairs(indptr - indptr[0], found.pairs.indices[kept] + np.int32(first), np.empty(0))
        return Weighed(own_pairs, found.gain[kept], found.distance2[kept], found.size[kept])

    found = list(in_threads(own, windows, together))
    degree = np.concatenate([[0], *(np.diff(one.pairs.indptr) for one in found)])
    indices = np.concatenate([one.pairs.indices for one in found])
    gain, distance2, size = (
        np.concatenate([getattr(one, name) for one in found]) for name in ("gain", "distance2", "size")
    )
    return Weighed(Pairs(np.cumsum(degree), indices, pairs.log_density), gain, distance2, size)


def _windows_of(movie: Movie, beside: int) -> list[_Window]:
    """Windows with enough detections and frames each, and additional frames on both sides."""
    start, frames, edges = movie.frame_start, len(movie.frame_start) - 1, [0]
    while edges[-1] < frames:
        begun = edges[-1]
        enough, many = np.searchsorted(start, start[begun] + [_DETECTIONS, _MANY]).tolist()
        edges.append(max(enough, min(begun + _FRAMES, max(many, begun + _FEWEST))))
    # What is left at last is too little for a window.
    edges = [*edges[: max(len(edges) - 2, 1)], frames] if edges[-1] > frames else edges
    return [
        _Window(max(begun - beside, 0), begun, ended, min(ended + beside, frames))
        for begun, ended in zip(edges[:-1], edges[1:], strict=True)
    ]


def _between(pairs: Pairs, first: int, last: int) -> Pairs:
    """The pairs between detections first to last - 1, renumbered from 0."""
    indptr, many = pairs.indptr[first : last + 1], last - first
    indices = pairs.indices[indptr[0] : indptr[-1]] - np.int32(first)
    return Pairs(indptr - indptr[0], indices, pairs.log_density[first:last]).where(indices < many)
