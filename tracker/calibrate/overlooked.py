"""Overlooked particles, whose steps are so different from those of the others that no link follows them.

A few fast particles among many slow ones may be taken for clutter, and the learned model then confirms this.
Evidence for them: a detection without a successor is closer to a detection without a predecessor in the next
frame than unrelated detections are; or, if they move farther than that, there are many such detections. If
all particles fly past their neighbours, links join any detections that are near, and only three detections in
a line show how far particles fly (`flight`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..motion import Motion
from ..neighbours import nearest
from ..refine.candidates import pairs_of
from ..refine.linking import Linking, LinkModel
from ..refine.looks import BY_HEADINGS
from ..refine.movie import Movie
from .estimates import NeighbourDistances, first_step
from .maximise import gate_of

WIDER = 2.0
"""Factors by which the gate is enlarged in the search for fast sparse particles,"""
ROOMIER = 1.3
"""and in the search for particles that diffuse farther than others."""
_KEPT, _BLUR = 10.0, 0.15
"""Persistence in frames, and noise in steps, assumed in the search."""
_SURPLUS, _SURE = 0.1, 5.0
"""Excess over one half of the share of unlinked detections that are nearer than the median for unrelated
ones: least value, and least value in standard deviations."""

_MANY = 0.3
"""Share of detections without a successor above which particles that move farther than the spacing may have
been overlooked."""
_BROAD, _TAILS = 0.6, (3.0, 0.4)
"""Degrees of freedom and scale of the Student's t steps assumed in the search for diffusing particles."""
_SEEN, _FRAMES, _REACH = 3500, 7, 3.2
"""Detections, about, and frames, at least, in which flights are looked for, and how many steps far;"""
_FLIGHTS, _STRAIGHT, _SHARP = (0.45, 0.65, 1.0), (20.0, 5.0, 80.0), 0.1
"""of steps, along an axis, of so much of the room that a gate has; of such persistences, in frames; of such
noise, in steps."""
_SHOWN, _SURPRISE, _CLEARLY = 14_000, 3.0, 0.05
"""Detections by which it is told whether flights promise more than by chance; how much more they must promise
over the root of how many there are, for of few chance alone gives up to 3 of it; and of any number."""


def overlooked(movie: Movie, linking: Linking, *, workers: int = 1) -> tuple[float, bool]:
    """Standard deviation of a step, along an axis, of overlooked particles; 0 if there is no sign of any.

    Parameters
    ----------
    movie : Movie
    linking : Linking
        What was found of it.
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    float, bool
        This standard deviation; and whether it was measured, or only follows if there are such particles.

    Examples
    --------
    >>> from ..detections import Detections
    >>> from ..refine.movie import movie_of
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 20, (200, 3))
    >>> points = np.concatenate([place, place + rng.normal(0, 0.3, (200, 3))])
    >>> movie = movie_of(Detections.from_table(np.repeat([0, 1], 200), points), (1, 1, 1))
    >>> far, seen = overlooked(movie, Linking.none(400))
    >>> round(far, 1), seen
    (0.3, True)
    """
    # Whom a link follows only over a gap was overlooked as well, if it was not missed; many may have been.
    starts, ends = linking.before < 0, linking.follower < 0
    frame, gap = movie.frame, movie.ahead[movie.frame]
    late = ~starts & (frame - frame[linking.before] > gap[linking.before])
    soon = ~ends & (frame[linking.follower] - frame > gap)
    found = _far_ahead(movie, starts | late, ends | soon, workers)
    if found[1]:
        return found
    unlinked = _far_ahead(movie, starts, ends, workers)
    return unlinked if unlinked[1] else found


def _far_ahead(
    movie: Movie, starting: NDArray[np.bool_], ending: NDArray[np.bool_], workers: int
) -> tuple[float, bool]:
    """Step of the particles that start and end, as for `overlooked`."""
    frames = len(movie.frame_start) - 1
    starts, ends = np.nonzero(starting)[0], np.nonzero(ending)[0]
    # Each frame in two: first those that no link reaches, then those that none leaves.
    half = np.concatenate([2 * movie.frame[starts], 2 * movie.frame[ends] + 1])
    order = np.argsort(half, kind="stable")
    half, position = half[order], movie.position[np.concatenate([starts, ends])[order]]
    begins = np.searchsorted(half, np.arange(2 * frames + 1)).astype(np.int64)
    left = np.nonzero((half % 2 == 1) & (half < 2 * frames - 1))[0]
    _, ahead = nearest(position, begins, left, 1, offset=1, workers=workers)
    reached = np.nonzero((half % 2 == 0) & (half > 0))[0]
    _, beside = nearest(position, begins, reached, 1, workers=workers)
    between, within = (np.sqrt(found[np.isfinite(found)]) for found in (ahead, beside))
    if not (len(between) and len(within)):
        return 0.0, False
    usual = float(np.median(within))
    surplus = float(np.mean(between < usual)) - 0.5
    if surplus < max(_SURPLUS, _SURE * math.sqrt(0.5 / len(between))):
        return usual / math.sqrt(movie.axes) if len(between) > _MANY * len(movie.frame) else 0.0, False
    near = NeighbourDistances(np.zeros(len(between), np.int64), between, within)
    return first_step(near, movie.axes)[0], True


