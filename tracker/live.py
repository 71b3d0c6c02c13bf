"""Live tracking: link each frame as it is recorded, with a model learned from an earlier recording."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .calibrate.calibration import Calibration
from .calibrate.flow import Flow, around
from .errors import InputError, SettingsError
from .motion import Motion
from .refine.bridges import with_gaps
from .refine.candidates import Pairs, pairs_of, places_of
from .refine.choose import sobered
from .refine.linking import Linking, LinkModel
from .refine.looks import look_of
from .refine.movie import HOLE, Movie
from .refine.weigh import solved

_MEMORY = 3
"""Earlier frames that are used to estimate headings; more frames add little."""
_FLOWING, _SETTLED = 4, 0.005
"""Most iterations of flow estimation, and share of changing links at which they stop."""
_CARRIED = 3.0
"""Largest usual drift of whole frames, in steps, if the flow of neighbours predicts it."""


@dataclass(frozen=True, eq=False)
class Joined:
    """The links found for the detections of one frame.

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
    """Tracks that grow frame by frame; each frame is linked by an exact assignment that uses the past alone.

    The velocities of particles are estimated from all candidate links in the latest frames, not only from
    the chosen ones. If the steps of neighbours predict a particle's step (flow), a frame is linked first
    by whole steps, or by the flow to the frame before, whichever predicts its detections better. These
    links give the flow to the new frame, and the frame is linked again with this flow, until hardly a
    link changes. A track ends after more frames without a detection than the longest gap that calibration
    searched. If calibration found frames that were not recorded (no detection where there were many
    particles), an empty frame counts as not recorded, not as one in which all particles are missed; after
    more than ten empty frames, all tracks end.

    Parameters
    ----------
    learned : Calibration
        Of an earlier recording of the same kind, or of the first frames of this one: ``track(…).learned``.
    spacing : (float, float, float)
        Size of a voxel along z, y, x; that of the calibration.
    solver : str
        As in `TrackingSettings`.

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
        # Steps show what neighbours carry; what a vote took out of them is many times as far.
        if beyond or usual > _CARRIED * float(np.linalg.norm(learned.step)):
            raise SettingsError(
                "Whole frames drift by more than particles move, which live linking does not follow. "
                "Take the drift out of the positions, or track the recording as a whole."
            )
        self._model = replace(learned.model, two_sided=False)
        # While no flow is known yet, whole steps are what must be expected.
        self._crowd = learned.crowd
        self._whole = replace(self._model, motion=Motion.static(tuple(learned.step.tolist())))
        self._axes = ["zyx".index(axis) for axis in learned.axes]
        ahead = np.ones(1, np.int64) if learned.time is None else np.diff(learned.time)
        self._skips, self._waited = learned.time is not None, 0
        # What was taken one by one holds for frames, however far apart.
        self._uneven = self._skips and bool((ahead == 1).all())
        self._spacing, self._solver = spacing, solver
        self._seen, self._tracks = _Seen.nothing(len(self._axes)), 0

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
                "A frame is an array (M, 3) of finite positions z, y, x. Fix it, and add it again."
            )
        place = np.ascontiguousarray((points * self._spacing)[:, self._axes])
        if self._skips and not len(place):
            self._waited += after
            return Joined(np.empty(0, np.int64), np.empty(0), 0.0)
        after, self._waited = 1 if self._uneven else after + self._waited, 0
        return self._joined(self._before(after).with_frame(place, after))

    def _before(self, after: int) -> _Seen:
        """Earlier frames that are used to link a frame this many intervals later."""
        if after > HOLE + 1:
            return _Seen.nothing(len(self._axes))
        return self._seen.latest(_MEMORY + len(self._model.follow))

    def _joined(self, seen: _Seen) -> Joined:
        """Link the latest frame and store the result."""
        seen, linking = self._carried(seen)
        new = seen.new
        source = linking.before[new]
        linked = source >= 0
        track = np.empty(len(source), dtype=np.int64)
        track[linked] = seen.track[source[linked]]
        fresh = int((~linked).sum())
        track[~linked] = self._tracks + np.arange(fresh)
        self._tracks += fresh
        self._seen = seen.joined(track, source[linked])
        return Joined(track, np.where(linked, linking.trust[source], 0.0), linking.gap)

    def _carried(self, seen: _Seen) -> tuple[_Seen, Linking]:
        """Links to the last frame and the flow to it, estimated in turns until few links change."""
        model, crowd = self._model, self._crowd
        if crowd is None or not seen.flows:
            return seen, self._linked(seen, model)
        whole = seen.carried(self._linked(seen, self._whole), crowd)
        guess = min((whole, seen.steady()), key=_Seen.amiss)
        linking = self._linked(guess, model)
        for _ in range(_FLOWING):
            guess, before = seen.carried(linking, crowd), linking
            linking = self._linked(guess, model)
            if (linking.before != before.before).sum() <= _SETTLED * (seen.new.stop - seen.new.start):
                break
        return guess, linking

    def _linked(self, seen: _Seen, model: LinkModel) -> Linking:
        """Links to the last frame, given the predictions from the earlier frames."""
        movie, shift, none = seen.movie, seen.shift, Linking.none(len(seen.place))
        look = look_of(model, closely=True)
        # What comes later does not show yet which links were wrong: so none is sure.
        pairs = with_gaps(movie, pairs_of(movie, model.gate), model, shift, sure=math.inf, sweep=look.sweep)
        found = look.weigh(movie, pairs, model, shift)
        found = found.where(found.pairs.row >= seen.rows(-1 - len(model.follow)).start)
        linking = solved(found.where(seen.may_link(found.pairs)), none, self._solver)
        # Links that were made may be wrong: so what they lead from may be linked to the last frame, too.
        soft = solved(found, none, self._solver)
        soft = sobered(soft, soft)
        linked, place = places_of(found.pairs.indptr, found.pairs.indices, linking.follower)
        trust = np.zeros(len(seen.place))
        trust[linked] = soft.probability[place]
        return replace(linking, trust=trust)


@dataclass(frozen=True, eq=False)
class _Seen:
    """The latest frames, with the tracks of their detections.

    Parameters
    ----------
    place : (N, axes) float64 array
    start : (F + 1,) int64 array
        Where the detections of each frame begin.
    when : (F,) int64 array
        When each was seen, in intervals.
    track : (N,) int64 array
        -1 in the last frame, until it is linked.
    ended : (N,) bool array
        Whether no link leads on from it.
    shift : (N, axes) float64 array
        Displacement by flow to the next frame.
    """

    place: NDArray[np.float64]
    start: NDArray[np.int64]
    when: NDArray[np.int64]
    track: NDArray[np.int64]
    ended: NDArray[np.bool_]
    shift: NDArray[np.float64]

    @classmethod
    def nothing(cls, axes: int) -> _Seen:
        """State of live tracking before the first frame."""
        none, never = np.empty((0, axes)), np.empty(0, dtype=np.int64)
        return cls(none, np.zeros(1, dtype=np.int64), never, never, np.empty(0, dtype=np.bool_), none)

    @property
    def new(self) -> slice:
        """Positions of the detections in the last frame."""
        return self.rows(-1)

    @property
    def flows(self) -> bool:
        """Whether each of the last two frames holds detections."""
        return all(rows.start < rows.stop for rows in (self.rows(-2), self.new))

    def rows(self, frame: int) -> slice:
        """Rows of the detections in a frame counted from the end, -1 for the last; none before the first."""
        first = len(self.when) + frame
        return slice(*self.start[[max(first, 0), max(first + 1, 0)]].tolist())

    @cached_property
    def movie(self) -> Movie:
        frame = np.repeat(np.arange(len(self.when)), np.diff(self.start))
        time = None if (np.diff(self.when) == 1).all() else self.when - self.when[0]
        return Movie(frame, self.place, np.arange(len(frame)), self.start, "", time=time)

    def latest(self, frames: int) -> _Seen:
        """The latest frames, at most this many."""
        first = max(len(self.when) - frames, 0)
        rows, start = slice(int(self.start[first]), None), self.start[first:]
        return _Seen(
            self.place[rows], start - start[0], self.when[first:], self.track[rows], self.ended[rows],
            self.shift[rows],
        )  # fmt: skip

    def with_frame(self, place: NDArray[np.float64], after: int) -> _Seen:
        """Copy of the last frames with a new frame added, `after` frame intervals later."""
        count, last = len(place), int(self.when[-1]) if len(self.when) else 0
        return _Seen(
            np.concatenate([self.place, place]), np.append(self.start, self.start[-1] + count),
            np.append(self.when, last + after), np.append(self.track, np.full(count, -1)),
            np.append(self.ended, np.ones(count, dtype=np.bool_)),
            np.concatenate([self.shift, np.zeros_like(place)]),
        )  # fmt: skip

    def may_link(self, pairs: Pairs) -> NDArray[np.bool_]:
        """(P,) bool: which pairs join the end of a track to a detection of the last frame."""
        return self.ended[pairs.row] & (pairs.indices >= self.new.start)

    def steady(self) -> _Seen:
        """Copy in which the displacement field to the last frame equals the one to the frame before."""
        before = self.rows(-3)
        if before.start == before.stop:
            return self
        now, shift = self.rows(-2), self.shift.copy()
        shift[now] = around(self.place[before] + shift[before], shift[before], self.place[now])
        return replace(self, shift=shift)

    def amiss(self) -> float:
        """Median distance from positions predicted by the flow to the nearest detection of the last frame."""
        rows = slice(self.rows(-2).start, None)
        flow = Flow(self.start[-3:] - self.start[-3], self.place[rows])
        return flow.amiss(self.shift[rows][flow.shown])

    def carried(self, linking: Linking, crowd: int) -> _Seen:
        """Copy with the displacement field to the last frame, a mean over steps of linked neighbours."""
        rows, shift = self.rows(-2), self.shift.copy()
        flow = Flow(self.start[-3:-1] - self.start[-3], self.place[rows], crowds=(crowd,))
        shift[rows], _ = flow.foretold(self.movie.steps(linking.follower)[rows], linking.trust[rows])
        return replace(self, shift=shift)

    def joined(self, track: NDArray[np.int64], source: NDArray[np.int64]) -> _Seen:
        """Copy with the last frame linked: each of its detections gets a track and a predecessor."""
        all_tracks, ended = self.track.copy(), self.ended.copy()
        all_tracks[self.new], ended[source] = track, False
        return replace(self, track=all_tracks, ended=ended)
