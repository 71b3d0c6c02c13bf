"""Restarts: learning from wider steps, or from flights, where that from usual ones overlooks particles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .learning import learnt_from
from .linking import LinkModel
from .movie import Movie
from .overlooked import ROOMIER, WIDER, flight, overlooked, sought, unequal
from .passes import Found, Means

_FULLER, _UNUSUAL, _DOUBTED, _UNSURE = 0.9, 3.0, 0.1, 0.25
"""Share of the ends and starts that learning from wider steps must leave at most, to be believed; usual steps
from which on they count as wider; shares of the links gained that may be wrong, where particles keep their
way and where they do not."""
_HEAVY, _UNEQUAL = 3.0, 2.5
"""Degrees of freedom up to which tails tell of particles that diffuse farther than others; usual steps from
which on those do."""
_ASTRAY, _MORE, _GAINED = 0.3, (1.35, 1.1), (1.75, 1.15)
"""Share of wrong links from which on flights are tried; how many times as many right links they must promise,
where no way is kept yet and where one is, and how many times as many there must be."""


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
    far = overlooked(movie, found.linking, workers=means.workers)
    usual, passes = float(np.mean(found.learnt.step)), found.passes
    wider = [(sought, WIDER, _DOUBTED)] if far > _UNUSUAL * usual else []
    if 0 < found.model.freedom <= _HEAVY and far > _UNEQUAL * usual:
        wider.append((unequal, ROOMIER, _UNSURE))
    for look_for, more, doubted in wider:
        room = replace(means, room=more * means.room)
        again = learnt_from(movie, means.known.held(look_for(model, far, room.room)), room, lambda _: None)
        passes += again.passes
        left, still = (one.model.end + one.model.start for one in (found, again))
        (links, wrong), (all_links, all_wrong) = found.linking.expected, again.linking.expected
        if still < _FULLER * left and all_wrong - wrong <= doubted * (all_links - links):
            return replace(again, passes=passes), room
    return (replace(found, passes=passes) if wider else _flown(movie, found, model, means)), means


def _flown(movie: Movie, found: Found, model: LinkModel, means: Means) -> Found:
    """What is found if particles fly past their neighbours, where hardly a link is sure."""
    if found.linking.doubt < _ASTRAY or means.known.told or not means.room > 0 or means.frames < 3:
        return found
    right, count = float(found.linking.trust.sum()), len(movie.frame)
    known = found.model.motion.persistence > 0
    flying = flight(movie, model, means.room, _MORE[known] * right / count, workers=means.workers)
    if flying is None:
        return found
    again = learnt_from(movie, flying, means, lambda _: None, flying=True)
    passes = found.passes + again.passes
    if float(again.linking.trust.sum()) > _GAINED[known] * right:
        return replace(again, passes=passes)
    return replace(found, passes=passes)
