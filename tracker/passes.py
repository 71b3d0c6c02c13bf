"""Passes: a movie is linked, the links tell the model, and by that it is linked again.

First a part of the movie, until the links stop changing (`learnt_from`), or from wider steps where particles
seem to be overlooked (`fuller`); then the whole by what the part told (`told`), and by the past and the
future of the links themselves (`settled`). Where many links must be wrong, a movie that is drawn by what was
learned so far shows what they hide (`rehearsed`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from .candidates import Pairs, no_longer, pairs_of
from .choose import sobered
from .flow import Flow
from .headings import heading_pass, look_of
from .known import Known
from .learn import Bias, Learnt, learned, motion_learned
from .linking import Linking, LinkModel
from .movie import Movie
from .overlooked import ROOMIER, WIDER, flight, overlooked, sought, unequal
from .refine import DOUBT, link_pass, possible, still_links, with_gaps
from .rehearsal import rehearsed
from .untangle import untangled

PASSES = 20
"""Passes over a part of the movie from which most is learned, unless the links stop changing before."""
LAST_PASSES, _MOST_LAST, _SMALL = 1, 6, 60_000
"""Passes over the whole movie by the links of the pass before, at most: the first, or the second if all of
them together look at no more detections than the third."""
_DOUBT = 5.0
"""Log odds by which a link over a gap may lose to an end and a start while rates are learned."""
_FLOWING = 4
"""Passes over the whole movie, at most, in which the flow gets known, where there is one."""
_FEWEST = 3
"""Passes that it takes at least to learn: to link, to link by the motion learned, and to see what changed."""
_DOUBTFUL, _EVERY, _HEED = 0.04, 2, 0.5
"""Share of wrong links from which on what they tell is corrected by rehearsals, one every so many passes; and
how much the newest counts among all."""
_CLOSE_DOUBT, _DOUBTLESS = 0.01, 0.02
"""The same where they are found by `headings`; share up to which those tell nothing more of a whole movie."""
_SETTLED, _OF_WRONG = 0.005, 0.1
"""Shares of the links, and of those that are wrong, that may still change when the passes end."""
_SAME = 0.05
"""And the change of the rates of ends and starts, relative to them."""
_PATIENT = 5
"""Passes after which they end as well if"""
_STUCK = 0.9
"""as many links change as this share of those two passes before: some pairs swap for ever."""
_ALIKE = 0.3
"""Candidates are kept while what was learned stays the same but for this share."""
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
_FALLEN = 0.85
"""Share of the right links of the pass before that flights must keep."""
_RARE = 5e-4
"""Share of gaps so long among all links below which they are not looked for any more."""


@dataclass(frozen=True)
class Means:
    """What no pass changes; as in `calibrate` and `learned`."""

    room: float
    frames: int  # of the whole movie
    max_gap: int
    known: Known
    solver: str
    workers: int
    most_bytes: int | None

    def held(self, learnt: Learnt) -> Learnt:
        """What was learned, but for what is known."""
        return replace(learnt, model=self.known.held(learnt.model), step=self.known.step(learnt.step))

    @property
    def solving(self) -> _Solving:
        """What a pass needs to know of them."""
        return _Solving(solver=self.solver, workers=self.workers)

    @property
    def looking(self) -> _Looking:
        """What a search for candidates needs to know of them."""
        return _Looking(workers=self.workers, most_bytes=self.most_bytes)


class _Solving(TypedDict):
    """Arguments of every pass."""

    solver: str
    workers: int


class _Looking(TypedDict):
    """Arguments of every search."""

    workers: int
    most_bytes: int | None


@dataclass(frozen=True, eq=False)
class Found:
    """A movie as it was linked last, and what was learned by then; pairs are those worth another look."""

    linking: Linking
    pairs: Pairs
    model: LinkModel
    learnt: Learnt
    shift: NDArray[np.float64]
    crowd: int | None
    flow: Flow
    passes: int
    bias: Bias
    closely: bool  # whether by `headings`


def learnt_from(
    movie: Movie, model: LinkModel, means: Means, tell: Callable[[int], None], *, closely: bool = False
) -> Found:
    """Link a movie, learn from the links, link again, until no more links change.

    Parameters
    ----------
    movie : Movie
        Or a part of it.
    model : LinkModel
        To begin with.
    means : Means
    tell : callable
        Told how many detections were linked, after every pass.
    closely : bool
        Whether by `headings` from the first pass on; else where many links must be wrong.
    """
    count, max_gap = len(movie.frame), means.max_gap
    near = pairs_of(movie, model.gate, **means.looking)
    gate, pairs, looked = model.gate, near, model
    flow = Flow(movie.frame_start, movie.position, workers=means.workers)
    linking, shift, crowd, flowing = Linking.none(count), np.zeros_like(movie.position), None, True
    done, bias, heed = 0, Bias.none(movie.axes), 1.0
    changes: list[int] = []
    look, flying, kept = look_of(model, closely=closely), closely, None
    for done in range(1, PASSES + 1):
        known = linking
        if done == 1 and model.motion.persistence == 0:  # nobody is known to remember anything yet
            first = possible(movie, near, model)
            linking = link_pass(movie, first, model, known, shift, **means.solving)
        elif crowd is not None or done <= _FEWEST or not _alike(model, looked):
            sweep, one_pass = look
            pairs = with_gaps(movie, near, model, shift, doubt=_DOUBT, sweep=sweep, **means.looking)
            linking, pairs = one_pass(movie, pairs, model, known, shift, **means.solving)
            looked = model
        else:
            linking, _ = look[1](movie, pairs, model, known, shift, **means.solving)
        tell(count)
        changes.append(int(linking.changed.sum()))
        if flowing:
            shift, crowd = flow.foretold(_steps(movie, linking.follower))
            flowing = crowd is not None or done < 3
        before, tried = model, len(model.follow) > 1
        doubt = linking.doubt
        crowded = doubt > (_CLOSE_DOUBT if closely else _DOUBTFUL) and done >= _FEWEST
        # A flow takes longer to be known, and then may tell where particles go.
        known_by = _FEWEST if crowd is None else _PATIENT
        turning = crowded and not closely and model.motion.persistence > 0 and done >= known_by
        if crowded and not turning and (done - _FEWEST) % _EVERY == 0:
            frames = len(movie.frame_start) - 1
            latest = rehearsed(
                movie, model, frames, done, wrong=doubt, doubt=_DOUBT, look=look, **means.solving
            )
            bias, heed = (bias, heed) if latest is None else (bias.towards(latest, heed), _HEED)
        learnt = means.held(learned(movie, linking, shift, model, max_gap, means.room, bias))
        model, closely = learnt.model, closely or turning
        if (
            flying and done < _FEWEST
        ):  # tails are measured by what was tried, which is far from what was found
            model = replace(model, freedom=0.0, scale=1.0)
        if flying and kept is not None and linking.trust.sum() < _FALLEN * kept[0].trust.sum():
            linking, pairs, model, learnt, shift, crowd = kept
            doubt = linking.doubt
            break
        kept = linking, pairs, model, learnt, shift, crowd
        look = look_of(model, closely=closely)
        while tried and 0 < max_gap < len(model.follow) and model.follow[max_gap] < _RARE:
            max_gap -= 1  # most of the pairs of a movie lie over the longest gap
            model = replace(model, follow=model.follow[:-1])
        # Candidates are kept while the gate stays about what it was.
        if not np.allclose(gate, model.gate, rtol=0.1):
            near = pairs_of(movie, model.gate, **means.looking)
            gate = model.gate
        stuck = done >= _PATIENT and changes[-1] > _STUCK * changes[-3]
        was, now = ((one.end, one.start, 1 - one.follow[0]) for one in (before, model))
        same = np.allclose(was, now, rtol=_SAME, atol=_SETTLED / 5)
        settled = changes[-1] <= max(_SETTLED, _OF_WRONG * doubt) * count
        if stuck or (done >= _FEWEST and same and settled):
            break
    pairs = no_longer(movie, pairs, len(model.follow))  # the longest gaps may have been given up at last
    if doubt > (_CLOSE_DOUBT if closely else _DOUBTFUL):
        latest = rehearsed(
            movie, model, means.frames, 0, wrong=doubt, doubt=DOUBT, look=look, last=True, **means.solving
        )  # fmt: skip
        bias = bias if latest is None else bias.towards(latest, heed)
        learnt = means.held(motion_learned(movie, linking, shift, model, means.room, bias))
        model = learnt.model
    return Found(linking, pairs, model, learnt, shift, crowd, flow, done, bias, closely)


def fuller(movie: Movie, found: Found, model: LinkModel, means: Means) -> tuple[Found, Means]:
    """What is found from wider steps if particles seem to be overlooked, and that leaves fewer of them.

    Or from flights, if those let more be followed.
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
    again = learnt_from(movie, flying, means, lambda _: None, closely=True)
    passes = found.passes + again.passes
    if float(again.linking.trust.sum()) > _GAINED[known] * right:
        return replace(again, passes=passes)
    return replace(found, passes=passes)


