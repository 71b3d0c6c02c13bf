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


@dataclass
class Follower:
    """Links frames as they come, once a model is learned from the first ones, which wait until then.

    Parameters
    ----------
    settings : TrackingSettings
        Those of the last pass; live, positions alone count.
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
        return known | {"learned_from": np.array(self.learned_from), "last": np.array(last)}

    def restore(self, state: Mapping[str, NDArray], first: list[Detections]) -> None:
        """Go on from a state; `first` are the detections of the frames that the model was learned from."""
        self.learned_from, self._last = int(state["learned_from"]), int(state["last"])
        self._begin(first)
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
        alone = replace(self.settings, features=None, max_distance=None, device="cpu")
        self.learned = tracked(first, alone, self.workers, None).learned
        if self.learned is not None:
            given = self.settings.calibration_of(first)
            self._live = Live(self.learned, calibration=given, workers=self.workers)

    def _followed(self, frame: int, seen: Detections) -> Followed:
        none = np.full(len(seen), -1)
        if self._live is None or self.learned is None:
            self._alone += len(seen)
            return Followed(frame, seen, self._alone + none - np.arange(len(seen)), none * np.nan, none)
        before = frame - self.learned.interval if self._last is None else self._last
        after = max(round((frame - before) / self.learned.interval), 1)
        joined = self._live.add(seen.position, after=after)
        self._last = frame
        probability = np.where(joined.probability > 0, joined.probability, np.nan)
        return Followed(frame, seen, joined.track, probability, none)
