"""Exchanged: detections of two tracks that are so close that each may belong to the other track.

Each pair is weighed with one Gaussian belief for each of its ends. So two wrong links, to a detection of
another track and back, confirm each other: the first one determines the past of the second. The predictions
of both tracks for the detections in between show how probable this is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .linking import Linking, LinkModel
from .movie import Movie
from .sweep import Beliefs
from .weigh import chained

_REACH = 6.0
"""Distance from the prediction of a track, in standard deviations, within which its detection may belong to
another track."""

_SAMPLE = 1000
"""Number of detections from which this distance is estimated."""
_MOST = 50.0
"""Limit of log odds."""
_LEAST = 1e-6
"""Least value of a difference, relative to its terms."""


def doubted(
    movie: Movie, model: LinkModel, linking: Linking, shift: NDArray[np.float64], *, workers: int = 1
) -> Linking:
    r"""Limit the trust of links to the probability that neither end belongs to another track.

    Let x and y be detections of two tracks in the same frame, and a and b the positions predicted from the
    other detections of each track, with variances :math:`s_a, s_b` that include the noise. The odds that they
    are exchanged are

    .. math:: \exp \tfrac12 \Big[\frac{(x - a)^2 - (y - a)^2}{s_a} + \frac{(y - b)^2 - (x - b)^2}{s_b}\Big]

    summed over the axes and over all such y.

    Parameters
    ----------
    movie : Movie
    model : LinkModel
        A model with velocities; without these, positions are not predicted.
    linking : Linking
    shift : (N, axes) float64 array
        Predicted displacement per frame of each detection.
    workers : int
        Threads; they do not change the result.
    """
    from .exchanged_cpu import add_odds

    inner = np.nonzero((linking.before >= 0) & (linking.follower >= 0))[0]
    if not len(inner):
        return linking
    beliefs = chained(movie, model, linking, linking.trust, shift, workers)
    some = inner[:: max(1, len(inner) // _SAMPLE)]
    usual = float(np.median(_between(movie, model, linking, beliefs, some, shift)[1]))
    row, col = _near(movie, inner, _REACH * float(np.sqrt(usual)))
    met, place = np.unique(np.concatenate([row, col]), return_inverse=True)
    if not len(met):
        return linking
    expected, variance = _between(movie, model, linking, beliefs, met, shift)
    a, b = np.split(place, 2)
    odds, sure = np.zeros(len(met)), np.ones(len(movie.frame))
    add_odds(movie.position, row, col, a, b, expected, variance, _MOST, odds)
    sure[met] = 1 / (1 + odds)
    trust = np.minimum(linking.trust, np.minimum(sure, sure[linking.follower]))
    return replace(linking, trust=np.where(linking.follower >= 0, trust, 0.0))


def _near(
    movie: Movie, inner: NDArray[np.int64], radius: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of detections in the same frame within this distance, each once."""
    from .exchanged_cpu import near_in_frame

    extent = np.diff(movie.bounds, axis=0)[0]
    axis = int(np.argmax(extent))
    order = inner[np.lexsort((movie.position[inner, axis], movie.frame[inner]))]
    position, frame, room = movie.position[order], movie.frame[order], 2 * len(order)
    while True:
        row, col = np.empty(room, np.int64), np.empty(room, np.int64)
        found = near_in_frame(position, frame, axis, radius, row, col)
        if found <= room:
            return order[row[:found]], order[col[:found]]
        room = found


def _between(
    movie: Movie,
    model: LinkModel,
    linking: Linking,
    beliefs: Beliefs,
    inner: NDArray[np.int64],
    shift: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(K, axes) positions predicted from previous and next detections, and variances of observations."""
    from .exchanged_cpu import expect

    motion = model.motion.floored()
    frame, before, after = movie.frame, linking.before[inner], linking.follower[inner]
    longest = max((frame[inner] - frame[before]).max(), (frame[after] - frame[inner]).max())
    table = movie.transitions(motion, int(longest), shift)
    expected, variance = np.empty((2, len(inner), movie.axes))
    expect(
        inner, before, after, frame, *beliefs.past, *beliefs.future, shift, table,
        1 / np.square(motion.speed), np.square(motion.noise), _LEAST, expected, variance,
    )  # fmt: skip
    return expected, variance
