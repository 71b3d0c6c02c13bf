"""Passes over the whole movie, with a model that was learned from a part of it.

The first passes use all probable links (`told`), the later ones the past and future of the chosen links
(`settled`). The model of the part comes from `learning`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from ..refine.bridges import with_gaps
from ..refine.candidates import Pairs, pairs_of
from ..refine.choose import sobered
from ..refine.linking import Linking, LinkModel
from ..refine.looks import BY_HEADINGS, linked, look_of
from ..refine.movie import Movie
from ..refine.untangle import untangled
from ..refine.weigh import Weighed, link_pass, still_links
from ..refine.windows import weighed_in_windows
from .flow import Flow
from .known import Known
from .maximise import Bias, Learnt, gate_of, motion_learned
from .pace import pace_of
from .surveyor import Surveyor

LAST_PASSES, _MOST_LAST, _SMALL = 1, 6, 60_000
"""Largest number of passes that use the links of the previous pass: the first value, or the second if all
these passes together process no more detections than the third value."""
_FLOWING = 4
"""Largest number of passes in which a flow is estimated."""
_NEARER = 0.9
"""The flow of the part is used if its distance to the detections of the next frame is below this multiple of
that of the flow from links."""
_DOUBTLESS = 0.02
"""Share of wrong links up to which `refine.headings` gives no improvement for a whole movie."""
_SAME_GATE = 0.1
"""Largest relative change of the gate for which candidates are kept."""
_SETTLED, _LAST = 0.005, 0.002
"""Shares of links that may change in the last pass: in passes for the flow, and in the final passes."""


@dataclass(frozen=True)
class Means:
    """Settings that are the same in all passes; see `calibrate` and `learned`."""

    room: float
    frames: int  # of the whole movie
    max_gap: int  # to begin with
    longest_gap: int
    known: Known
    solver: str
    workers: int
    most_bytes: int | None
    surveyor: Surveyor

    def held(self, learnt: Learnt) -> Learnt:
        """Replace learned values by fixed ones."""
        return replace(learnt, model=self.known.held(learnt.model), step=self.known.step(learnt.step))

    def surveyed(self, learnt: Learnt, doubt: float, movie: Movie) -> Learnt:
        """Combine the model learned from doubtful links with steps and rates of the survey."""
        reach = movie.reaches(learnt.model.motion)
        model = self.known.held(learnt.model)
        revised = self.surveyor.revised(model, doubt=doubt, reach=reach)
        now, before = (one.motion.floored().step_variance(1) for one in (revised, model))
        step = learnt.step * np.sqrt(now / before)
        return replace(learnt, model=replace(revised, gate=gate_of(step, self.room, reach.max())), step=step)

    @property
    def solving(self) -> _Solving:
        """The settings that a pass needs."""
        return _Solving(solver=self.solver, workers=self.workers)

    @property
    def looking(self) -> _Looking:
        """The settings that a search for candidates needs."""
        return _Looking(workers=self.workers, most_bytes=self.most_bytes)


class _Solving(TypedDict):
    """Arguments that each linking pass needs."""

    solver: str
    workers: int


class _Looking(TypedDict):
    """Arguments that each search for candidates needs."""

    workers: int
    most_bytes: int | None


@dataclass(frozen=True, eq=False)
class Found:
    """The last linking of a movie, the model learned so far, and the candidate pairs."""

    linking: Linking
    pairs: Pairs
    model: LinkModel
    learnt: Learnt
    shift: NDArray[np.float64]
    crowd: int | None
    flow: Flow
    passes: int
    bias: Bias
    closely: bool  # whether by `refine.headings`
    registered: bool  # whether `registration` told the flow first
    pace: NDArray[np.float64] | None  # of each frame of that movie, as `pace_of` tells it


def told(movie: Movie, before: Found, means: Means, tell: Callable[[int], None]) -> Found:
    """Link a whole movie with the model of a part of it, and refine the model from the whole movie.

    Parameters
    ----------
    movie : Movie
    before : Found
        The result for a part of it.
    means, tell
        As in `learnt_from`.
    """
    count, passes = len(movie.frame), before.passes
    model = _looking_so_far(before.model, movie, before, means)
    near = pairs_of(movie, model.gate, **means.looking)
    linking, shift, crowd = Linking.none(count), np.zeros_like(movie.position), before.crowd
    flow = Flow(movie.frame_start, movie.position, crowds=(before.crowd or 0,), workers=means.workers)
    if crowd is not None:
        # No flow is known yet: whole steps are what must be expected.
        follower = still_links(movie, near, model, before.learnt.step, solver=means.solver)
        linking = replace(linking, follower=follower)
        shift, crowd = _flow_at_first(movie, follower, before, flow)
        tell(count)
        passes += 1
    look = look_of(model, closely=before.closely)

    def weigh(part: Movie, near: Pairs, *, shift: NDArray[np.float64], workers: int) -> Weighed:
        # Of what pairs may take, each window has twice the share that it has of the detections, or all.
        most = means.most_bytes and min(means.most_bytes, 2 * means.most_bytes * len(part.frame) // count)
        pairs = with_gaps(part, near, model, shift, sweep=look.sweep, workers=workers, most_bytes=most)
        return look.weigh(part, pairs, model, shift, workers=workers)

    for _ in range(_FLOWING):
        found = weighed_in_windows(
            movie, near, shift, weigh, longest=len(model.follow), workers=means.workers
        )
        linking, pairs = linked(found, linking, **means.solving)
        passes += 1
        tell(count)
        alike = movie.pace is None
        movie = movie.paced(pace_of(movie, linking, shift, model.motion))
        if crowd is None and movie.pace is None:
            break
        if crowd is not None:
            shift, crowd = flow.foretold(movie.steps(linking.follower), linking.trust)
        if alike == (movie.pace is None) and int(linking.changed.sum()) <= _SETTLED * count:
            break
        wider = _looking_so_far(model, movie, before, means)
        if not np.allclose(wider.gate, model.gate, rtol=_SAME_GATE, atol=0):
            model, near = wider, pairs_of(movie, wider.gate, **means.looking)
    # Links over gaps that are unlikely were left out: the part knows better how many there are.
    learnt = means.held(motion_learned(movie, linking, shift, model, means.room, before.bias))
    return replace(
        before, linking=linking, pairs=pairs, model=learnt.model, learnt=learnt, shift=shift, crowd=crowd,
        flow=flow, passes=passes, pace=movie.pace,
    )  # fmt: skip


def _looking_so_far(model: LinkModel, movie: Movie, before: Found, means: Means) -> LinkModel:
    """The model with a gate for frames that may have larger steps than those of the part."""
    reach = movie.reaches(model.motion)
    if len(reach) == 1:
        return model
    return means.known.held(replace(model, gate=gate_of(before.learnt.step, means.room, float(reach.max()))))


def _flow_at_first(
    movie: Movie, follower: NDArray[np.int64], before: Found, flow: Flow
) -> tuple[NDArray[np.float64], int | None]:
    """The flow for the first linking of the whole movie, and the number of neighbours that predict it.

    It is estimated from the links, or interpolated from the part if that predicts positions clearly nearer to
    the detections of the next frame. If frames are registered, the better of the two results is used.
    """
    shift, crowd = flow.foretold(movie.steps(follower))
    steady = before.flow.elsewhere(before.shift, movie.position[flow.shown])
    tried = [(shift, crowd)]
    if flow.amiss(steady) < _NEARER * flow.amiss(shift[flow.shown]):
        tried.append((before.flow.elsewhere(before.shift, movie.position), before.crowd))
    if not before.registered:
        return tried[-1]
    tried = [(flow.register(way) if told_by else way, told_by) for way, told_by in tried]
    return min(tried, key=lambda each: flow.amiss(each[0][flow.shown]))


def settled(movie: Movie, found: Found, means: Means, tell: Callable[[int], None]) -> Found:
    """Link the movie with the past and future of the chosen links, until few of them change.

    Parameters
    ----------
    movie : Movie
    found : Found
        The result for this movie.
    means, tell
        As in `learnt_from`.
    """
    linking, shift, done = found.linking, found.shift, 0
    # What remembers no velocity has no past that would tell more.
    remembered = found.model.motion.persistence > 0
    most = min(max(_SMALL // max(len(movie.frame), 1), LAST_PASSES), _MOST_LAST)
    if remembered and not found.closely and found.crowd is None and linking.doubt > _DOUBTLESS:
        # Where neighbours do not tell it, two detections tell where each was heading.
        weigh = partial(BY_HEADINGS.weigh, model=found.model)
        longest = max(linking.longest(movie.frame), 1)
        weighed = weighed_in_windows(
            movie, found.pairs, shift, weigh, longest=longest, workers=means.workers
        )  # fmt: skip
        linking, _ = linked(weighed, linking, **means.solving)
        found = replace(found, linking=linking, passes=found.passes + 1)
        tell(len(movie.frame))
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
        if int(linking.changed.sum()) <= _LAST * len(movie.frame):
            break
        if found.crowd is not None:
            shift, _ = found.flow.foretold(movie.steps(linking.follower), linking.trust)
    sober = sobered(found.linking, linking, found.bias.sobriety, workers=means.workers)
    return replace(found, linking=sober, shift=shift, passes=found.passes + done)
