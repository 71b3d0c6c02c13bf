"""Rehearsal: learn from a simulated movie whose truth is known, to measure the bias of the estimates.

If particles come close to each other, wrong links reduce velocities, short steps are found more often than
long ones, and two particles that are exchanged and exchanged back look like noise. The same happens in a
movie that is simulated with the learned model at the positions of the real one and linked with the same
model. The difference between the estimates from its true links and those from its probable links is added to
the estimates for the real movie (bias correction by a parametric bootstrap; Efron & Tibshirani 1993, chapter
10).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..refine.bridges import with_gaps
from ..refine.candidates import pairs_of
from ..refine.choose import sobriety_of
from ..refine.linking import Linking, LinkModel
from ..refine.looks import BY_DETECTIONS, Look
from ..refine.movie import Movie
from ..refine.untangle import untangled
from ..refine.weigh import link_pass
from .maximise import Bias, bias_of
from .surfaces import Surface

_ENOUGH = 20_000
"""Approximate number of simulated detections,"""
_FEWEST, _MOST = 14, 50
"""and least and largest number of frames, unless the movie is shorter. With fewer frames, too many detections
are near the first and last frame; with more frames and fewer particles, too many are near a wall."""
_KNOWN = _ENOUGH // _FEWEST
"""Number of positions that describe surfaces."""
_EMPTY = 0.05
"""Share of empty frames above which no movie is simulated: simulated movies have none."""
_THROUGH = 1.0
"""Largest persistence length relative to the volume: simulated particles are reflected by walls."""
_UNLIKE, _FEW = 1.5, 0.02
"""Largest ratio, in either direction, of the shares of wrong links in the simulated and the real movie, and
largest difference; otherwise real particles do not move as in the model."""


def rehearsed(
    movie: Movie,
    model: LinkModel,
    frames: int,
    seed: int,
    *,
    wrong: float,
    doubt: float,
    look: Look = BY_DETECTIONS,
    surface: Surface | None = None,
    last: bool = False,
    solver: str,
    workers: int,
) -> Bias | None:
    """Bias of the links of a movie; None if the simulated movie differs too much from the real one.

    Parameters
    ----------
    movie : Movie
    model : LinkModel
    frames : int
        Number of frames in the whole movie, if this is a part.
    seed : int
    wrong : float
        Expected share of wrong links in the movie.
    doubt : float
        As in `with_gaps`.
    look : Look
        Settings of the search for candidates.
    surface : Surface, optional
        Surface as returned by `surface_of`.
    last : bool
        Whether probabilities are needed, for which the current estimates suffice.
    solver, workers
        As in `link_pass`.
    """
    width, flight = np.ptp(movie.bounds, axis=0), model.motion.persistence * np.asarray(model.motion.speed)
    if (
        np.mean(np.diff(movie.frame_start) == 0) > _EMPTY
        or np.mean(flight / np.maximum(width, 1e-300)) > _THROUGH
    ):
        return None
    play, truth = drawn(movie, model, frames, seed, surface)
    if not len(play.frame):
        return None
    still, none = np.zeros_like(play.position), Linking.none(len(play.frame))
    pairs = pairs_of(play, model.gate, workers=workers)
    pairs = with_gaps(play, pairs, model, still, doubt=doubt, sweep=look.sweep, workers=workers)
    found, pairs = look.link(play, pairs, model, none, still, solver=solver, workers=workers)
    if not min(wrong / _UNLIKE, wrong - _FEW) <= found.doubt <= max(wrong * _UNLIKE, wrong + _FEW):
        return None
    bias, settled = bias_of(play, found, truth, model), found
    if not last:
        return bias
    if model.motion.persistence > 0:
        better = untangled(play, model, found, pairs.log_density, still, workers=workers)
        settled = link_pass(play, pairs, model, better, still, caution=1.0, solver=solver, workers=workers)
    return replace(bias, sobriety=sobriety_of(found, settled, truth.follower))


def surface_of(
    movie: Movie, linking: Linking, shift: NDArray[np.float64], model: LinkModel
) -> Surface | None:
    """The surfaces or fibres on which particles lie and along which they move; None if there are none.

    Parameters
    ----------
    movie : Movie
    linking : Linking
        Links that give the steps.
    shift : (N, axes) float64 array
        Predicted displacement per frame of each detection; motion is the residual.
    model : LinkModel
    """
    rows, _ = _places(movie, _KNOWN)
    surface = Surface.of(movie.position[rows], np.sqrt(model.motion.floored().step_variance(1)))
    if surface is None:
        return None
    step = (movie.steps(linking.follower) - shift)[rows]
    known = np.isfinite(step).all(axis=1)
    stays = surface.holds(movie.position[rows][known], step[known], np.asarray(model.motion.noise))
    return surface if stays else None


def drawn(
    movie: Movie, model: LinkModel, frames: int, seed: int, surface: Surface | None = None
) -> tuple[Movie, Linking]:
    """Simulate a movie with the model; returns it with its true links.

    Particles start at the positions in a frame of the movie, move between its walls, and are detected, missed
    and lost. New particles, clutter, and particles that are missed at first are placed at random detections.

    Parameters
    ----------
    movie : Movie
        A movie without drift.
    model : LinkModel
    frames : int
        Largest number of frames.
    seed : int
        Seed of the simulation.
    surface : Surface, optional
        Surface along which particles move. Default: no surface.

    Examples
    --------
    >>> from ..detections import Detections
    >>> from ..motion import Motion
    >>> from ..refine.movie import movie_of
    >>> place = np.random.default_rng(0).uniform(0, 9, (500, 3))
    >>> still = movie_of(Detections.from_table(np.repeat(np.arange(5), 100), place), (1, 1, 1))
    >>> model = LinkModel(Motion.static((0.1,) * 3), (0.9,), 0.1, 0.1, gate=(0.5,) * 3)
    >>> play, truth = drawn(still, model, frames=20, seed=0)
    >>> round(float(np.mean(truth.follower[: play.frame_start[-2]] >= 0)), 1)
    0.9
    """
    rng = np.random.default_rng(seed)
    # Elsewhere the surface is not known.
    rows, pool = _places(movie, _KNOWN if surface else _ENOUGH // min(_FEWEST, frames))
    begin = movie.position[rows]
    walls = np.array([pool.min(axis=0), pool.max(axis=0)])
    real, count = 1 - model.clutter, len(begin)
    follow = np.minimum(np.cumsum(model.follow) / real, 1.0)
    speed, noise = np.asarray(model.motion.speed), np.asarray(model.motion.noise)

    def somewhere(mean: float) -> NDArray[np.float64]:
        place = pool[rng.integers(len(pool), size=rng.poisson(mean))]
        # Away from where it was: what begins there is no particle that was seen there.
        place = _turned(place + rng.uniform(-1, 1, place.shape) * model.gate, walls)[0]
        return place if surface is None else surface.onto(place)

    # Of each particle: where it is, how fast, when it is seen next, and its last detection.
    place = begin[rng.random(count) < real]
    # Some are not seen in the first frame, but in one of the next.
    unseen = [somewhere(count * real * (follow[-1] - seen)) for seen in follow[:-1]]
    due = np.repeat(np.arange(len(follow)), [len(place), *map(len, unseen)])
    place = np.concatenate([place, *unseen])
    last = np.full(len(place), -1)
    velocity = speed * _normal(place, surface, rng)
    position, before, size = [], [], [0]
    paces, lasting = (each[: max(len(each) - 1, 1)] for each in (movie.paces, movie.lasting(1)))
    for frame in range(min(int(np.clip(_ENOUGH // count, _FEWEST, _MOST)), frames)):
        seen, clutter = np.nonzero(due == frame)[0], somewhere(count * model.clutter)
        position += [place[seen] + noise * rng.normal(size=(len(seen), movie.axes)), clutter]
        before += [last[seen], np.full(len(clutter), -1)]
        last[seen] = size[-1] + np.arange(len(seen))
        size.append(size[-1] + len(seen) + len(clutter))
        gap = 1 + np.searchsorted(follow, rng.random(len(seen)), side="right")
        due[seen] = np.where(gap > len(follow), frame, frame + gap)
        alive, born = due > frame, somewhere(count * real * (1 - follow[-1]))
        place, velocity = _walked(
            place[alive],
            velocity[alive],
            model.motion.transition(float(lasting[frame % len(lasting)])),
            paces[frame % len(paces)],
            walls,
            surface,
            rng,
        )
        place = np.concatenate([place, born])
        velocity = np.concatenate([velocity, speed * _normal(born, surface, rng)])
        due = np.append(due[alive], np.full(len(born), frame + 1))
        last = np.append(last[alive], np.full(len(born), -1))
    return _movie_of(movie, np.concatenate(position), np.array(size), np.concatenate(before))


def _normal(
    place: NDArray[np.float64], surface: Surface | None, rng: np.random.Generator
) -> NDArray[np.float64]:
    return rng.normal(size=place.shape) if surface is None else surface.normal(place, rng)


def _walked(
    place: NDArray[np.float64],
    velocity: NDArray[np.float64],
    transition: NDArray[np.float64],
    pace: float,
    walls: NDArray[np.float64],
    surface: Surface | None,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions and velocities one frame later, for a motion scaled by `pace`."""
    reach, kept, spread, mixed, fresh = transition.T
    turn = mixed / np.sqrt(np.maximum(spread, 1e-300))
    jerk, push = (_normal(place, surface, rng) for _ in range(2))
    velocity = velocity if surface is None else surface.along(place, velocity)
    onward = kept * velocity + turn * jerk + np.sqrt(np.maximum(fresh - turn**2, 0)) * push
    place, turned = _turned(place + pace * reach * velocity + pace * np.sqrt(spread) * jerk, walls)
    return place if surface is None else surface.onto(place), np.where(turned, -onward, onward)


