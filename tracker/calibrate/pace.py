"""Pace: from some frames all particles go farther than from others, as when intervals differ or all rest.

Or where a frame is blurred, for then they seem to. It is told by how far particles go on the whole, frame by
frame, if those on one side of the room tell the same as those on the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import Motion
from ..refine.linking import Linking
from ..refine.movie import Movie

_VARIES, _SURELY, _FRAMES = 0.03, 4.0, 8
"""Variance of the log of squared steps between frames that matters; standard errors by which chance makes
less; and frames that it takes."""
_FEW = 3
"""Links on each side of the room that tell something of a frame."""
_LEAST = 0.04
"""Squared pace of a frame at least: what is seen in slower ones is mostly noise."""


def pace_of(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], motion: Motion
) -> NDArray[np.float64] | None:
    r"""(F,) how far particles go from each frame to the next, in what is usual; None where that is the same.

    Let :math:`l_t` be twice the log of the mean step from frame t, which few far jumps hardly change. What
    both sides of the room tell of it has the covariance :math:`\tau^2` over the frames, and their mean
    varies by chance by :math:`v_t` besides, as their difference shows; so it is drawn to that of all frames
    by :math:`\tau^2 / (\tau^2 + v_t)`. What noise adds to squared steps is taken off.

    Parameters
    ----------
    movie : Movie
    linking : Linking
        Its pairs, and how likely they are.
    shift : (N, axes) float64 array
        Displacement in one frame that is known of each detection beforehand.
    motion : Motion
        What is usual.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from ..detections import Detections
    >>> from ..refine.movie import movie_of
    >>> rng = np.random.default_rng(0)
    >>> steps = np.where(np.arange(30) % 10 < 5, 0.3, 0.1)[:, None, None] * rng.normal(size=(30, 100, 3))
    >>> place = (9 * rng.random((100, 3)) + np.cumsum(steps, axis=0)).reshape(-1, 3)
    >>> movie = movie_of(Detections.from_table(np.repeat(np.arange(30), 100), place), (1, 1, 1))
    >>> track = np.argsort(movie.order).reshape(30, 100)
    >>> row, col = track[:-1].reshape(-1), track[1:].reshape(-1)
    >>> links = replace(Linking.none(3000), row=row, col=col, probability=np.ones(len(row)))
    >>> pace = pace_of(movie, links, np.zeros((3000, 3)), Motion.static((0.22,) * 3))
    >>> pace[[0, 3, 4, 8]].round(1).tolist()
    [1.3, 1.4, 0.5, 0.4]
    """
    variance = motion.floored().step_variance(1)
    links, steps = np.moveaxis(_sums(movie, linking, shift, variance), 2, 0)
    expected = 2 * np.log(movie.paced(None).reaches(motion))
    told = (links > _FEW).all(axis=1)
    # What is first and last has a future or a past that tells less of links.
    inner = np.nonzero(told)[0]
    inner = inner[(inner > 0) & (inner < len(told) - 2)]
    if len(inner) < _FRAMES:
        return None
    many = links.sum(axis=1)
    sides = _log_ratio(steps, links) - expected[:, None]
    mean = _log_ratio(steps.sum(axis=1), many) - expected
    one, other = (side - np.average(side, weights=many[inner]) for side in sides[inner].T)
    varies = float(np.average(one * other, weights=many[inner]))
    chance = float(np.average((one - other) ** 2, weights=many[inner])) / 2
    if varies < max(_VARIES, _SURELY * chance / len(inner) ** 0.5):
        return None
    chances = chance / 2 * many[told].mean() / np.maximum(many, 1.0)
    known = np.where(told, varies / (varies + chances), 0.0)
    square = np.exp(known * (mean - np.average(mean[told], weights=many[told])))
    square /= np.average(square, weights=many)
    noise = float((2 * np.square(motion.noise) / variance).mean()) / np.exp(expected)
    square = np.maximum(square - noise, _LEAST)
    return np.asarray(np.sqrt(square / np.average(square, weights=many)))


def _sums(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(F, 2, 2) frame by frame, on both sides of the room, how many links there are, and their steps."""
    from .pace_cpu import add_steps

    size = np.diff(movie.frame_start)
    axis = int(np.argmax(np.ptp(movie.bounds, axis=0)))
    middle = np.bincount(movie.frame, movie.position[:, axis], len(size)) / np.maximum(size, 1)
    sums = np.zeros((len(size), 2, 2))
    add_steps(
        linking.row, linking.col, linking.probability, movie.frame, movie.position, shift, 1 / variance, axis,
        middle, sums,
    )  # fmt: skip
    return sums


def _log_ratio(steps: NDArray[np.float64], links: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice the log of the mean step."""
    return 2 * np.log(np.maximum(steps / np.maximum(links, 1e-12), 1e-12))
