"""Windows: the pairs of a long movie are weighed some frames at a time.

What is believed of a detection hardly depends on what was many frames before or after it. So each window is
looked at with a few frames more on both sides, several at once in threads, and what is believed is forgotten
once its pairs are weighed. Where a movie is cut depends on nothing but the movie.
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
"""Detections and frames of a window, at least: with fewer, too much is looked at twice;"""
_FEWEST, _MANY = 50, 1_000_000
"""but so few frames are enough of so many detections, which take 1 GB;"""
_AT_ONCE = 8 * _MANY
"""and no more of them are looked at together, however many threads there are, but in one window."""
_BESIDE = 8
"""Frames on both sides of a window that are looked at as well, beside those that a link may span."""


class _Window(NamedTuple):
    """Frames first to last - 1, of which begun to ended - 1 are its own."""

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
    """Weigh the pairs of a movie window by window; a short movie is one.

    Parameters
    ----------
    movie : Movie
    pairs : Pairs
    shift : (N, axes) float64 array
        Displacement in one frame that is known of each detection beforehand.
    weigh : callable
        Weighs the pairs of a movie, given also `shift` and `workers`, as `weighed_softly` does.
    longest : int
        Frames that a link may span.
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    Weighed
        By row, with the pairs that `weigh` keeps or finds.
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
    """Windows of enough detections and frames each, seen with so many frames beside them."""
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
    """The pairs between detections first to last - 1, counted from the first of them."""
    indptr, many = pairs.indptr[first : last + 1], last - first
    indices = pairs.indices[indptr[0] : indptr[-1]] - np.int32(first)
    return Pairs(indptr - indptr[0], indices, pairs.log_density[first:last]).where(indices < many)
