"""Drift: how far whole frames moved, where that is more than the spacing of the particles.

Neighbours cannot tell it then (`flow`), since nobody's nearest is itself. But all displacements between two
frames can: those of strangers go everywhere, those of the particles themselves to one place. They vote.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from .gating import pairs_within
from .movie import Movie
from .neighbours import nearest

_LOOK = 10_000
"""Detections whose frames are looked at for whether a vote is needed."""
_TRIED = 3
"""Frames of those that vote first."""
_FAR = 0.6
"""Particles that are as near to the next frame as this share of their spacing did not drift far."""
_VOTERS = 256
"""Detections of a frame that vote."""
_REACH = 4.0
"""Farthest drift, in spacings."""
_FINE, _WIDE = 4, 3
"""Bins a spacing, and bins that vote together."""
_SHARE = 0.2
"""Least share of the voters who must agree."""
_SURE = 6.0
"""Standard deviations by which their votes must exceed those of chance, and those for no drift."""


def drift_of(movie: Movie, *, workers: int = 1) -> NDArray[np.float64] | None:
    """Where each frame of a movie lies against the first, if frames drift by about a spacing or more.

    Parameters
    ----------
    movie : Movie
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    (F, axes) float64 array or None
        None where no frame drifts so far: less is left to `flow`.

    Examples
    --------
    >>> from .detections import Detections
    >>> from .movie import movie_of
    >>> place = np.random.default_rng(0).uniform(0, 9, (300, 3))
    >>> points = np.concatenate([place, place + [0, 0, 2.5]])
    >>> movie = movie_of(Detections.from_table(np.repeat([0, 1], 300), points), (1, 1, 1))
    >>> drift_of(movie).round(1).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 2.5]]
    """
    start = movie.frame_start
    held = np.nonzero(np.diff(start) > 1)[0]
    pairs = [(a, b) for a, b in zip(held[:-1].tolist(), held[1:].tolist(), strict=True) if b == a + 1]
    ahead = np.zeros((len(start) - 1, movie.axes))

    def vote(before: int, after: int) -> None:
        here, there = (movie.position[start[f] : start[f + 1]] for f in (before, after))
        voters = np.random.default_rng(before).permutation(here)[:_VOTERS]
        ahead[after] = _voted(voters, there, workers)

    # Where particles are crowded strangers are near: votes in a few frames tell whether all have to vote.
    for before in _doubtful(movie, np.array([a for a, _ in pairs], dtype=np.int64), workers)[
        :_TRIED
    ].tolist():
        vote(before, before + 1)
        if ahead[before + 1].any():
            for pair in pairs:
                vote(*pair)
            return np.cumsum(ahead, axis=0)
    return None


def _doubtful(movie: Movie, frames: NDArray[np.int64], workers: int) -> NDArray[np.int64]:
    """Some frames in which the next frame's particles are about as far as strangers, the farthest first."""
    size = np.diff(movie.frame_start)
    drawn = np.random.default_rng(0).permutation(frames)
    frames = np.sort(drawn[: np.searchsorted(np.cumsum(size[drawn]), _LOOK) + 1])
    if not len(frames):
        return frames
    rows, _, between = nearest(movie.position, movie.frame_start, frames, 1, offset=1, workers=workers)
    _, _, within = nearest(movie.position, movie.frame_start, frames, 1, workers=workers)
    ends = np.searchsorted(movie.frame[rows], frames, side="right")
    pairs = zip(np.split(between[:, 0], ends[:-1]), np.split(within[:, 0], ends[:-1]), strict=True)
    far = np.array([np.median(step) / max(float(np.median(stranger)), 1e-300) for step, stranger in pairs])
    order = np.argsort(-far, kind="stable")
    return frames[order[far[order] > _FAR**2]]


def _voted(voters: NDArray[np.float64], there: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
    """(axes,) displacement on which most voters agree; 0 where that is none, or might be."""
    count, axes = voters.shape
    extent = np.maximum(np.ptp(there, axis=0), 1e-300)
    spacing = float(np.prod(extent) / len(there)) ** (1 / axes)
    clouds = [np.hstack([cloud, np.zeros((len(cloud), 3 - axes))]) for cloud in (voters, there)]
    ends = [np.array([0, len(cloud)]) for cloud in clouds]
    near = pairs_within(clouds[0], clouds[1], _REACH * spacing, ends[0], ends[1], workers=workers)
    row = near.rows.order[np.repeat(np.arange(count), np.diff(near.indptr))]
    ways = there[near.cols.order[near.indices]] - voters[row]
    bins = math.ceil(_REACH * _FINE) * 2 + 1
    edges = [np.linspace(-bins / 2, bins / 2, bins + 1) * spacing / _FINE] * axes
    votes = uniform_filter(np.histogramdd(ways, edges)[0], _WIDE, mode="constant") * _WIDE**axes
    window = (_WIDE / _FINE) ** axes
    noise = math.sqrt(count * window)
    peak = np.unravel_index(np.argmax(votes), votes.shape)
    middle = votes[(bins // 2,) * axes]
    if votes[peak] < count * (window + _SHARE) or votes[peak] < max(count * window, middle) + _SURE * noise:
        return np.zeros(axes)
    way = (np.array(peak) - bins // 2) * spacing / _FINE
    for _ in range(5):  # the mean of a window that follows it
        way = ways[(np.abs(ways - way) < spacing / 2).all(axis=1)].mean(axis=0)
    return np.asarray(way)
