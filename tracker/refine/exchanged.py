"""Exchanged: detections of two tracks that pass so near each other that either could be the other's.

Links are weighed pair by pair, by what is believed of each of both ends, as one Gaussian. So two links that
are wrong together, into a detection of another track and out of it again, make each other sure: the one has
told the past of the other. What both tracks say of the detections between tells how likely that is.
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
"""Standard deviations of where a track is expected within which its detection may be another's."""

_SAMPLE = 1000
"""Detections that tell how far that is."""
_MOST = 50.0
"""Log odds from which on all are alike."""
_LEAST = 1e-6
"""Share of its parts that a difference is at least."""


def doubted(
    movie: Movie, model: LinkModel, linking: Linking, shift: NDArray[np.float64], *, workers: int = 1
) -> Linking:
    r"""The links with no more trust than that no end of theirs belongs to another track.

    Detections x and y of a frame that two tracks expect at a and b, the detections themselves left out, with
    variances :math:`s_a, s_b` of the expectation and the noise together, are exchanged with the odds

    .. math:: \exp \tfrac12 \Big[\frac{(x - a)^2 - (y - a)^2}{s_a} + \frac{(y - b)^2 - (x - b)^2}{s_b}\Big]

    summed over the axes and over all such y.

    Parameters
    ----------
    movie : Movie
    model : LinkModel
        Of particles that keep a velocity: others are not expected anywhere.
    linking : Linking
    shift : (N, axes) float64 array
        Displacement in one frame that is known of each detection beforehand.
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
    """The pairs among some detections of one frame that are so near each other, each once."""
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
    """(K, axes) where detections are expected by those before and after them, and the variance to be seen."""
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
