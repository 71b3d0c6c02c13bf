"""Whether frames look as those did from which detection was learned: lamp, focus, bleaching."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from ..particles.detections import Detections

FRAMES = 8
"""Prior: frames that detection is learned from, and that are compared."""
_CHANGED = log(1.25)
"""Error level: logarithm of a ratio; of noise, eight frames in a row hardly differ so far to one side."""
_ANSCOMBE = 3 / 8
"""Twice the root of a number plus this has a standard deviation of 1, if it is counted."""
_SEEN = ("number", "radius", "misfit")


class Light:
    """What spots are like in the first frames after learning, and in the latest ones.

    Examples
    --------
    >>> light = Light()
    >>> for number in range(24):
    ...     light.add_row(number, [100.0 if number < 16 else 60.0, 1.8, 1.0])
    >>> light.change()
    'number 100 -> 60'
    """

    def __init__(self) -> None:
        self._rows: list[list[float]] = []

    def add(self, number: int, found: Detections) -> None:
        """Add the detections of a frame of this number."""
        middle = [float(np.median(found.features[name])) if len(found) else np.nan for name in _SEEN[1:]]
        self.add_row(number, [float(len(found)), *middle])

    def add_row(self, number: int, seen: Sequence[float]) -> None:
        """Add how many spots a frame has, their radius and misfit."""
        first, latest = self._rows[:FRAMES], self._rows[FRAMES:]
        self._rows = [*first, *latest[-FRAMES + 1 :], [number, *seen]]

    @property
    def latest(self) -> list[int]:
        """Numbers of the latest frames."""
        return [int(row[0]) for row in self._rows[-FRAMES:]]

    def change(self) -> str:
        """What differs in each of the latest frames from the first ones, and to the same side; or nothing."""
        if len(self._rows) < 2 * FRAMES:
            return ""
        rows = np.array(self._rows)[:, 1:]
        before, here = np.median(rows[:FRAMES], axis=0), rows[-FRAMES:]
        with np.errstate(divide="ignore", invalid="ignore"):  # there may be none
            ratio = np.log(here) - np.log(before)
        far = np.abs(ratio) > _CHANGED
        counted = 2 * (np.sqrt(here[:, 0] + _ANSCOMBE) - np.sqrt(before[0] + _ANSCOMBE))
        far[:, 0] &= np.abs(counted) > 1
        differs = far.all(axis=0) & (np.abs(np.sign(ratio).sum(axis=0)) == FRAMES)
        after = np.median(here, axis=0)
        return ", ".join(
            f"{name} {before[k]:.3g} -> {after[k]:.3g}" for k, name in enumerate(_SEEN) if differs[k]
        )

    def state(self) -> NDArray[np.float64]:
        """From which `restore` goes on."""
        return np.array(self._rows, np.float64).reshape(-1, 1 + len(_SEEN))

    def restore(self, state: NDArray[np.float64]) -> None:
        """Go on from a state."""
        self._rows = state.tolist()
