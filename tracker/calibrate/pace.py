"""Step scale of frames: all particles may move farther in some frames, for example if intervals differ.

A blurred frame has the same effect on observed steps. The step scale is estimated from the mean step in each
frame, if both halves of the volume give consistent values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import Motion
from ..refine.linking import Linking
from ..refine.movie import Movie

_VARIES, _SURELY, _FRAMES = 0.03, 4.0, 8
"""Least variance, between frames, of the log of squared steps; least significance of this variance in
standard errors; and least number of frames."""
_FEW = 3
"""Least number of links on each side of the volume for a frame to count."""
_LEAST = 0.04
"""Least squared step scale of a frame: in slower frames, observed steps are mostly noise."""


def pace_of(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], motion: Motion
) -> NDArray[np.float64] | None:
    r"""(F,) step scale from each frame to the next, relative to the average; None if it does not vary.

    Let :math:`l_t` be twice the log of the mean step from frame t, which is robust against a few long jumps.
    It is estimated in both halves of the volume. The covariance of these two values over all frames is
    :math:`\tau^2`, the variance between frames. Their difference gives the error variance :math:`v_t` of
    their mean. The mean is shrunk towards the average over frames by the factor :math:`\tau^2 / (\tau^2 +
    v_t)`. The contribution of noise to squared steps is subtracted.

    Parameters
    ----------
    movie : Movie
    linking : Linking
        Pairs and their probabilities.
    shift : (N, axes) float64 array
        Predicted displacement per frame of each detection.
    motion : Motion
        The average motion.

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
    """(F, 2, 2) for each frame and each half of the volume: number of links, and sum of their steps."""
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
