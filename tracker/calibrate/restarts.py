"""Restarts: learn again from longer initial steps, or from flights, if particles were overlooked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..motion import Motion
from ..refine.linking import LinkModel
from ..refine.movie import Movie
from .learning import learnt_from
from .overlooked import ROOMIER, WIDER, flight, overlooked, sought, unequal
from .passes import Found, Means
from .rehearsal import drawn, surface_of

_FULLER, _UNUSUAL, _DOUBTED, _UNSURE = 0.9, 3.0, 0.1, 0.25
"""Share of the ends and starts that learning from wider steps must leave at most, to be believed; usual steps
from which on they count as wider; shares of the links gained that may be wrong, where particles keep their
way and where they do not."""
_HEAVY, _UNEQUAL, _SEEN = 3.0, 2.5, 0.4
"""Degrees of freedom of tails below which some particles may diffuse farther than others; least step of
these, in usual steps; and accepted share of wrong links if such particles are measured."""
_ASTRAY, _MORE, _GAINED = 0.3, 1.1, 1.15
"""Share of wrong links above which flights are tried; factor by which the expected number of right links must
increase before the trial, and after it."""


def fuller(movie: Movie, found: Found, model: LinkModel, means: Means) -> tuple[Found, Means]:
    """Learn again from longer steps if particles seem to be overlooked, and keep the result if fewer are.

    Or learn from flights, if more particles can be followed with these.

    Parameters
    ----------
    movie : Movie
    found : Found
        The result so far.
    model : LinkModel
        The initial model.
    means : Means

    Returns
    -------
    Found, Means
        With a larger least gate, if longer steps were accepted.
    """
    far, seen = overlooked(movie, found.linking, workers=means.workers)
    usual, passes = float(np.mean(found.learnt.step)), found.passes
    wider = [(sought, WIDER, _DOUBTED)] if far > _UNUSUAL * usual else []
    if 0 < found.model.freedom <= _HEAVY and far > _UNEQUAL * usual:
        wider.append((unequal, ROOMIER, _UNSURE))
    elif seen and far > _UNUSUAL * usual:
        wider.append((unequal, WIDER, _SEEN))
    for look_for, more, doubted in wider:
        room = replace(means, room=more * means.room)
        wide = means.known.held(look_for(model, far, room.room))
        again = learnt_from(movie, wide, room, lambda _: None, flow=found.flow.anew())
        passes += again.passes
        left, still = (one.model.end + one.model.start for one in (found, again))
        (links, wrong), (all_links, all_wrong) = found.linking.expected, again.linking.expected
        if still < _FULLER * left and all_wrong - wrong <= doubted * (all_links - links):
            return replace(again, passes=passes), room
    return (replace(found, passes=passes) if wider else _flown(movie, found, model, means)), means


def _flown(movie: Movie, found: Found, model: LinkModel, means: Means) -> Found:
    """Learn again, assuming that particles fly past their neighbours, if most links are doubtful."""
    if found.linking.doubt < _ASTRAY or means.known.still or not means.room > 0 or means.frames < 3:
        return found
    right = float(found.linking.trust.sum())
    surface = surface_of(movie, found.linking, found.shift, found.model)
    play, _ = drawn(movie, _forgetful(found.model), means.frames, 0, surface)
    flying = flight(movie, play, model, means.room, _MORE * right / len(movie.frame), workers=means.workers)
    if flying is None:
        return found
    # Straight ways are found first, however soon they turn.
    begun = means.known.but("persistence").held(flying)
    again = learnt_from(movie, begun, means, lambda _: None, flying=True, flow=found.flow.anew())
    passes = found.passes + again.passes
    if float(again.linking.trust.sum()) > _GAINED * right:
        return replace(again, passes=passes)
    return replace(found, passes=passes)


def _forgetful(model: LinkModel) -> LinkModel:
    """The model of particles with the same step length but without persistence."""
    motion = model.motion
    moved = np.sqrt(np.maximum(motion.step_variance(1) - 2 * np.square(motion.noise), 0))
    return replace(model, motion=Motion.static(tuple(moved.tolist()), motion.noise))
