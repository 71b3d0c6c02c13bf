"""Calibration: the detections themselves tell how particles move, how often they are missed, start and end.

Expectation and maximisation over links. The first step length comes from the mixture of true steps and
strangers among nearest neighbours; then a part of the movie is linked by all that probable links tell
(`soft_pass`), the links tell the motion and the rates, each link counting as much as it is probable, and the
part is linked again. Where many links must be wrong, a movie that is drawn by what was learned so far shows
what they hide (`rehearsed`). At last the whole movie is linked by what was learned, and settled by the past
and the future of the links themselves (`link_pass`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from .calibration import Calibration
from .candidates import Pairs, no_longer, pairs_of
from .choose import chosen, sobered
from .detections import Detections
from .divisions import Branches, find_divisions
from .drift import drift_of
from .estimates import first_step, neighbour_distances
from .exchanged import doubted
from .flow import Flow
from .known import Known
from .learn import Bias, Learnt, gate_of, learned, motion_learned, uncertainty
from .link import Links
from .linking import Linking, LinkModel
from .margins import with_exact_margins
from .merges import find_merges
from .motion import Motion
from .movie import Movie, movie_of
from .overlooked import WIDER, overlooked, sought
from .refine import link_pass, links_of, possible, soft_pass, still_links, with_gaps
from .rehearsal import rehearsed

PASSES = 20
"""Passes over a part of the movie from which most is learned, unless the links stop changing before."""
_LAST_PASSES, _MOST_LAST, _SMALL = 1, 6, 60_000
"""Passes over the whole movie by the links of the pass before, at most: the first, or the second if all of
them together look at no more detections than the third."""
_DOUBT = 5.0
"""Log odds by which a link over a gap may lose to an end and a start while rates are learned."""
_FLOWING = 4
"""Passes over the whole movie, at most, in which the flow gets known, where there is one."""
_FEWEST = 3
"""Passes that it takes at least to learn: to link, to link by the motion learned, and to see what changed."""

_LOST, _CLUTTER = 0.1, 0.03
"""Shares of detections without one after or before, and of clutter among all, with which learning begins."""
_DOUBTFUL, _EVERY, _HEED = 0.04, 2, 0.5
"""Share of wrong links from which on what they tell is corrected by rehearsals, one every so many passes; and
how much the newest counts among all."""
_ROOM = 1.5
"""Where particles are sparse the gate is so many distances to the nearest neighbour."""
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
_UNLIKE = 0.1
"""How unlike the rest of a movie the part may be from which most is learned."""
_FULLER, _UNUSUAL, _DOUBTED = 0.9, 3.0, 0.1
"""Share of the ends and starts that learning from wider steps must leave at most, to be believed; usual steps
from which on they count as wider; share of the links gained that may be wrong."""
_RARE = 5e-4
"""Share of gaps so long among all links below which they are not looked for any more."""


def calibrate(
    detections: Detections,
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
    max_gap: int = 2,
    two_sided: bool = True,
    divisions: bool = True,
    merges: bool = False,
    known: Mapping[str, float | tuple[float, ...]] | None = None,
    solver: str = "bid_and_augment",
    exact_margins: bool = False,
    workers: int = 1,
    most_bytes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Calibration, Links]:
    """Learn from a movie how to link it, and link it.

    Parameters
    ----------
    detections : Detections
    spacing : (float, float, float)
        Size of a voxel along z, y, x.
    max_gap : int
        Frames in which a particle may be missing.
    two_sided : bool
        Whether links may use the future.
    divisions : bool
        Whether starts are joined to mothers where the movie gives evidence of divisions.
    merges : bool
        Whether ends are joined to what they became where it gives evidence that particles fuse.
    known : mapping, optional
        Values that are told instead of learned, by the names in `known.NAMES`.
    solver : str
    exact_margins : bool
        Whether margins are exact instead of lower bounds.
    workers : int
        Threads.
    most_bytes : int, optional
        Memory that the candidate pairs may take.
    progress : callable, optional
        Told (detections done, detections in all) after every pass, as if all passes were needed.

    Returns
    -------
    Calibration, Links
        Cost is minus the log odds of a link, less those from which on it is chosen; cost, margin and gap in
        nats.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> movie = Detections.from_table(np.repeat(np.arange(12), 200), place.reshape(-1, 3))
    >>> learned, links = calibrate(movie)
    >>> learned.step.round(2).tolist(), len(links.pairs)
    ([0.1, 0.1, 0.1], 2200)
    """
    movie = movie_of(detections, spacing)
    around = neighbour_distances(movie.position, movie.frame_start, workers=workers)
    drift = drift_of(movie, around, workers=workers)
    if drift is not None:
        movie = movie.moved(-drift)
        around = neighbour_distances(movie.position, movie.frame_start, workers=workers)
    # Where nothing moves, or nothing can be linked, any small step will do.
    sigma, _ = first_step(around, movie.axes)
    sigma = sigma or 1e-6 * max(float(np.abs(movie.position).max(initial=0.0)), 1.0)
    room = _ROOM * around.spacing
    told = Known.of(known or {}, movie.names)
    step = told.step(np.full(movie.axes, sigma))
    static = Motion.static(tuple(step.tolist()))
    model = told.held(
        LinkModel(static, (0.9,), _LOST, _LOST, gate_of(step, room), two_sided=two_sided, clutter=_CLUTTER)
    )
    means = _Means(room, len(movie.frame_start) - 1, max_gap, told, solver, workers, most_bytes)
    first, last = movie.middle()
    part = movie.part(first, last) if around.unlike(first, last) < _UNLIKE else movie
    work, linked = PASSES * len(part.frame) + (_LAST_PASSES + 2) * len(movie.frame), [0]

    def tell(more: int) -> None:
        linked[0] += more
        if progress is not None and work:
            progress(len(movie.frame) * linked[0] // work, len(movie.frame))

    found = _learnt(part, model, means, tell)
    found, means = _fuller(part, found, model, means)
    if part is not movie:
        found = _told(movie, found, means, tell)
    found = _settled(movie, found, means, tell)
    linking, branches = _branched(movie, found, divisions=divisions, merges=merges)
    # Links and divisions are chosen together, by their likelihood.
    linking = linking if len(branches) else chosen(linking, solver)
    if two_sided and found.model.motion.persistence > 0 and found.bias.sobriety == (1.0, 0.0):
        linking = doubted(movie, found.model, linking, found.shift, workers=workers)
    linking = with_exact_margins(linking, branches, solver) if exact_margins else linking
    links = _with_branches(links_of(movie, linking), movie, branches)
    errors = uncertainty(found.learnt, len(movie.frame))
    if found.crowd == 0:
        drift = (0.0 if drift is None else drift) + _drift_of_flow(movie, found.shift)
    learnt = Calibration(
        found.model, found.crowd, found.learnt.step, errors, found.passes, movie.names,
        movie.interval, drift, tuple(told.told),
    )  # fmt: skip
    return learnt, links


def _drift_of_flow(movie: Movie, shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """(F, axes) where each frame lies, from the mean flow of the frames before."""
    sums = np.stack(
        [np.bincount(movie.frame, column, len(movie.frame_start) - 1) for column in shift.T], axis=1
    )
    ahead = sums / np.maximum(np.diff(movie.frame_start), 1)[:, None]
    return np.concatenate([np.zeros_like(ahead[:1]), np.cumsum(ahead, axis=0)[:-1]])


@dataclass(frozen=True)
class _Means:
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
class _Found:
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


def _learnt(movie: Movie, model: LinkModel, means: _Means, tell: Callable[[int], None]) -> _Found:
    """Link a movie, learn from the links, link again, until no more links change."""
    count, max_gap = len(movie.frame), means.max_gap
    near = pairs_of(movie, model.gate, **means.looking)
    gate, pairs, looked = model.gate, near, model
    flow = Flow(movie.frame_start, movie.position, workers=means.workers)
    linking, shift, crowd, flowing = Linking.none(count), np.zeros_like(movie.position), None, True
    done, bias, heed = 0, Bias.none(movie.axes), 1.0
    changes: list[int] = []
    for done in range(1, PASSES + 1):
        known = linking
        if done == 1 and model.motion.persistence == 0:  # nobody is known to remember anything yet
            first = possible(movie, near, model)
            linking = link_pass(movie, first, model, known, shift, **means.solving)
        elif crowd is not None or done <= _FEWEST or not _alike(model, looked):
            pairs, looked = with_gaps(movie, near, model, shift, doubt=_DOUBT, **means.looking), model
            linking, pairs = soft_pass(movie, pairs, model, known, shift, **means.solving)
        else:
            linking, _ = soft_pass(movie, pairs, model, known, shift, **means.solving)
        tell(count)
        changes.append(int(linking.changed.sum()))
        if flowing:
            shift, crowd = flow.foretold(_steps(movie, linking.follower))
            flowing = crowd is not None or done < 3
        before, tried = model, len(model.follow) > 1
        if (doubt := linking.doubt) > _DOUBTFUL and done >= _FEWEST and (done - _FEWEST) % _EVERY == 0:
            frames = len(movie.frame_start) - 1
            latest = rehearsed(movie, model, frames, done, doubt=_DOUBT, **means.solving)
            bias, heed = bias.towards(latest, heed), _HEED
        learnt = means.held(learned(movie, linking, shift, model, max_gap, means.room, bias))
        model = learnt.model
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
    if doubt > _DOUBTFUL:
        latest = rehearsed(movie, model, means.frames, 0, doubt=_DOUBT, last=True, **means.solving)
        bias = bias.towards(latest, heed)
        learnt = means.held(motion_learned(movie, linking, shift, model, means.room, bias))
        model = learnt.model
    return _Found(linking, pairs, model, learnt, shift, crowd, flow, done, bias)


def _fuller(movie: Movie, found: _Found, model: LinkModel, means: _Means) -> tuple[_Found, _Means]:
    """What is found from wider steps if particles seem to be overlooked, and that leaves fewer of them."""
    far = overlooked(movie, found.linking, workers=means.workers)
    if far <= _UNUSUAL * float(np.mean(found.learnt.step)):
        return found, means
    wide = replace(means, room=WIDER * means.room)
    wider = means.known.held(sought(model, far, wide.room))
    again = _learnt(movie, wider, wide, lambda _: None)
    left, still = (one.model.end + one.model.start for one in (found, again))
    passes = found.passes + again.passes
    (links, wrong), (all_links, all_wrong) = found.linking.expected, again.linking.expected
    if still < _FULLER * left and all_wrong - wrong <= _DOUBTED * (all_links - links):
        return replace(again, passes=passes), wide
    return replace(found, passes=passes), means


def _alike(one: LinkModel, other: LinkModel) -> bool:
    """Whether what is worth a look for the one model is so for the other."""
    here, there = ((*each.gate, each.motion.persistence, each.end, each.start) for each in (one, other))
    return len(one.follow) == len(other.follow) and np.allclose(here, there, rtol=_ALIKE)


def _told(movie: Movie, before: _Found, means: _Means, tell: Callable[[int], None]) -> _Found:
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
    for _ in range(_FLOWING):
        pairs = with_gaps(movie, near, model, shift, **means.looking)
        linking, pairs = soft_pass(movie, pairs, model, linking, shift, **means.solving)
        passes += 1
        tell(count)
        if crowd is None:
            break
        shift, crowd = flow.foretold(_steps(movie, linking.follower))
        if int(linking.changed.sum()) <= _SETTLED * count:
            break
    # Links over gaps that are unlikely were left out: the part knows better how many there are.
    learnt = means.held(motion_learned(movie, linking, shift, model, means.room, before.bias))
    return _Found(linking, pairs, learnt.model, learnt, shift, crowd, flow, passes, before.bias)


def _settled(movie: Movie, found: _Found, means: _Means, tell: Callable[[int], None]) -> _Found:
    """Link the movie by the past and the future of the links themselves, until few change."""
    linking, shift, done = found.linking, found.shift, 0
    # What remembers no velocity has no past that would tell more.
    most = min(max(_SMALL // max(len(movie.frame), 1), _LAST_PASSES), _MOST_LAST)
    while found.model.motion.persistence > 0 and done < most:
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


def _branched(movie: Movie, found: _Found, *, divisions: bool, merges: bool) -> tuple[Linking, Branches]:
    """The links, and those of divisions, or of merges where nothing divides."""
    linking, branches = found.linking, Branches.none()
    for asked, find in ((divisions, find_divisions), (merges, find_merges)):
        if asked and not len(branches):
            linking, branches = find(movie, found.linking, found.pairs.log_density, found.shift)
    return linking, branches


def _with_branches(links: Links, movie: Movie, found: Branches) -> Links:
    """The links and those of branches, sorted by source and target; nothing is known of their margins."""
    if not len(found):
        return links
    pairs = np.concatenate(
        [links.pairs, np.column_stack([movie.order[found.source], movie.order[found.target]])]
    )
    cost = np.concatenate([links.cost, np.log1p(-found.probability) - np.log(found.probability)])
    margin = np.concatenate([links.margin, np.zeros(len(found))])
    known = np.empty(0) if links.probability is None else links.probability
    trust = np.concatenate([known, found.probability])
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return Links(pairs[order], cost[order], margin[order], links.gap, probability=trust[order])


def _steps(movie: Movie, follower: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N, axes) step of each detection to the next frame; NaN without a link there."""
    steps = movie.position[follower] - movie.position
    steps[(follower < 0) | (movie.frame[follower] != movie.frame + 1)] = np.nan
    return steps