def _alike(one: LinkModel, other: LinkModel) -> bool:
    """Whether what is worth a look for the one model is so for the other."""
    here, there = ((*each.gate, each.motion.persistence, each.end, each.start) for each in (one, other))
    return len(one.follow) == len(other.follow) and np.allclose(here, there, rtol=_ALIKE)


def told(movie: Movie, before: Found, means: Means, tell: Callable[[int], None]) -> Found:
    """Link a whole movie by what a part of it told, and learn the rest from all of it."""
    count, model, passes = len(movie.frame), before.model, before.passes
    near = pairs_of(movie, model.gate, **means.looking)
    linking, shift, crowd = Linking.none(count), np.zeros_like(movie.position), before.crowd
    flow = Flow(movie.frame_start, movie.position, crowds=(before.crowd or 0,), workers=means.workers)
    if crowd is not None:
        # No flow is known yet: whole steps are what must be expected.
        follower = still_links(movie, near, model, before.learnt.step, solver=means.solver)
        linking = replace(linking, follower=follower)
        shift, crowd = flow.foretold(_steps(movie, follower))
        tell(count)
        passes += 1
    sweep, one_pass = look_of(model, closely=before.closely)
    for _ in range(_FLOWING):
        pairs = with_gaps(movie, near, model, shift, sweep=sweep, **means.looking)
        linking, pairs = one_pass(movie, pairs, model, linking, shift, **means.solving)
        passes += 1
        tell(count)
        if crowd is None:
            break
        shift, crowd = flow.foretold(_steps(movie, linking.follower))
        if int(linking.changed.sum()) <= _SETTLED * count:
            break
    # Links over gaps that are unlikely were left out: the part knows better how many there are.
    learnt = means.held(motion_learned(movie, linking, shift, model, means.room, before.bias))
    return replace(
        before, linking=linking, pairs=pairs, model=learnt.model, learnt=learnt, shift=shift, crowd=crowd,
        flow=flow, passes=passes,
    )  # fmt: skip


