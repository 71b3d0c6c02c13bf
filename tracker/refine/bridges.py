"""Links over gaps are looked for where the past expects the particle, as far as they may still gain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .candidates import Pairs, over_gaps
from .linking import LinkModel
from .movie import Movie
from .sweep import Swept, swept

DOUBT = 3.0
"""Log odds by which a link over a gap may lose to an end and a start, where the model is known."""
_BEYOND, _LONGER = 2.0, 1.5
"""Standard deviations of a step that the gate must hold, where particles go so many times as far as usual."""
_SURE = 0.98
"""Probability of a link to the next frame from which on no link over a gap is looked for beside it."""


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
    """The pairs that the past does not exclude, and those over gaps of detections without a sure link.

    They are looked for where the past expects the particle, as far as a link may still gain. All pairs, if
    the model knows of no gaps.

    Parameters
    ----------
    near : Pairs
        To the next frame.
    doubt : float
        Log odds by which a link over a gap may lose to an end and a start and still be weighed.
    sure : float
        Probability of a link to the next frame from which on none over a gap is looked for beside it.
    sweep : callable
        Tells what the past expects, as `swept` does.
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
    """The pairs, but for those over times in which particles go as far as is looked: others are near then."""
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
    """Radii along the axes outside of which a link over a gap loses to an end and a start; 0 for none.

    Parameters
    ----------
    gap : int
        Frames from the one to the other.
    model : LinkModel
    variance : (axes,) float64 array
        Of an observed displacement over so many frames.
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
