"""Tracks of one frame after the other, by `Live`, whose model was learned from the first frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..learned.live import Live
from ..learned.summary import Summary
from ..particles.detections import Detections
from ..settings.tracking import TrackingSettings
from ..tracking import tracked
from .dividing import Dividing


@dataclass(frozen=True, eq=False)
class Followed:
    """A frame, linked.

    Parameters
    ----------
    frame : int
    detections : Detections
        Of this frame.
    track : (M,) int64 array
        The track of each.
    probability : (M,) float64 array
        Of the link to the track's last detection; NaN where a track begins.
    parent : (M,) int64 array
        The track that divided, for the first detections of daughters; else -1.
    """

    frame: int
    detections: Detections
    track: NDArray[np.int64]
    probability: NDArray[np.float64]
    parent: NDArray[np.int64]


class Names:
    """The numbers of tracks in the output, where a daughter is another track than its mother."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}  # by that of `Live`: the number, and that of the parent
        self._count = 0

    def named(self, live: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers and parents of the tracks of a frame; those that are new get the next ones."""
        for number in live.tolist():
            if number not in self._known:
                self._known[number] = self._count, -1
                self._count += 1
        pairs = np.array([self._known[number] for number in live.tolist()], np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def of(self, live: int) -> int:
        """The number of a track."""
        return self._known[live][0]

    def born(self, live: int, parent: int) -> int:
        """The number of a track that is a daughter from now on."""
        self._known[live] = self._count, parent
        self._count += 1
        return self._known[live][0]

    def keep(self, live: NDArray[np.int64]) -> None:
        """Forget all tracks but these, which may go on."""
        self._known = {number: self._known[number] for number in live.tolist() if number in self._known}

    def state(self) -> NDArray[np.int64]:
        """From which `restore` goes on."""
        rows = [(live, *names) for live, names in self._known.items()]
        return np.array([(self._count, 0, 0), *rows], np.int64)

    def restore(self, state: NDArray[np.int64]) -> None:
        """Go on from a state."""
        (self._count, _, _), *rows = state.tolist()
        self._known = {live: (own, parent) for live, own, parent in rows}


@dataclass
class Follower:
    """Links frames as they come, once a model is learned from the first ones, which wait until then.

    Parameters
    ----------
    settings : TrackingSettings
        Those of the last pass.
    frames : int
        Frames that a model is learned from, at first; more where they hold too little.
    workers : int
        Threads; they do not change the result.
    """

    settings: TrackingSettings
    frames: int
    workers: int
    learned_from: int = 0
    learned: Summary | None = None
    _live: Live | None = None
    _last: int | None = None
    _alone: int = 0
    _dividing: Dividing | None = None
    _names: Names = field(default_factory=Names)
    _before: tuple[NDArray[np.float64], NDArray[np.int64]] = field(
        default_factory=lambda: (np.empty((0, 3)), np.empty(0, np.int64))
    )
    _waiting: list[tuple[int, Detections]] = field(default_factory=list)

    def add(self, frame: int, seen: Detections, *, ended: bool = False) -> list[Followed]:
        """Frames that are linked now: none before there is a model, then all that have waited.

        `ended`: no more will come, so that a model is learned from the frames that are there.
        """
        self._waiting.append((frame, seen))
        if self._live is None and (len(self._waiting) >= self.frames or ended):
            self._learn()
        return self.rest(ended=ended) if self._live is not None or ended else []

    def rest(self, *, ended: bool) -> list[Followed]:
        """The frames that wait; without a model each detection is a track, if no more will come."""
        if self._live is None and ended:
            self._learn()
        found = [self._followed(*one) for one in self._waiting]
        self._waiting = []
        return found

    def state(self) -> dict[str, NDArray]:
        """From which `restore` goes on, together with the detections that the model was learned from."""
        known = {} if self._live is None else self._live.state()
        last = -1 if self._last is None else self._last
        place, track = self._before
        known |= {"learned_from": np.array(self.learned_from), "last": np.array(last)}
        return known | {"names": self._names.state(), "before": place, "before_track": track}

    def restore(self, state: Mapping[str, NDArray], first: list[Detections]) -> None:
        """Go on from a state; `first` are the detections of the frames that the model was learned from."""
        self.learned_from, self._last = int(state["learned_from"]), int(state["last"])
        self._begin(first)
        self._names.restore(state["names"])
        self._before = state["before"], state["before_track"]
        if self._live is not None:
            self._live.restore(state)

    def _learn(self) -> None:
        """Learn from the frames that wait; if they hold too little, twice as many are waited for."""
        self._begin([seen for _, seen in self._waiting])
        if self._live is None:
            self.frames *= 2
        else:
            self.learned_from = self._waiting[-1][0] + 1

    def _begin(self, frames: list[Detections]) -> None:
        there = [seen for seen in frames if len(seen)]
        first = Detections.joined(there) if there else Detections.from_table([], [])
        alone = replace(self.settings, max_distance=None, device="cpu")
        made = tracked(first, alone, self.workers, None)
        self.learned = made.learned
        if self.learned is not None:
            self._dividing = Dividing.of(made.tracks, self.learned)
            given = self.settings.calibration_of(first)
            self._live = Live(self.learned, calibration=given, workers=self.workers)

    def _followed(self, frame: int, seen: Detections) -> Followed:
        none = np.full(len(seen), -1)
        if self._live is None or self.learned is None:
            self._alone += len(seen)
            return Followed(frame, seen, self._alone + none - np.arange(len(seen)), none * np.nan, none)
        before = frame - self.learned.interval if self._last is None else self._last
        after = max(round((frame - before) / self.learned.interval), 1)
        joined = self._live.add(seen.position, after=after, features=seen.features)
        probability = np.where(joined.probability > 0, joined.probability, np.nan)
        track, parent = self._names.named(joined.track)
        if self._dividing is not None and after == 1:
            track, parent = self._divided(seen.position, joined.track, track, parent)
        self._last, self._before = frame, (seen.position, joined.track)
        self._names.keep(self._live.tracks)
        return Followed(frame, seen, track, probability, parent)

    def _divided(
        self, place: NDArray[np.float64], live: NDArray[np.int64], track: NDArray, parent: NDArray
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Names and parents of the frame's tracks after its divisions: both daughters are new tracks."""
        assert self._dividing is not None
        at, known = self._before
        row = {number: k for k, number in enumerate(known.tolist())}
        source = np.array([row.get(number, -1) for number in live.tolist()], np.int64)
        for mother, *daughters in self._dividing.divided(at, place, source):
            name = self._names.of(int(known[mother]))
            for daughter in daughters:
                track[daughter] = self._names.born(int(live[daughter]), name)
                parent[daughter] = name
        return track, parent