def settled(movie: Movie, found: Found, means: Means, tell: Callable[[int], None]) -> Found:
    """Link the movie by the past and the future of the links themselves, until few change."""
    linking, shift, done = found.linking, found.shift, 0
    # What remembers no velocity has no past that would tell more.
    remembered = found.model.motion.persistence > 0
    most = min(max(_SMALL // max(len(movie.frame), 1), LAST_PASSES), _MOST_LAST)
    if remembered and not found.closely and found.crowd is None and linking.doubt > _DOUBTLESS:
        # Where neighbours do not tell it, two detections tell where each was heading.
        linking, _ = heading_pass(movie, found.pairs, found.model, linking, shift, **means.solving)
        found = replace(found, linking=linking)
    if remembered:
        linking = untangled(
            movie, found.model, linking, found.pairs.log_density, shift, workers=means.workers
        )  # fmt: skip
    while remembered and done < most:
        done += 1
        linking = link_pass(
            movie, found.pairs, found.model, linking, shift,
            caution=1.0 if done == 1 else 0.7, solver=means.solver, workers=means.workers,
        )  # fmt: skip
        tell(len(movie.frame))
        if int(linking.changed.sum()) <= _SETTLED * len(movie.frame):
            break
        if found.crowd is not None:
            shift, _ = found.flow.foretold(_steps(movie, linking.follower))
    sober = sobered(found.linking, linking, found.bias.sobriety)
    return replace(found, linking=sober, shift=shift, passes=found.passes + done)


def _steps(movie: Movie, follower: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N, axes) step of each detection to the next frame; NaN without a link there."""
    steps = movie.position[follower] - movie.position
    steps[(follower < 0) | (movie.frame[follower] != movie.frame + 1)] = np.nan
    return steps
