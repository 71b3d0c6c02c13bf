"""Association: delay to the next detection; births, deaths and clutter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module
from .levels import LEAST


@dataclass(frozen=True, eq=False)
class AssociationModel:
    """Probabilities that are the same for all detections.

    Parameters
    ----------
    delay : (L,) float64 array
        Detection delay: probability that the successor of a detection is 1, 2, …, L frames later.
    delay_back : (L,) float64 array
        The same for the predecessor, 1, 2, …, L frames earlier.
    clutter : float
        Probability that a detection is clutter.
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
        """(N,) probability of no successor: death, or no detection within the longest lag or the movie.

        Parameters
        ----------
        left : (N,) int64 array
            Number of frames that follow each detection in the movie.
        survival : (N,) float64 array
            As in `Surroundings`.
        """
        return _none(self.delay, left, survival)

    def birth(self, gone: NDArray[np.int64], survival_back: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) probability of no predecessor, from the number of earlier frames and backward survival."""
        return _none(self.delay_back, gone, survival_back)


def _none(
    delay: NDArray[np.float64], frames: NDArray[np.int64], survival: NDArray[np.float64]
) -> NDArray[np.float64]:
    within = array_module(survival).asarray(np.concatenate([[0.0], np.cumsum(delay)]))
    return np.maximum(1 - survival * within[np.minimum(frames, len(delay))], LEAST)
