"""The gate of the scores: the distance within which two detections may be the same particle."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from ..geometry.neighbours import nearest
from ..particles.detections import Detections
from ..particles.tracks import Tracks

_SAMPLE = 200_000
"""Number of true detections in the sampled frames; at least one whole frame."""
_SHARE = 0.5
"""Default gate as a fraction of the distance between neighbours."""
_OF_THE_CHALLENGE = 5.0


@dataclass(frozen=True)
class Gate:
    """A gate and how it was chosen; printed as a sentence.

    Parameters
    ----------
    distance : float
    unit : str
    origin : str
        What it is; ``"given"`` if it was chosen by the caller.

    Examples
    --------
    >>> print(Gate(0.5, "micrometer", "given"))
    Gate: 0.5 micrometer, given.
    """

    distance: float
    unit: str
    origin: str

    def __str__(self) -> str:
        return f"Gate: {self.distance:g} {self.unit}, {self.origin}."


def gate_for(given: float | None, truth: Tracks) -> Gate:
    """The given gate, or the default one for a truth.

    Half of the median distance from a true detection to its nearest neighbour in the frame, to three
    digits. If no frame has two detections at different positions, the default gate is the median length
    of the true links; without true links it is 5, as in the ISBI challenge.

    Parameters
    ----------
    given : float or None
    truth : Tracks

    Raises
    ------
    SettingsError
        If the gate is not positive and finite.

    Examples
    --------
    >>> seen = Detections.from_table([0, 0, 0, 1], [[0, 0, 0], [0, 0, 4], [0, 0, 9], [0, 0, 0]])
    >>> gate_for(None, Tracks(seen, np.array([[0, 3]]))).distance
    2.0
    """
    unit = truth.detections.unit
    if given is not None:
        if not (math.isfinite(given) and given > 0):
            raise SettingsError(f"The gate is {given}; it must be a distance above 0.")
        return Gate(float(given), unit, "given")
    apart = _to_neighbours(truth.detections)
    if len(apart):
        half = "half of the median distance from a true detection to the nearest in its frame"
        return Gate(_short(_SHARE * float(np.median(apart))), unit, half)
    source, target = truth.detections.position[truth.links.T]
    steps = np.linalg.norm(target - source, axis=1)
    if (steps > 0).any():
        return Gate(_short(float(np.median(steps[steps > 0]))), unit, "the median length of a true link")
    return Gate(_OF_THE_CHALLENGE, unit, "that of the ISBI challenge, for the truth shows no distance")


def _short(distance: float) -> float:
    """Round to three digits, so that the printed gate can be given as an option."""
    return float(f"{distance:.3g}")


def _to_neighbours(seen: Detections) -> NDArray[np.float64]:
    """Distances, above 0, of the detections of some frames to the nearest in the frame."""
    frames, size = np.unique(seen.frame, return_counts=True)
    frames = frames[size > 1]
    if not len(frames):
        return np.empty(0)
    most = max(1, int(_SAMPLE / float(size[size > 1].mean())))
    some = frames[np.linspace(0, len(frames) - 1, min(most, len(frames))).astype(int)]
    part = seen.take(np.isin(seen.frame, some))
    start = np.searchsorted(part.frame, np.append(some, some[-1] + np.int64(1))).astype(np.int64)
    distance = np.sqrt(nearest(part.position, start, np.arange(len(part)), 1)[1][:, 0])
    return distance[(distance > 0) & np.isfinite(distance)]
