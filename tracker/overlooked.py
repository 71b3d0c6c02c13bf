"""Particles that were overlooked: their steps are so unlike those of the others that no link follows them.

A few fast ones among many slow ones pass for clutter, and what is learned then keeps them so. But what no
link leaves lies nearer to what no link reaches, one frame later, than strangers lie to each other.
"""

from __future__ import annotations

import math

import numpy as np

from .estimates import NeighbourDistances, first_step
from .linking import Linking
from .movie import Movie
from .neighbours import nearest

_SURPLUS, _SURE = 0.2, 5.0
"""Share of the unlinked, beyond half of them, that must be nearer than strangers usually are; and by how many
standard deviations of that share."""


def overlooked(movie: Movie, linking: Linking, *, workers: int = 1) -> float:
    """Standard deviation of a step along an axis of those that no link follows; 0 if there seem to be none.

    Parameters
    ----------
    movie : Movie
    linking : Linking
        What was found of it.
    workers : int
        Threads; they do not change the result.

    Examples
    --------
    >>> from .detections import Detections
    >>> from .movie import movie_of
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 20, (200, 3))
    >>> points = np.concatenate([place, place + rng.normal(0, 0.3, (200, 3))])
    >>> movie = movie_of(Detections.from_table(np.repeat([0, 1], 200), points), (1, 1, 1))
    >>> round(overlooked(movie, Linking.none(400)), 1)
    0.3
    """
    frames = np.arange(len(movie.frame_start) - 2)
    starts, ends = (np.nonzero(other < 0)[0] for other in (linking.before, linking.follower))
    # Each frame in two: first those that no link reaches, then those that none leaves.
    half = np.concatenate([2 * movie.frame[starts], 2 * movie.frame[ends] + 1])
    order = np.argsort(half, kind="stable")
    position = movie.position[np.concatenate([starts, ends])[order]]
    begins = np.searchsorted(half[order], np.arange(2 * len(frames) + 3)).astype(np.int64)
    _, _, ahead = nearest(position, begins, 2 * frames + 1, 1, offset=1, workers=workers)
    _, _, beside = nearest(position, begins, 2 * frames + 2, 1, workers=workers)
    between, within = (np.sqrt(found[np.isfinite(found)]) for found in (ahead, beside))
    if not (len(between) and len(within)):
        return 0.0
    surplus = float(np.mean(between < np.median(within))) - 0.5
    if surplus < max(_SURPLUS, _SURE * math.sqrt(0.5 / len(between))):
        return 0.0
    return first_step(NeighbourDistances(np.zeros(len(between), np.int64), between, within), movie.axes)[0]
