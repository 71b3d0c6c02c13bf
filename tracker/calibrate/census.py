"""Census: how many particles are seen again, by counting detections, whatever their steps are like.

Around a detection there is in the next frame whoever is near it in its own, and itself. Links that tell of
much less than that must be wrong: whoever turns sharply past others is taken for one that ends, one that is
missed and one that starts, and by such rates links are chosen that bear them out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..refine.candidates import near_points
from ..refine.linking import LinkModel
from ..refine.movie import Movie

_REACH = 3.0
"""Radius in standard deviations of a step within which others are counted."""
_ENOUGH, _FEWEST = 25_000, 2_000
"""Detections around which they are, about, and at least;"""
_MOST, _SOME = 50, 200
"""others around each, at most, and of how many that is asked."""
_BLOCKS = 16
"""Parts of the room, for the error."""
_CLEAR, _ABSURD = 2.5, 4.0
"""Standard errors by which more must be seen again than links tell; and by which more than all may be."""
_SURE = 1e-3
"""Share of detections at least that are not."""


@dataclass(frozen=True)
class Census:
    """What counts tell.

    Parameters
    ----------
    seen : float
        Probability that the particle of a detection is seen in the next frame, or was in the one before: the
        mean of both; less than that where some go farther than is looked.
    error : float
        Its standard error.
    """

    seen: float
    error: float

    def revised(self, model: LinkModel) -> LinkModel:
        """The model with fewer ends, starts and misses, where clearly more are seen again than it says.

        Examples
        --------
        >>> from ..motion import Motion
        >>> model = LinkModel(Motion.static((1.0,)), (0.6, 0.2), 0.2, 0.2, gate=(4.0,))
        >>> new = Census(0.9, 0.01).revised(model)
        >>> round(new.end, 3), np.round(new.follow, 3).tolist()
        (0.05, [0.9, 0.05])
        >>> Census(0.9, 0.2).revised(model) is model
        True
        """
        # Of those that are seen next, and of those that were before.
        told = model.follow[0] * (1 + (1 - model.start) / (1 - model.end)) / 2
        if self.seen - _CLEAR * self.error <= told:
            return model
        less = max(1 - self.seen, _SURE) / max(1 - told, _SURE)
        late = less * np.array(model.follow[1:])
        end, start = less * model.end, less * model.start
        follow = (float(1 - end - late.sum()), *late.tolist())
        return replace(model, follow=follow, end=end, start=start, clutter=less * model.clutter)


def counted(movie: Movie, step: NDArray[np.float64], *, workers: int = 1) -> Census | None:
    """How many are seen again; None where there is too little to count, or too much.

    Let m detections be near one in its own frame, and n in the next or the one before, if that showed as many
    in all: n - m is its particle, and what has come near less what has left, which is nothing in the mean,
    however they lie; but where none is shown that is too near another, more seem to be seen than are.

    Parameters
    ----------
    movie : Movie
        Of particles that do not go together.
    step : (axes,) float64 array
        Standard deviation of a step along each axis, about.
    workers : int
        Threads; they do not change the result.

    Examples
    --------
    >>> from ..detections import Detections
    >>> from ..refine.movie import movie_of
    >>> rng = np.random.default_rng(0)
    >>> walks = rng.uniform(0, 30, (1000, 2)) + np.cumsum(rng.normal(0, 0.5, (9, 1000, 2)), axis=0)
    >>> place = np.where(rng.random((9, 1000, 1)) < 0.8, walks, rng.uniform(0, 30, (9, 1000, 2)))
    >>> frame = np.repeat(np.arange(9), 1000)
    >>> movie = movie_of(Detections.from_table(frame, place.reshape(-1, 2)), (1, 1, 1))
    >>> found = counted(movie, np.array([0.5, 0.5]))
    >>> abs(found.seen - 0.8**2) < 4 * found.error < 0.1
    True
    """
    size = np.diff(movie.frame_start)
    # With others in the frames before and after.
    whole = np.concatenate([[False], (size[:-2] > 0) & (size[2:] > 0), [False]])[: len(size)]
    row = np.nonzero(whole[movie.frame])[0]
    row, gate = row[:: max(1, len(row) // _ENOUGH)], tuple((_REACH * step).tolist())
    few = row[:: max(1, len(row) // _SOME)]
    if len(row) < _FEWEST or _around(movie, few, gate, 1, workers).mean() > _MOST:
        return None
    others, frame = _around(movie, row, gate, 0, workers) - 1, movie.frame[row]
    after, before = (
        _around(movie, row, gate, ahead, workers) - others * size[frame + ahead] / size[frame]
        for ahead in (1, -1)
    )
    more = (after + before) / 2
    place = movie.position[row, int(np.argmax(np.ptp(movie.bounds, axis=0)))]
    parts = [more[part].mean() for part in np.array_split(np.argsort(place, kind="stable"), _BLOCKS)]
    seen, error = float(more.mean()), float(np.std(parts, ddof=1) / np.sqrt(_BLOCKS))
    return Census(seen, error) if seen <= 1 + _ABSURD * error else None


def _around(
    movie: Movie, row: NDArray[np.int64], gate: tuple[float, ...], ahead: int, workers: int
) -> NDArray[np.int64]:
    """(R,) how many detections are near each row so many frames on."""
    start = np.searchsorted(row, movie.frame_start)
    return np.diff(near_points(movie, movie.position[row], start, gate, ahead, workers=workers)[0])
