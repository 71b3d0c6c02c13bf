"""Untangle: correct pairs of tracks that have exchanged their tails or a detection.

Each link is weighed with the past of one detection and the future of the other. If two tracks pass close to
each other, wrong links confirm each other, because each determines the past or future of the other. A
comparison of whole tracks before and after an exchange shows which links are right.
"""

from __future__ import annotations

from dataclasses import replace
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from .candidates import kept_above, starts_of
from .linking import Linking, LinkModel
from .movie import Movie
from .weigh import chained, futures

_PROBABLE = 0.02
"""Least probability of a pair for an exchange."""
_SURE = 0.5
"""Trust of the least probable link after all exchanges. With a lower value, links that are wrong together
still confirm each other; with 1, one jump of a particle also breaks the links before and after it."""
_SWEEPS = 5
"""Largest number of visits to each track while something changes around it."""


def untangled(
    movie: Movie,
    model: LinkModel,
    linking: Linking,
    log_density: NDArray[np.float64],
    shift: NDArray[np.float64],
    *,
    workers: int = 1,
) -> Linking:
    r"""Exchange links so that the likelihood of the tracks increases.

    Track A goes :math:`\ldots p, x, a \ldots` and track B :math:`\ldots q, y, b \ldots`. Wherever p, y is a
    probable pair, three kinds of exchange are tried: of tails, to p, y, b and q, x, a, where q or x may be
    missing; of one detection, to p, y, a and q, x, b, where q, a or b may be missing, if q, x is probable as
    well; and, if A has no detection in the frame of y, a transfer of y to A: p, y, x and q, b, where q or b
    may be missing. The likelihoods of both tracks before and after follow from the Kalman filter, forward up
    to p and q and backward from the later detections, so an exchange costs as much as weighing a few pairs.
    The exchange with the largest gain at p is made, and both tracks are filtered again as far as beliefs
    change. Then rows near the change are visited again, a few times. With Gaussian steps, the total
    likelihood of all tracks never decreases.

    During this, links count as certain, and afterwards they have more trust than before. The result has no
    certificate; it is a better start for `link_pass`, whose links have one.

    Parameters
    ----------
    movie : Movie
    model : LinkModel
        A model with velocities, used two-sided; otherwise nothing is changed.
    linking : Linking
    log_density : (N,) float64 array
        Log of the detections per volume around each detection.
    shift : (N, axes) float64 array
        Displacement in one frame that is known of each detection beforehand.
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    Linking
        With other links and more trust; the values of pairs are unchanged.
    """
    if not model.two_sided:
        return linking
    from .untangle_cpu import untangle

    motion, (count, axes) = model.motion.floored(), movie.position.shape
    linked = linking.follower >= 0
    beliefs = chained(movie, model, linking, linked.astype(np.float64), shift, workers)
    (before, after), (past, future) = beliefs.alone, (beliefs.past, beliefs.future)
    speed2, noise2 = np.square(motion.speed), np.square(motion.noise)
    place, weight, constant = futures(movie, beliefs, motion, workers)
    # The pass may have looked over longer gaps than the model, learned since, expects.
    longest = max(linking.longest(movie.frame), len(model.follow))
    indptr = starts_of(linking.row, count)
    indptr, col, *_ = kept_above(indptr, linking.col, linking.probability, _PROBABLE)
    links = np.stack([linking.follower, linking.before])
    untangle(
        movie.position, movie.frame, shift, links, *past, *future, place, weight, constant,
        movie.transitions(motion, longest, shift), speed2, noise2, _tail(model, axes),
        model.freedom_to_link(before, model.end), model.gain_of_gap(longest),
        model.freedom_to_link(after, model.start) - log(model.start) - log_density,
        indptr, col, _SWEEPS,
    )  # fmt: skip
    trust = np.where(links[0] >= 0, _SURE + (1 - _SURE) * linking.trust, 0.0)
    return replace(linking, follower=links[0], before=links[1], trust=trust)


def _tail(model: LinkModel, axes: int) -> NDArray[np.float64]:
    """(4,) parameters of Student's t for the kernels; 0 for a Gaussian."""
    nu = model.freedom
    if nu <= 0:
        return np.zeros(4)
    constants = [
        lgamma((nu + size) / 2) - lgamma(nu / 2) - size / 2 * log(nu * model.scale / 2)
        for size in (axes, 2 * axes)
    ]
    return np.array([nu, 1 / (nu * model.scale), *constants])
