"""Proofreading: a model that is held while pins come and go, and the links that are worth a look.

Tracks are a function of detections, model and pins: `resolve` gives what `outbid.track` gives with the same
settings and pins, in the time of a few sweeps.

    held = hold(detections, settings)          # learns once; of a gate there is nothing to learn
    now = resolve(held, pins)                  # as often as pins change
    for doubt in doubts(now): ...              # the least probable first
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .detections import Detections
from .pins import Pin
from .tracking import TrackingRun, TrackingSettings


@dataclass(frozen=True, eq=False)
class HeldModel:
    """Detections, settings and what was learned from them.

    Parameters
    ----------
    detections : Detections
    settings : TrackingSettings
        Without pins.
    workers : int
        Threads; they do not change the result.
    learned : object
        The model and the posterior without pins; None with a gate.
    """

    detections: Detections
    settings: TrackingSettings
    workers: int
    learned: object = None


class Resolved(NamedTuple):
    """Tracks under pins, and what else was possible.

    Parameters
    ----------
    run : TrackingRun
        Its settings have the pins.
    candidates : (E, 2) int64 array
        Rows of source and target of each candidate link, sorted; with pins obeyed.
    probability : (E,) float64 array
        Of each; NaN with a gate, where there is none.
    end, start, clutter : (N,) float64 arrays
        Probabilities that a detection has no successor but is a particle, has no predecessor but is one, and
        is none. NaN with a gate.
    unmatched : tuple of Pin
        Pins whose detections are not there.
    """

    run: TrackingRun
    candidates: NDArray[np.int64]
    probability: NDArray[np.float64]
    end: NDArray[np.float64]
    start: NDArray[np.float64]
    clutter: NDArray[np.float64]
    unmatched: tuple[Pin, ...]

    @property
    def expected_wrong(self) -> float:
        """Expected number of wrong links; NaN with a gate."""
        chance = self.run.tracks.link_probability
        return float("nan") if chance is None else float((1 - chance).sum())


class Doubt(NamedTuple):
    """A detection whose successor is in doubt.

    Parameters
    ----------
    row : int
    successors : tuple of int
        Rows of its present successors: none where its track ends, two where it divides.
    value : float
        Probability of the present state; with a gate the margin of the link. The lowest come first.
    alternatives : tuple of (int, float)
        Row and probability of each possible successor, the most probable first, at most four; row -1 is the
        end of the track, row -2 clutter. The present state is among them. With a gate the second is the
        cost of the link.
    """

    row: int
    successors: tuple[int, ...]
    value: float
    alternatives: tuple[tuple[int, float], ...]


def hold(
    detections: Detections,
    settings: TrackingSettings,
    *,
    workers: int | None = None,
    pins: Sequence[Pin] = (),
) -> HeldModel:
    """Learn a model from the movie, or take the gate of the settings.

    Parameters
    ----------
    detections : Detections
    settings : TrackingSettings
        Pins among them are left out.
    workers : int, optional
        Threads.
    pins : sequence of Pin
        Held while the model is learned, so that it is learned from what they state.
    """
    raise NotImplementedError(os.name)


def resolve(
    held: HeldModel,
    pins: Sequence[Pin] = (),
    *,
    before: Resolved | None = None,
    tolerance: float | None = None,
) -> Resolved:
    """Tracks under a model that is held, and pins: what `outbid.track` gives with these.

    Parameters
    ----------
    held : HeldModel
    pins : sequence of Pin
        All that hold, not only new ones.
    before : Resolved, optional
        The result with other pins: what does not depend on those that changed is taken from it. It does not
        change the result.
    tolerance : float, optional
        As in `resolve_pins`.

    Raises
    ------
    SettingsError
        If pins contradict each other.
    """
    raise NotImplementedError


def doubts(resolved: Resolved, count: int | None = None) -> list[Doubt]:
    """Detections whose successor is in doubt, the most doubtful first; those with a pin are left out.

    Parameters
    ----------
    resolved : Resolved
    count : int, optional
        How many at most. Default: all.
    """
    raise NotImplementedError
