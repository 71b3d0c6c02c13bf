"""Association: who is seen next, and when; births, deaths and clutter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_RATE = 1e-4
"""Error level: no track goes on more surely than by one minus this."""


@dataclass(frozen=True, eq=False)
class AssociationModel:
    """Probabilities that hold for every detection.

    Parameters
    ----------
    delay : (L,) float64 array
        Detection delay: probability that the successor of a detection is seen 1, 2, …, L frames later.
    delay_back : (L,) float64 array
        The same of the predecessor, so many frames before.
    clutter : float
        Probability that a detection is of no particle.
    """

    delay: NDArray[np.float64]
    delay_back: NDArray[np.float64]
    clutter: float

    @property
    def longest(self) -> int:
        """L, the largest lag of a link in frames."""
        return len(self.delay)

    @property
    def clutter_odds(self) -> float:
        """Odds that a detection is clutter."""
        return self.clutter / (1 - self.clutter)

    def death(self, left: NDArray[np.int64], survival: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) probability of no successor: death, or none before the movie's end or within the longest lag.

        Parameters
        ----------
        left : (N,) int64 array
            Frames that follow in the movie.
        survival : (N,) float64 array
            As in `Surroundings`.
        """
        return _none(self.delay, left, survival)

    def birth(self, gone: NDArray[np.int64], survival_back: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) probability of no predecessor, by the frames that went before and the survival backwards."""
        return _none(self.delay_back, gone, survival_back)


def _none(
    delay: NDArray[np.float64], frames: NDArray[np.int64], survival: NDArray[np.float64]
) -> NDArray[np.float64]:
    within = np.concatenate([[0.0], np.cumsum(delay)])
    return np.maximum(1 - survival * within[np.minimum(frames, len(delay))], LEAST_RATE)