def sought(model: LinkModel, far: float, room: float) -> LinkModel:
    """The model for the search for fast particles, which are assumed to keep their direction.

    Particles that move far and change direction in each frame cannot be followed among others.

    Parameters
    ----------
    model : LinkModel
        The initial model, whose rates are kept.
    far : float
        Standard deviation of a step along an axis.
    room : float
        As in `gate_of`.
    """
    axes = model.motion.axes
    motion = Motion((0.0,) * axes, (far,) * axes, _KEPT, (_BLUR * far,) * axes)
    return replace(model, motion=motion, gate=gate_of(np.full(axes, far), room))


def unequal(model: LinkModel, far: float, room: float) -> LinkModel:
    """The model for the search for particles that diffuse fast among slow ones.

    Parameters
    ----------
    model, far, room
        As in `sought`.
    """
    step = np.full(model.motion.axes, _BROAD * far)
    return replace(
        model, motion=Motion.static(tuple(step.tolist())), gate=gate_of(step, room), freedom=_TAILS[0],
        scale=_TAILS[1],
    )  # fmt: skip


def flight(
    movie: Movie, play: Movie, model: LinkModel, room: float, share: float, *, workers: int = 1
) -> LinkModel | None:
    """The model of flights past neighbours with which more particles can be followed, if there is one.

    Some frames are linked by `refine.headings` under the assumption of such flights. If it is wrong, few
    detections are in a line and few links are probable. The number expected by chance is taken from a
    simulated movie of particles without persistence.

    Parameters
    ----------
    movie : Movie
    play : Movie
        A simulated movie of similar particles without persistence, from `rehearsal.drawn`.
    model : LinkModel
        The initial model, whose rates are kept.
    room : float
        As in `gate_of`.
    share : float
        Least number of right links per detection that must be expected.
    workers : int
        Threads; they do not change the result.
    """
    part = _part(movie, _SEEN)

    def best_of(persistences: tuple[float, ...]) -> tuple[float, LinkModel]:
        steps = [(far * room,) * movie.axes for far in _FLIGHTS]
        tried = [_flying(model, step, persistence) for persistence in persistences for step in steps]
        promised = [_promised(part, flying, workers) for flying in tried]
        most = max(promised)
        return most, tried[promised.index(most)]

    most, best = best_of(_STRAIGHT[:1])
    if most < share or not _surprising(movie, play, best, workers):
        return None
    more, other = best_of(_STRAIGHT[1:])
    return other if more > most else best


def _flying(model: LinkModel, step: tuple[float, ...], persistence: float) -> LinkModel:
    """A model of particles with this displacement per frame along each axis and this persistence."""
    noise = tuple(_SHARP * far for far in step)
    motion = Motion((0.0,) * len(step), step, persistence, noise)
    return replace(model, motion=motion, gate=tuple(_REACH * np.array(step)))


def _surprising(movie: Movie, play: Movie, flying: LinkModel, workers: int) -> bool:
    """Whether straight flights explain more links than in a movie without persistence."""
    if not len(play.frame):  # of a few detections none may be drawn
        return False
    shown, usual = _part(movie, _SHOWN), _part(play, _SHOWN)
    few = max(min(len(shown.frame), len(usual.frame)), 1)
    chance = 1 + max(_SURPRISE / math.sqrt(few), _CLEARLY)
    return _promised(shown, flying, workers) > chance * _promised(usual, flying, workers)


def _promised(part: Movie, flying: LinkModel, workers: int) -> float:
    """Expected number of right links per detection with such flights."""
    none, still = Linking.none(len(part.frame)), np.zeros_like(part.position)
    pairs = pairs_of(part, flying.gate, workers=workers)
    linking, _ = BY_HEADINGS.link(part, pairs, flying, none, still, workers=workers)
    return float(linking.trust.sum()) / len(part.frame)


def _part(movie: Movie, seen: int) -> Movie:
    """Some frames, and a part of the volume, with about this number of detections."""
    start = movie.frame_start
    part = movie.part(0, min(max(_FRAMES, int(np.searchsorted(start, seen))), len(start) - 1))
    frames = len(part.frame_start) - 1
    away = np.abs(part.position - np.median(part.position, axis=0)) / np.maximum(
        np.ptp(part.position, 0), 1e-300
    )
    most = int(seen * max(frames / _FRAMES, 1.0))
    if len(away) <= most:
        return part
    far = away.max(axis=1)
    kept = far <= np.partition(far, most)[most]
    frame = part.frame[kept]
    return replace(
        part, frame=frame, position=part.position[kept], order=part.order[kept],
        frame_start=np.searchsorted(frame, np.arange(frames + 1)),
    )  # fmt: skip
