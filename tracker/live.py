"""Live: detections are linked as they come, frame by frame, by what an earlier recording told."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .calibrate.calibration import Calibration
from .calibrate.flow import Flow, around
from .errors import InputError, SettingsError
from .motion import Motion, State, first_state, predict, update
from .refine.bridges import DOUBT, gate_over
from .refine.candidates import Pairs, over_gaps, pairs_of
from .refine.linking import Linking, LinkModel
from .refine.movie import HOLE, Movie
from .refine.sweep import Beliefs
from .refine.weigh import solved, weighed

_CARRIED = 3.0
"""Steps that frames may usually drift by, if what neighbours do carries them."""


@dataclass(frozen=True, eq=False)
class Joined:
    """What became of the detections of one frame.

    Parameters
    ----------
    track : (M,) int64 array
        The track of each, numbered as they begin.
    probability : (M,) float64 array
        Of the link to the track's last detection; 0 where a track begins.
    gap : float
        Between the cost of the frame's links and its lower bound, in nats; 0 proves them optimal.
    """

    track: NDArray[np.int64]
    probability: NDArray[np.float64]
    gap: float


class Live:
    """Tracks that grow frame by frame, each frame by an exact assignment that knows the past alone.

    A track is predicted by the Kalman filter of the motion that was learned. Where neighbours foretell a
    step, a frame is linked first by whole steps, which tell the flow, and then again. A track is forgotten
    after as many frames without a detection as the calibration looked over. Where that found frames that were
    not recorded, as none of many particles was seen, an empty frame is none in which all are missed either,
    but after more than ten of them all tracks end.

    Parameters
    ----------
    learned : Calibration
        Of an earlier recording of the same kind, or of the first frames of this one: ``track(…).learned``.
    spacing : (float, float, float)
        Size of a voxel along z, y, x; that of the calibration.
    solver : str
        A name in `outbid.tracker.assign.SOLVERS`.

    Raises
    ------
    SettingsError
        If whole frames of that recording drift by more than the gate, or usually by far more than a step:
        what is live is not asked for a drift.

    Examples
    --------
    >>> from .calibrate import calibrate
    >>> from .detections import Detections
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(0, 9, (200, 3)) + np.cumsum(rng.normal(0, 0.1, (12, 200, 3)), axis=0)
    >>> learned, _ = calibrate(Detections.from_table(np.repeat(np.arange(6), 200), place[:6].reshape(-1, 3)))
    >>> live = Live(learned)
    >>> found = [live.add(points) for points in place]
    >>> all((each.track == np.arange(200)).mean() > 0.98 for each in found)
    True
    """

    def __init__(
        self,
        learned: Calibration,
        *,
        spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
        solver: str = "bid_and_augment",
    ) -> None:
        ahead = np.zeros((1, 1)) if learned.drift is None else np.diff(learned.drift, axis=0)
        usual = float(np.sqrt(np.square(ahead).sum(axis=1).mean())) if len(ahead) else 0.0
        beyond = (np.abs(ahead).max(axis=0, initial=0.0) > np.asarray(learned.model.gate)).any()
        # Steps tell what neighbours carry; what a vote took out of them is many times as far.
        if beyond or usual > _CARRIED * float(np.linalg.norm(learned.step)):
            raise SettingsError(
                "Whole frames drift by more than particles move, which live linking does not follow. "
                "Take the drift out of the positions, or track the recording as a whole."
            )
        self._model = replace(learned.model, two_sided=False)
        self._motion = self._model.motion.floored()
        # While no flow is known yet, whole steps are what must be expected.
        self._crowd = learned.crowd
        self._whole = replace(self._model, motion=Motion.static(tuple(learned.step.tolist())))
        self._axes = ["zyx".index(axis) for axis in learned.axes]
        self._clock = _Clock(np.arange(len(self._model.follow) + 1))
        ahead = np.ones(1, np.int64) if learned.time is None else np.diff(learned.time)
        self._skips, self._waited = learned.time is not None, 0
        # What was taken one by one tells of frames, however far apart.
        self._uneven = self._skips and bool((ahead == 1).all())
        self._spacing, self._solver = spacing, solver
        self._ends = _Ends.begun(np.empty(0, np.int64), np.empty((0, len(self._axes))), self._motion)
        self._tracks = 0

    def add(self, position: ArrayLike, *, after: int = 1) -> Joined:
        """Link the detections of the next frame.

        Parameters
        ----------
        position : (M, 3) array_like of float
            z, y, x; M may be 0.
        after : int
            Intervals since the frame before: 2 or more where frames were not recorded. Of no account where
            those of the calibration came at uneven times, and were taken one by one.

        Returns
        -------
        Joined

        Raises
        ------
        InputError
            If they are no finite positions, or come before the frame before.
        """
        if after < 1:
            raise InputError(f"The frame comes {after} intervals after the one before: it must be 1 or more.")
        points = np.asarray(position, dtype=np.float64)
        points = points.reshape(0, 3) if points.size == 0 else points
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise InputError(
                "A frame is an array (M, 3) of finite positions z, y, x. Mend it, and add it again."
            )
        place, ends = np.ascontiguousarray((points * self._spacing)[:, self._axes]), self._ends
        if self._skips and not len(place):
            self._waited += after
            return Joined(np.empty(0, np.int64), np.empty(0), 0.0)
        after, self._waited = 1 if self._uneven else after + self._waited, 0
        self._clock = self._clock.later(after)
        if after > HOLE + 1:
            ends = self._ends = ends.only(np.empty(0, np.int64))
        flows = self._crowd is not None and len(ends.track) > 0 and len(place) > 0
        for model in (self._whole, self._model)[: 2 * flows]:
            ends = self._carried(ends, self._linked(ends, place, model), place)
        linking = self._linked(ends, place, self._model)
        count = len(ends.track)
        source = linking.before[count:]
        linked = source >= 0
        probability = np.where(linked, linking.trust[source], 0.0)
        fresh = int((~linked).sum())
        track = np.empty(len(place), dtype=np.int64)
        track[linked] = ends.track[source[linked]]
        track[~linked] = self._tracks + np.arange(fresh)
        self._tracks += fresh
        reached = np.bincount(linking.col - count, linking.probability, len(place))
        now = _Ends.begun(track, place, self._motion)
        now = now.followed(ends, source, probability, self._motion, self._clock)
        alone = self._model.strange(np.maximum(1 - reached, 0), self._model.start)
        # In the first frame nothing tells what is clutter.
        now = replace(now, alone=alone if count else np.full(len(place), self._model.clutter))
        lost = (linking.follower[:count] < 0) & (ends.gap < len(self._model.follow))
        self._ends = _Ends.joined(ends.later(lost, self._clock), now)
        return Joined(track, probability, linking.gap)

    def _linked(self, ends: _Ends, place: NDArray[np.float64], model: LinkModel) -> Linking:
        """The links of a movie of the ends of all tracks and of the new frame."""
        motion, clock = model.motion.floored(), self._clock
        count, total, longest = len(ends.track), len(ends.track) + len(place), len(model.follow)
        frame = np.concatenate([longest - ends.gap, np.full(len(place), longest)])
        movie = _movie(frame, np.concatenate([ends.place, place]), longest + 1)
        movie = movie if clock.even else replace(movie, time=clock.when)
        old = int(movie.frame_start[longest - 1])
        near = _after(old, pairs_of(_movie(frame[old:] - longest + 1, movie.position[old:], 2), model.gate))
        density = float(near.log_density[count:].mean()) if len(place) else 0.0
        gates, ahead = [], []
        for gap in range(2, longest + 1):
            gates.append(gate_over(gap, model, motion.step_variance(clock.over(gap)), density, DOUBT))
            ahead.append(ends.ahead(gap, motion, clock).mean[..., 0] - ends.place)
        rows, cols = np.arange(count), np.arange(count, total)
        pairs = over_gaps(movie, near, gates, rows, cols, ahead) if count else near
        new = first_state(motion, place)
        past = tuple(
            np.concatenate(both)
            for both in ((ends.state.mean, new.mean), (ends.state.covariance, new.covariance))
        )
        clutter = np.full(total, model.clutter)
        alone = (np.concatenate([ends.alone, clutter[count:]]), clutter)
        beliefs = Beliefs((past[0], past[1]), (past[0], past[1]), np.zeros(total, dtype=np.bool_), alone)
        shift = np.concatenate([ends.shift, np.zeros_like(place)])
        # The way of who is missed holds what later frames went.
        found = weighed(movie, pairs, model, beliefs, shift, table=movie.transitions(motion, longest))
        return solved(found, Linking.none(total), self._solver)

    def _carried(self, ends: _Ends, linking: Linking, place: NDArray[np.float64]) -> _Ends:
        """The ends with the way to the new frame that the neighbours' steps to it foretell.

        Who is missed goes as those do that are near it by now; as before, where they tell of no flow.
        """
        assert self._crowd is not None
        last, shift = ends.gap == 1, ends.shift.copy()
        target = linking.follower[: len(ends.track)][last] - len(ends.track)
        step = place[np.maximum(target, 0)] - ends.place[last]
        step[target < 0] = np.nan
        rows = np.array([0, int(last.sum())])
        trust = linking.trust[: len(ends.track)][last]
        shift[last], crowd = Flow(rows, ends.place[last], crowds=(self._crowd,)).foretold(step, trust)
        if crowd is not None:
            now = around(ends.place[last], shift[last], ends.place[~last] + ends.way[~last])
            shift[~last] = (ends.way[~last] + now) / self._clock.times_of(ends.gap[~last])[:, None]
        return replace(ends, shift=shift)


@dataclass(frozen=True, eq=False)
class _Clock:
    """When the last frames were, and the new one, the last of (longest + 1,) int64 `when`, in intervals."""

    when: NDArray[np.int64]

    @property
    def even(self) -> bool:
        """Whether all were one interval apart."""
        return bool((np.diff(self.when) == 1).all())

    def over(self, gap: int) -> float:
        """Intervals from so many frames before to the new one."""
        return float(self.when[-1] - self.when[-1 - gap])

    def times(self, gap: int) -> float:
        """And in how long it was from that to the next one."""
        return self.over(gap) / float(self.when[-gap] - self.when[-1 - gap])

    def times_of(self, gap: NDArray[np.int64]) -> NDArray[np.float64]:
        """(K,) the same of each."""
        return np.array([self.times(each) for each in range(1, len(self.when))])[gap - 1]

    def later(self, after: int) -> _Clock:
        """With another new frame, so many intervals later."""
        return _Clock(np.append(self.when[1:], self.when[-1] + after) - self.when[1])


@dataclass(frozen=True, eq=False)
class _Ends:
    """Last detections of the tracks that may go on, the oldest first.

    Parameters
    ----------
    track, gap : (K,) int64 arrays
        Its number, and how many frames ago it was seen, once the next frame comes.
    place : (K, axes) float64 array
    state : State
        Belief when it was seen.
    shift : (K, axes) float64 array
        Displacement by flow to the next frame; in the mean of all since, where it is missed.
    way : (K, axes) float64 array
        Displacement by flow up to the last frame.
    alone : (K,) float64 array
        Probability that it is clutter.
    """

    track: NDArray[np.int64]
    gap: NDArray[np.int64]
    place: NDArray[np.float64]
    state: State
    shift: NDArray[np.float64]
    way: NDArray[np.float64]
    alone: NDArray[np.float64]

    @classmethod
    def begun(cls, track: NDArray[np.int64], place: NDArray[np.float64], motion: Motion) -> _Ends:
        """Tracks of one detection."""
        once, unknown = np.ones(len(track), dtype=np.int64), np.zeros(len(track))
        still = np.zeros_like(place)
        return cls(track, once, place, first_state(motion, place), still, still, unknown)

    @classmethod
    def joined(cls, one: _Ends, other: _Ends) -> _Ends:
        """All of both, the oldest first."""
        mean, covariance = (
            np.concatenate([getattr(one.state, name), getattr(other.state, name)])
            for name in ("mean", "covariance")
        )
        track, gap, place, *rest = (
            np.concatenate([getattr(one, name), getattr(other, name)])
            for name in ("track", "gap", "place", "shift", "way", "alone")
        )
        return cls(track, gap, place, State(mean, covariance), *rest)._sorted()

    def ahead(self, gap: int, motion: Motion, clock: _Clock) -> State:
        """Beliefs so many frames later."""
        later = predict(motion, self.state, clock.over(gap))
        later.mean[..., 0] += clock.times(gap) * self.shift
        return later

    def followed(
        self,
        before: _Ends,
        source: NDArray[np.int64],
        chance: NDArray[np.float64],
        motion: Motion,
        clock: _Clock,
    ) -> _Ends:
        """With what each knows from the end that it is linked to, as far as that link is probable."""
        mean, covariance = self.state.mean.copy(), self.state.covariance.copy()
        for gap in np.unique(before.gap):
            rows = np.nonzero((source >= 0) & (before.gap[source] == gap))[0]
            foretold = before.ahead(int(gap), motion, clock).only(source[rows])
            seen = update(motion, foretold, self.place[rows])
            mixed = seen.mixed(self.state.only(rows), chance[rows])
            mean[rows], covariance[rows] = mixed.mean, mixed.covariance
        return replace(self, state=State(mean, covariance))

    def later(self, those: NDArray[np.bool_], clock: _Clock) -> _Ends:
        """Some of them, a frame later."""
        way = clock.times_of(self.gap)[:, None] * self.shift
        return replace(self, gap=self.gap + 1, way=way).only(np.nonzero(those)[0])

    def _sorted(self) -> _Ends:
        return self.only(np.argsort(-self.gap, kind="stable"))

    def only(self, rows: NDArray[np.int64]) -> _Ends:
        state = self.state.only(rows)
        return _Ends(
            self.track[rows], self.gap[rows], self.place[rows], state, self.shift[rows], self.way[rows],
            self.alone[rows],
        )  # fmt: skip


def _movie(frame: NDArray[np.int64], place: NDArray[np.float64], frames: int) -> Movie:
    start = np.searchsorted(frame, np.arange(frames + 1)).astype(np.int64)
    return Movie(frame, place, np.arange(len(frame)), start, "")


def _after(rows: int, pairs: Pairs) -> Pairs:
    """The pairs after so many rows that have none."""
    density = np.concatenate([np.zeros(rows), pairs.log_density])
    indptr = np.concatenate([np.zeros(rows, dtype=np.int64), pairs.indptr])
    return Pairs(indptr, (pairs.indices + rows).astype(np.int32), density)
