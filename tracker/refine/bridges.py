"""Find candidates for gap links near predicted positions, within the distance at which they are useful."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .candidates import Pairs, over_gaps
from .linking import LinkModel
from .movie import Movie
from .sweep import Swept, swept

DOUBT = 3.0
"""Log odds by which a gap link may be worse than an end and a start, if the model is known."""
_BEYOND, _LONGER = 2.0, 1.5
"""Least gate, in standard deviations of a step, in frames with larger steps than usual."""
_SURE = 0.98
"""Probability of a link to the next frame above which no gap link is searched for the same detection."""


def with_gaps(
    movie: Movie,
    near: Pairs,
    model: LinkModel,
    shift: NDArray[np.float64],
    *,
    doubt: float = DOUBT,
    sure: float = _SURE,
    sweep: Callable[..., Swept] = swept,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Pairs:
    """The pairs that the past does not exclude, and gap pairs of detections without a certain link.

    Gap pairs are searched near the predicted position, within the distance at which a link is useful. All
    pairs are returned if the model allows no gaps.

    Parameters
    ----------
    near : Pairs
        Pairs to the next frame.
    doubt : float
        Log odds by which a gap link may be worse than an end and a start and still be weighed.
    sure : float
        Probability of a link to the next frame above which no gap link is searched.
    sweep : callable
        Returns beliefs from the past, as `swept` does.
    movie, model, shift, workers, most_bytes
        As in `link_pass` and `pairs_of`.
    """
    from .candidates_cpu import add_up

    motion, longest, near = model.motion.floored(), len(model.follow), _bridged(movie, near, model)
    if longest == 1 or not len(movie.frame):
        return near
    told = sweep(movie, near, model, shift, forward=True)
    pairs, known = told.pairs, np.zeros((2, len(movie.frame)))
    add_up(pairs.indptr, pairs.indices, told.chance, known)
    rows, cols = (np.nonzero(side < sure)[0] for side in known)
    mean = told.beliefs.past[0][rows]
    table, ahead, gates = movie.transitions(motion, longest, shift), [], []
    for gap in range(2, longest + 1):
        over = table[np.minimum(movie.frame[rows], len(table) - 1), gap]
        way = over[..., 0] * mean[..., 1] + over[..., 5] * shift[rows] + over[..., 6]
        ahead.append(mean[..., 0] + way - movie.position[rows])
        reach2 = table[:, gap, :, 0] ** 2 * np.square(motion.speed) + table[:, gap, :, 2]
        variance = reach2.max(axis=0) + 2 * np.square(motion.noise)
        gates.append(_gate_over(gap, model, variance, float(pairs.log_density.mean()), doubt))
    found = over_gaps(movie, pairs, gates, rows, cols, ahead, workers=workers, most_bytes=most_bytes)
    return _bridged(movie, found, model)


def _bridged(movie: Movie, pairs: Pairs, model: LinkModel) -> Pairs:
    """Remove pairs over times in which steps are as long as the gate, because others are near then."""
    reach = movie.reaches(model.motion)
    far = reach[:, None] * np.sqrt(model.motion.floored().step_variance(1)) * _BEYOND > np.asarray(model.gate)
    lost = far.any(axis=1) & (reach > _LONGER) & (movie.lasting(1) > 1)
    if not lost.any():
        return pairs
    until = np.append(0, np.cumsum(lost))
    over = until[movie.frame[pairs.indices]] - until[np.repeat(movie.frame, np.diff(pairs.indptr))]
    return pairs.where(over == 0)


def _gate_over(
    gap: int, model: LinkModel, variance: NDArray[np.float64], log_density: float, doubt: float
) -> tuple[float, ...]:
    """Radii along the axes beyond which a gap link is worse than an end and a start; 0 for none.

    Parameters
    ----------
    gap : int
        Number of frames between the detections.
    model : LinkModel
    variance : (axes,) float64 array
        Variance of an observed displacement over this number of frames.
    log_density : float
        Log of the detections per volume.
    doubt : float
        As in `with_gaps`.
    """
    odds = np.log(max(model.follow[gap - 1], 1e-12) / (model.end * model.start)) - log_density
    room = odds - 0.5 * np.log(2 * np.pi * variance).sum() + doubt
    if room <= 0:
        return (0.0,) * len(variance)
    if model.freedom > 0:
        far = model.freedom * model.scale * np.expm1(2 * room / (model.freedom + len(variance)))
    else:
        far = 2 * room
    widest = np.asarray(model.gate) * gap**0.75
    return tuple(np.minimum(np.sqrt(far * variance), widest).tolist())
