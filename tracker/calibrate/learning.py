"""Learning: link a part of a movie, estimate the model from the links, and link again.

This is repeated until the links no longer change. If many links are expected to be wrong, `refine.headings`
separates them by direction, and a movie simulated with the current model shows their bias (`rehearsed`). If a
flow was estimated from partly wrong links, frames are registered once without links (`registration`), and the
flow is estimated again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..refine.bridges import DOUBT, with_gaps
from ..refine.candidates import no_longer, pairs_of
from ..refine.linking import Linking, LinkModel
from ..refine.looks import Look, look_of
from ..refine.movie import Movie
from ..refine.weigh import link_pass, possible
from .flow import Flow
from .maximise import Bias, Learnt, learned, motion_learned
from .pace import pace_of
from .passes import Found, Means
from .rates import lengthened
from .rehearsal import rehearsed, surface_of
from .surfaces import Surface

PASSES = 20
"""Largest number of passes over the part of the movie, unless the links stop changing earlier."""
_FEWEST = 3
"""Least number of passes: to link, to link with the learned motion, and to see what changed."""
_FAR_DOUBT = 5.0
"""Log odds by which a gap link may be worse than an end and a start and still count for rates."""
_MISLED, _ON_SURFACES, _EVERY, _HEED = 0.025, 0.008, 2, 0.7
"""Expected share of wrong links above which estimates are corrected by simulated movies (rehearsals), and the
same on surfaces, where more links are wrong than expected; number of passes between rehearsals; and weight of
the newest rehearsal, except that the first one counts fully."""
_DOUBTFUL, _CLOSE_WRONG = 0.04, 0.01
"""Share of wrong links above which `refine.headings` is used, and above which that is rehearsed."""
_DOUBTED_FLOW, _MUCH, _CLEARLY, _LED = 0.01, 0.1, 0.7, 2
"""Share of wrong links above which frames are registered at the end, if neighbours predict this share of the
step variance and also this multiple of the share of wrong links (wrong links create a flow as well); and
number of passes in which links then only correct the result."""
_STILL, _OF_WRONG, _SAME, _MUCH_SAME = 0.008, 0.1, 0.05, 0.001
"""Convergence: largest changes as a share of all links and of wrong links, and largest relative and absolute
changes of the rates of ends, starts and misses; the relative limit also applies to steps."""
_ROUGH = 3.0
"""Convergence: largest change of the step variance, divided by the root of the number of right links."""
_PATIENT = 5
"""Number of passes after which the iteration also ends if the number of changed links is above"""
_STUCK = 0.9
"""this share of that two passes earlier: some pairs may swap forever."""
_ALIKE, _SAME_GATE = 0.3, 0.1
"""Largest relative changes of the learned values and of the gate for which candidates are kept."""
_FALLEN = 0.85
"""Least share of the expected right links of the previous pass, for learning of flights to continue."""
_RARE = 5e-4
"""Share of the longest gaps among all links below which they are no longer searched for."""


def learnt_from(
    movie: Movie,
    model: LinkModel,
    means: Means,
    tell: Callable[[int], None],
    *,
    flying: bool = False,
    flow: Flow | None = None,
) -> Found:
    """Link a movie, learn from the links, and link again, until the links no longer change.

    Parameters
    ----------
    movie : Movie
        The movie, or a part of it.
    model : LinkModel
        To begin with.
    means : Means
    tell : callable
        Called with the number of detections after each pass.
    flying : bool
        Whether the initial model is one of directed flights. Then `refine.headings` is used from the first
        pass, and the iteration stops when fewer links are right.
    flow : Flow, optional
        Flow of the movie, without any estimate so far.
    """
    flow = flow or Flow(movie.frame_start, movie.position, workers=means.workers)
    learning = _Learning(movie, model, means, flow, flying=flying)
    for _ in range(PASSES):
        learning.link()
        tell(len(movie.frame))
        learning.rehearse()
        learning.learn()
        if flying and learning.fallen():
            break
        learning.look_anew()
        if learning.over():
            break
    return learning.found()


class _Learning:
    """State of the passes over a movie."""

    def __init__(self, movie: Movie, model: LinkModel, means: Means, flow: Flow, *, flying: bool) -> None:
        self._movie, self._means, self._max_gap, self._flying = movie, means, means.max_gap, flying
        self._model = self._before = self._looked_by = model
        self._near = self._pairs = pairs_of(movie, model.gate, **means.looking)
        self._gate, self._changes, self._done = model.gate, list[int](), 0
        self._linking, self._shift = Linking.none(len(movie.frame)), np.zeros_like(movie.position)
        self._flow = flow
        self._crowd: int | None = None
        self._flowing, self._closely, self._turning = True, flying, False
        self._asked = self._registered = False
        self._bias, self._alone = Bias.none(movie.axes), 1
        self._learnt: Learnt
        self._kept: Found | None = None

    @property
    def _look(self) -> Look:
        return look_of(self._model, closely=self._closely)

    def _wrong(self, share: float) -> bool:
        """Whether more links are expected to be wrong than a limit, which is lower once headings are used."""
        return self._linking.doubt > (_CLOSE_WRONG if self._closely else share)

    @property
    def _misled(self) -> bool:
        """Whether so many links are expected to be wrong that the bootstrap must correct the estimates."""
        return self._wrong(_MISLED) or (self._wrong(_ON_SURFACES) and self._surface() is not None)

    def _surface(self) -> Surface | None:
        """The surface on which particles lie, if any."""
        return surface_of(self._movie, self._linking, self._shift, self._model)

    @property
    def _settled(self) -> bool:
        """Whether almost no link changed since the previous pass."""
        few = max(_STILL, _OF_WRONG * self._linking.doubt) * len(self._movie.frame)
        return len(self._changes) > 0 and self._changes[-1] <= few

    def link(self) -> None:
        """Link the movie once with the current model."""
        self._done += 1
        movie, model, shift, solving = self._movie, self._model, self._shift, self._means.solving
        look = self._look
        if self._done == 1 and model.motion.persistence == 0:  # nobody is known to remember anything yet
            first = possible(movie, self._near, model)
            self._linking = link_pass(movie, first, model, self._linking, shift, **solving)
        elif self._crowd is not None or self._done <= _FEWEST or not _alike(model, self._looked_by):
            pairs = with_gaps(
                movie, self._near, model, shift, doubt=_FAR_DOUBT, sweep=look.sweep, **self._means.looking
            )
            self._linking, self._pairs = look.link(movie, pairs, model, self._linking, shift, **solving)
            self._looked_by = model
        else:
            self._linking, _ = look.link(movie, self._pairs, model, self._linking, shift, **solving)
        self._changes.append(int(self._linking.changed.sum()))
        if self._flowing:
            self._shift, self._crowd = self._flow.foretold(
                movie.steps(self._linking.follower), self._linking.trust
            )
            self._flowing = self._crowd is not None or self._done < _FEWEST
            if self._flow.led:
                self._changes.clear()  # links found in another way are others, and tell nothing of an end

    def rehearse(self) -> None:
        """Rehearse the bias of many wrong links, after headings have been used if possible."""
        # A flow takes longer to be known, and then may tell where particles go.
        known_by = _FEWEST if self._crowd is None else _PATIENT
        remembered = self._model.motion.persistence > 0
        self._turning = self._wrong(_DOUBTFUL) and not self._closely and remembered and self._done >= known_by
        due = self._done >= _FEWEST and (self._done - _FEWEST) % _EVERY == 0
        # Where hardly a link changes any more, the last one is to come; but the little that noise is where
        # nobody remembers a velocity, only many tell.
        due = due and (self._done == _FEWEST or not (remembered and self._settled))
        if due and self._misled and not self._turning:
            self._rehearsed(len(self._movie.frame_start) - 1, self._done, _FAR_DOUBT)

    def _rehearsed(self, frames: int, seed: int, doubt: float, *, last: bool = False) -> None:
        latest = rehearsed(
            self._movie, self._model, frames, seed, wrong=self._linking.doubt, doubt=doubt, look=self._look,
            surface=self._surface(), last=last, **self._means.solving,
        )  # fmt: skip
        if latest is not None:
            self._bias = self._bias.towards(latest, 1.0 if self._alone > 0 else _HEED)
            self._alone -= 1
        elif not last:  # what was seen in movies like that leads ever farther astray
            self._bias, self._alone = Bias.none(self._movie.axes), max(self._alone, 1)

    def learn(self) -> None:
        """Estimate the model from the links."""
        means, self._before = self._means, self._model
        self._movie = self._movie.paced(pace_of(self._movie, self._linking, self._shift, self._model.motion))
        learnt = learned(
            self._movie, self._linking, self._shift, self._model, self._max_gap, means.room, self._bias
        )
        self._learnt = self._told(learnt)
        self._model = self._learnt.model
        if self._turning:
            self._closely = True
            # Links found in another way are others, tell nothing of an end, and miss other things.
            self._changes.clear()
            self._alone = 2
        if self._flying and self._done < _FEWEST:
            # Tails are measured by what was tried, which is far from what was found.
            self._model = replace(self._model, freedom=0.0, scale=1.0)

    def _told(self, learnt: Learnt) -> Learnt:
        """Combine the estimates with the survey if links are doubtful, and with fixed values."""
        if self._crowd is None and self._wrong(_DOUBTFUL) and (self._flying or self._done >= _FEWEST):
            learnt = self._means.surveyed(learnt, self._linking.doubt, self._movie)
        return self._means.held(learnt)

    def fallen(self) -> bool:
        """Whether far fewer links are right than in the previous pass; then the state is restored."""
        kept, right = self._kept, float(self._linking.trust.sum())
        if kept is None or right >= _FALLEN * float(kept.linking.trust.sum()):
            self._kept = self._so_far()
            return False
        self._linking, self._pairs, self._model = kept.linking, kept.pairs, kept.model
        self._learnt, self._shift, self._crowd = kept.learnt, kept.shift, kept.crowd
        self._movie = self._movie.paced(kept.pace)
        return True

    def look_anew(self) -> None:
        """Stop searching for rare gaps, and search for candidates again if the gate has changed."""
        # Most of the pairs of a movie lie over the longest gap.
        follow, longest = self._model.follow, self._max_gap
        while len(self._before.follow) > 1 and 0 < longest < len(follow) and follow[longest] < _RARE:
            longest, follow = longest - 1, follow[:-1]
        self._max_gap, self._model = longest, replace(self._model, follow=follow)
        if not np.allclose(self._gate, self._model.gate, rtol=_SAME_GATE, atol=0):
            self._near = pairs_of(self._movie, self._model.gate, **self._means.looking)
            self._gate = self._model.gate

    def over(self) -> bool:
        """Whether learning has converged, also after registration of frames."""
        ended = self._ended()
        if ended or self._done == PASSES // 2:
            return not self._register() and ended and not self._lengthen()
        return False

    def _lengthen(self) -> bool:
        """Once, allow longer gaps if the longest ones are frequent and links are reliable."""
        means = self._means
        if self._wrong(_DOUBTFUL) or self._max_gap != means.max_gap:
            return False
        frame, follower = self._movie.frame, self._linking.follower
        gap = np.where(follower >= 0, frame[follower] - frame, 0)
        follow = lengthened(self._model.follow, np.bincount(gap)[1:], means.longest_gap)
        if len(follow) == len(self._model.follow):
            return False
        self._max_gap, self._model = len(follow) - 1, replace(self._model, follow=follow)
        return True

    def _register(self) -> bool:
        """If neighbours move together but links are doubtful, register frames once without links."""
        doubt, asked = self._linking.doubt, self._asked or self._flying or self._done >= PASSES - _LED
        # The whole frame, 0, would tell a drift.
        flows = self._crowd and self._flow.explained > max(_MUCH, _CLEARLY * doubt)
        if asked or not flows or doubt <= _DOUBTED_FLOW:
            return False
        guess, self._asked = self._shift, True
        self._shift = self._flow.register(guess, lead=_LED)
        self._registered = self._shift is not guess
        return self._registered

    def _ended(self) -> bool:
        """Whether links, steps and rates have converged."""
        changes = self._changes
        # Few links tell steps roughly.
        rough = max(2 * _SAME, _ROUGH / max(float(self._linking.trust.sum()), 1.0) ** 0.5)
        steps, known = (one.motion.step_variance(1) for one in (self._before, self._model))
        if self._turning or not np.allclose(steps, known, rtol=rough, atol=0):
            return False
        was, now = ((one.end, one.start, 1 - one.follow[0]) for one in (self._before, self._model))
        swapping = self._done >= _PATIENT and len(changes) > 2 and changes[-1] > _STUCK * changes[-3]
        # Tails that came or went, and steps and rates that still change, make for other links as well; but
        # where neighbours foretell steps, such rates lead astray.
        alike = (self._before.freedom == 0) == (self._model.freedom == 0)
        steady = bool(self._crowd) or np.allclose(was, now, rtol=2 * _SAME, atol=_MUCH_SAME)
        stuck = swapping and alike and steady and np.allclose(steps, known, rtol=rough / 2, atol=0)
        same = np.allclose(was, now, rtol=_SAME, atol=_MUCH_SAME)
        return bool(stuck) or (self._done >= _FEWEST and same and self._settled)

    def found(self) -> Found:
        """The result, after a last rehearsal if many links are expected to be wrong."""
        # The longest gaps may have been given up at last.
        self._pairs = no_longer(self._movie, self._pairs, len(self._model.follow))
        if self._misled:
            self._rehearsed(self._means.frames, 0, DOUBT, last=True)
            self._learnt = self._told(
                motion_learned(
                    self._movie, self._linking, self._shift, self._model, self._means.room, self._bias
                )
            )
            self._model = self._learnt.model
        return self._so_far()

    def _so_far(self) -> Found:
        return Found(
            self._linking, self._pairs, self._model, self._learnt, self._shift, self._crowd, self._flow,
            self._done, self._bias, self._closely, self._registered, self._movie.pace,
        )  # fmt: skip


def _alike(one: LinkModel, other: LinkModel) -> bool:
    """Whether two models have nearly the same candidates."""
    here, there = ((*each.gate, each.motion.persistence, each.end, each.start) for each in (one, other))
    return len(one.follow) == len(other.follow) and np.allclose(here, there, rtol=_ALIKE, atol=0)
