"""Advection: displacement by the flow over several frames, which is the sum of the displacements of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, to_host
from ...geometry.neighbours import nearest
from .movie import Movie


def advected(
    movie: Movie,
    flow: NDArray[np.float64],
    tail: NDArray[np.integer],
    longest: int | NDArray[np.integer],
) -> Iterator[NDArray[np.float64]]:
    """Displacements (M, D) of some detections by the flow, over 1, 2, …, `longest` frames.

    Over a frame in which a particle is missed, its flow is that of the nearest detection. If a frame shows
    no flow, because it or the next one is empty, the flow per interval is that of the last frame that does.

    Parameters
    ----------
    movie : Movie
    flow : (N, D) float64 array
        Displacement of each detection to the next frame.
    tail : (M,) integer array
        Not decreasing.
    longest : int or (M,) integer array
        Number of frames; a detection whose own has passed stays where it is.

    Examples
    --------
    >>> from outbid.learned.model.movie import movie_of
    >>> movie = movie_of(np.array([[0.0], [2.0], [1.0], [3.0], [4.0], [6.0]]), np.array([0, 2, 4, 6]))
    >>> flow = np.array([[0.5], [0.5], [1.5], [1.5], [0.0], [0.0]])
    >>> [way.ravel().tolist() for way in advected(movie, flow, np.array([0, 1]), 2)]
    [[0.5, 0.5], [2.0, 2.0]]
    """
    occupied, xp = np.diff(movie.frame_start) > 0, array_module(movie.frame)
    shows = xp.asarray(np.flatnonzero(occupied & np.append(occupied[1:], False)))
    lasts = xp.asarray(np.append(movie.intervals, 1))
    way, frame = xp.zeros((len(tail), movie.axes)), movie.frame[tail]
    for lag in range(int(np.max(longest)) if len(tail) else 0):
        now = np.minimum(frame + lag, movie.frames - 1)
        seen = np.searchsorted(shows, now, side="right") - 1
        asking = np.flatnonzero((seen >= 0) & (longest > lag))
        at = shows[seen[asking]]
        if lag == 0 and (at == frame[asking]).all():
            row = tail[asking]
        else:
            row = _nearest_in(movie, movie.position[tail[asking]] + way[asking], at)
        way[asking] += flow[row] * (lasts[now[asking]] / lasts[at])[:, None]
        yield way.copy()


def _nearest_in(movie: Movie, place: NDArray[np.float64], frame: NDArray[np.int64]) -> NDArray[np.int64]:
    """(M,) nearest detection to each place (M, D) in a frame (M,) that holds some; frames do not decrease."""
    count = len(place)
    xp = array_module(place)
    of_places = to_host(xp.searchsorted(frame, xp.arange(movie.frames)))
    start = np.concatenate([of_places, movie.frame_start + count])  # and of detections
    places = np.concatenate([place, movie.position])
    near, _ = nearest(places, start, xp.arange(count), 1, offset=movie.frames)
    return near[:, 0].astype(np.int64) - count


def displaced(
    movie: Movie,
    flow: NDArray[np.float64],
    link: tuple[NDArray[np.integer], NDArray[np.integer]],
) -> NDArray[np.float64]:
    """(E, D) displacements by the flow from tails (E,) over lags (E,), both sorted as in `Candidates`."""
    tail, lag = link
    way = flow[tail]
    late = np.flatnonzero(lag > 1)
    if not len(late):
        return way
    rows, index = np.unique(tail[late], return_inverse=True)
    longest = lag[late][np.searchsorted(tail[late], rows, side="right") - 1]  # heads do not decrease either
    for frames, moved in enumerate(advected(movie, flow, rows, longest), 1):
        here = lag[late] == frames
        way[late[here]] = moved[index[here]]
    return way
