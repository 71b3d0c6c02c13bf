"""Restarts: learning from wider steps, or from flights, where that from usual ones overlooks particles."""

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
"""Degrees of freedom up to which tails tell of particles that diffuse farther than others; usual steps from
which on those do; and the share that may be wrong where they are seen to."""
_ASTRAY, _MORE, _GAINED = 0.3, 1.1, 1.15
"""Share of wrong links from which on flights are tried; how many times as many right links they must promise,
and how many times as many there must be."""


def fuller(movie: Movie, found: Found, model: LinkModel, means: Means) -> tuple[Found, Means]:
    """What is found from wider steps if particles seem to be overlooked, and that leaves fewer of them.

    Or from flights, if those let more be followed.

    Parameters
    ----------
    movie : Movie
    found : Found
        What was found of it so far.
    model : LinkModel
        With which all began.
    means : Means

    Returns
    -------
    Found, Means
        With more room, if wider steps were believed.
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
    """What is found if particles fly past their neighbours, where hardly a link is sure."""
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
    """The model of particles that step as far, but remember nothing."""
    motion = model.motion
    moved = np.sqrt(np.maximum(motion.step_variance(1) - 2 * np.square(motion.noise), 0))
    return replace(model, motion=Motion.static(tuple(moved.tolist()), motion.noise))
