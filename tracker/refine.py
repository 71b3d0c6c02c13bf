"""Refinement: a whole movie is linked again and again, with what is known of every particle.

First by what all probable links tell of both ends of every pair (`weighed_softly`), then by the Kalman filter
along the links of the pass before, forward and backward in time (`link_pass`). Links over gaps are looked for
where the past expects the particle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .candidates import Pairs, kept_above, over_gaps, pairs_of
from .detections import Detections
from .link import Links
from .linking import Linking, LinkModel
from .looks import BY_DETECTIONS
from .movie import Movie, movie_of
from .sweep import Swept, swept
from .weigh import link_pass

_STILL = 0.01
"""Change of a link's trust that is none."""
DOUBT = 3.0
"""Log odds by which a link over a gap may lose to an end and a start, where the model is known."""
_BEYOND, _LONGER = 2.0, 1.5
"""Standard deviations of a step that the gate must hold, where particles go so many times as far as usual."""
_SURE = 0.98
"""Probability of a link to the next frame from which on no link over a gap is looked for beside it."""


def refine(
    detections: Detections,
    model: LinkModel,
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    passes: int = 10,
    solver: str = "bid_and_augment",
    workers: int = 1,
) -> Links:
    """Link a movie by a model that is known, pass after pass until no link and no trust changes.

    Parameters
    ----------
    detections : Detections
    model : LinkModel
        In units of position x spacing.
    spacing : (float, float, float)
    passes : int
        At most this many.
    solver : str
    workers : int
        Threads.

    Returns
    -------
    Links
        Cost is minus the log odds of a link; cost, margin and gap in nats.

    Examples
    --------
    >>> from .motion import Motion
    >>> seen = Detections.from_table([0, 0, 1, 1, 2, 2], [[0, 0, x] for x in (0, 9, 2, 7, 4, 5.2)])
    >>> motion = Motion.constant_velocity((2.0,), noise=(0.1,))
    >>> model = LinkModel(motion, follow=(0.9,), end=0.1, start=0.1, gate=(9.0,))
    >>> refine(seen, model).pairs.tolist()
    [[0, 2], [1, 3], [2, 4], [3, 5]]
    """
    movie = movie_of(detections, spacing, interval=1)
    near = pairs_of(movie, model.gate, workers=workers)
    shift = np.zeros_like(movie.position)
    none = Linking.none(len(movie.frame))
    pairs = with_gaps(movie, near, model, shift, workers=workers)
    linking, pairs = BY_DETECTIONS.link(movie, pairs, model, none, shift, solver=solver, workers=workers)
    for _ in range(passes - 1):
        known = linking
        linking = link_pass(movie, pairs, model, known, shift, solver=solver, workers=workers)
        if np.abs(known.trust - linking.trust).max(initial=0.0) < _STILL and not linking.changed.any():
            break
    return links_of(movie, linking)


def with_gaps(
    movie: Movie,
    near: Pairs,
    model: LinkModel,
    shift: NDArray[np.float64],
    *,
    doubt: float = DOUBT,
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
    sweep : callable
        Tells what the past expects, as `swept` does.
    movie, model, shift, workers, most_bytes
        As in `link_pass` and `pairs_of`.
    """
    from .candidates_cpu import add_up

    motion, longest, near = model.motion.floored(), len(model.follow), _bridged(movie, near, model)
    if longest == 1:
        return near
    told = sweep(movie, near, model, shift, forward=True)
    pairs, sure = told.pairs, np.zeros((2, len(movie.frame)))
    add_up(pairs.indptr, pairs.indices, told.chance, sure)
    rows, cols = (np.nonzero(side < _SURE)[0] for side in sure)
    mean = told.beliefs.past[0][rows]
    table, ahead, gates = movie.transitions(motion, longest, shift), [], []
    for gap in range(2, longest + 1):
        over = table[np.minimum(movie.frame[rows], len(table) - 1), gap]
        way = over[..., 0] * mean[..., 1] + over[..., 5] * shift[rows] + over[..., 6]
        ahead.append(mean[..., 0] + way - movie.position[rows])
        reach2 = table[:, gap, :, 0] ** 2 * np.square(motion.speed) + table[:, gap, :, 2]
        variance = reach2.max(axis=0) + 2 * np.square(motion.noise)
        gates.append(gate_over(gap, model, variance, float(pairs.log_density.mean()), doubt))
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
    indptr, indices, *_ = kept_above(pairs.indptr, pairs.indices, -over.astype(np.float64), -0.5)
    return replace(pairs, indptr=indptr, indices=indices)


def gate_over(
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


def links_of(movie: Movie, linking: Linking) -> Links:
    """Links between the detections as they were given, sorted by source.

    Parameters
    ----------
    movie : Movie
        All of it.
    linking : Linking

    Returns
    -------
    Links
        Cost is minus the log odds of a link; cost, margin and gap in nats.
    """
    place = np.empty(len(movie.order), dtype=np.int64)
    place[movie.order] = np.arange(len(movie.order))
    source = place[linking.follower[place] >= 0]
    return Links(
        np.column_stack([movie.order[source], movie.order[linking.follower[source]]]),
        -linking.gain[source],
        linking.margin[source],
        linking.gap,
        probability=linking.trust[source],
    )
