"""Untangle: tracks that hold each other's tails, or a detection of each other, are put right.

Links are weighed pair by pair, by the past of the one and the future of the other. Where two tracks pass each
other by, links that are wrong together make each other sure: each has told the past or the future of the
other. What is exchanged at once, between whole tracks, shows which was right.
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
"""Probability from which on a pair may be what was exchanged."""
_SURE = 0.5
"""Trust of the least probable link once nothing can be exchanged. With less, links that are wrong together
still hold each other; with 1, one jump of a particle breaks the links before and after it as well."""
_SWEEPS = 5
"""Looks at every track at most, as long as something changes around it."""


def untangled(
    movie: Movie,
    model: LinkModel,
    linking: Linking,
    log_density: NDArray[np.float64],
    shift: NDArray[np.float64],
    *,
    workers: int = 1,
) -> Linking:
    r"""As many links, by which the tracks are more likely.

    Track A goes :math:`\ldots p, x, a \ldots` and track B :math:`\ldots q, y, b \ldots`. Wherever p, y is a
    probable pair, exchanges are tried: of tails, to p, y, b and q, x, a, where q or x may be missing; of one
    detection, to p, y, a and q, x, b, where q, a or b may be missing, and q, x is probable as well; and where
    A was not seen when y was, that y is its own: p, y, x and q, b, where q or b may be missing. The
    likelihood of both tracks before and after follows from the Kalman filter along each, forward up to p and
    q and backward from what comes after, so that one exchange costs as much as a few pairs to weigh. What
    gains most at p is done, and both tracks are filtered anew as far as that changes a belief; then rows near
    what changed are looked at again, a few times. With Gaussian steps the likelihood of all tracks together
    never falls.

    Links count as certain meanwhile, and for more than before afterwards. What is gained has no certificate:
    this is a better start for `link_pass`, whose links have one.

    Parameters
    ----------
    movie : Movie
    model : LinkModel
        Of particles that remember a velocity: others are not tangled up. Without a future nothing is either.
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
        With other links and more trust; what is known of pairs stays.
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
    """(4,) what the kernels know of Student's t; 0 for a Gaussian."""
    nu = model.freedom
    if nu <= 0:
        return np.zeros(4)
    constants = [
        lgamma((nu + size) / 2) - lgamma(nu / 2) - size / 2 * log(nu * model.scale / 2)
        for size in (axes, 2 * axes)
    ]
    return np.array([nu, 1 / (nu * model.scale), *constants])