def _turned(
    place: NDArray[np.float64], walls: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Reflect positions at the walls; returns them with the axes of reflection."""
    inside = np.clip(place, *walls)
    return np.clip(2 * inside - place, *walls), inside != place


def _full(movie: Movie) -> int:
    """A middle frame among those with at least the usual number of detections, not the last of several."""
    size = np.diff(movie.frame_start)
    full = np.nonzero(size >= size.mean())[0]
    frame = int(full[len(full) // 2])
    return frame if frame + 1 < len(size) or frame == 0 else int(np.argmax(size[:-1]))


def _places(movie: Movie, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Detections of a middle frame, and positions of all others; if many, only in a part of the volume."""
    frame = _full(movie)
    rows = np.arange(*movie.frame_start[frame : frame + 2])
    if len(rows) <= most:
        return rows, movie.position
    begin = movie.position[rows]
    width = np.maximum(np.ptp(begin, axis=0), 1e-300)
    here, there = (
        (np.abs(places - np.median(begin, axis=0)) / width).max(axis=1) for places in (begin, movie.position)
    )
    reach = np.partition(here, most - 1)[most - 1]
    return rows[np.argsort(here, kind="stable")[:most]], movie.position[there <= reach]


def _movie_of(
    like: Movie, position: NDArray[np.float64], start: NDArray[np.int64], before: NDArray[np.int64]
) -> tuple[Movie, Linking]:
    """Assemble a movie from detections by frame, with links from the previous detection of each."""
    frame = np.repeat(np.arange(len(start) - 1), np.diff(start))
    col = np.nonzero(before >= 0)[0]
    row, follower = before[col], np.full(len(frame), -1)
    follower[row] = col
    order = np.argsort(row)
    trust = (follower >= 0).astype(np.float64)
    truth = replace(
        Linking.none(len(frame)), follower=follower, before=before, trust=trust,
        row=row[order].astype(np.int32), col=col[order].astype(np.int32), probability=np.ones(len(col)),
    )  # fmt: skip
    frames = len(start) - 1
    pace = None if like.pace is None else np.resize(like.pace[:-1], frames)
    time = (
        None if like.time is None else np.append(0, np.cumsum(np.resize(like.lasting(1)[:-1], frames)))[:-1]
    )
    return Movie(frame, position, np.arange(len(frame)), start, like.names, pace=pace, time=time), truth
