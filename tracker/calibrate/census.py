"""Census: estimate the share of particles detected again by counting, without a model of their steps.

Around the position of a detection, the next frame contains the same neighbours as the current frame, and in
addition the particle itself. If links suggest far fewer repeated detections than this count, they are wrong:
a particle that turns sharply near others is then taken for an end, a miss and a start, and the wrong rates
lead to links that confirm them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..refine.candidates import near_points
from ..refine.linking import LinkModel
from ..refine.movie import Movie

_REACH = 3.0
"""Radius, in standard deviations of a step, within which other detections are counted."""
_ENOUGH, _FEWEST = 25_000, 2_000
"""Approximate and least number of detections around which others are counted;"""
_MOST, _SOME = 50, 200
"""largest number of others around each, and the number of detections in that test."""
_BLOCKS = 16
"""Number of parts of the volume, for the standard error."""
_CLEAR, _ABSURD = 2.5, 4.0
"""Standard errors by which the counted share must exceed that of the links, and by which it may exceed 1."""
_SURE = 1e-3
"""Least share of detections without a successor."""


@dataclass(frozen=True)
class Census:
    """The result of a census.

    Parameters
    ----------
    seen : float
        Probability that the particle of a detection is also detected in the next frame, averaged with that
        for the previous frame. It is an underestimate if some particles move farther than the search radius.
    error : float
        Its standard error.
    """

    seen: float
    error: float

    def revised(self, model: LinkModel) -> LinkModel:
        """Reduce ends, starts and misses if significantly more particles are detected again than predicted.

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
    """Count the share of particles detected again; None if there are too few or too many detections to count.

    Let m detections be near a detection in its own frame, and n in the next or previous frame, scaled to
    equal total numbers. Then n - m counts the particle itself plus those that arrived minus those that left;
    the latter cancel on average. If detections never lie close together, for example because close ones
    merge, the share is overestimated.

    Parameters
    ----------
    movie : Movie
        A movie whose particles move independently.
    step : (axes,) float64 array
        Approximate standard deviation of a step along each axis.
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
    """(R,) number of detections near each row in the frame that is `ahead` frames later."""
    start = np.searchsorted(row, movie.frame_start)
    return np.diff(near_points(movie, movie.position[row], start, gate, ahead, workers=workers)[0])
