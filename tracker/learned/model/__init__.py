"""The model: assumptions about the motion and detection of particles in a movie.

`motion`        steps of a particle: classes of first-order autoregressions, renewals, noise
`marks`         columns of detections: what tracks keep of them, odds of clutter
`levels`        what does not count; rounds of iterations
`movie`         detections as arrays, in units of their spacing
`gate`          search radius for successors
`advection`     displacement by the flow over several frames
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, placed
from .marks import MarkModel as MarkModel
from .motion import MotionModel as MotionModel


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Quantities that vary in space, with one value per detection.

    Parameters
    ----------
    flow : (N, D) float64 array
        Step to the next frame that a detection shares with its neighbours.
    survival, survival_back : (N,) float64 arrays
        Probability of a successor (of a predecessor) at each detection, relative to the mean.
    """

    flow: NDArray[np.float64]
    survival: NDArray[np.float64]
    survival_back: NDArray[np.float64]

    @classmethod
    def uniform(cls, flow: NDArray[np.float64]) -> Surroundings:
        """Uniform survival."""
        one = array_module(flow).ones(len(flow))
        return cls(flow, one, one)

    def at(self, rows: NDArray[np.int64]) -> Surroundings:
        """Those of some detections (M,)."""
        return Surroundings(self.flow[rows], self.survival[rows], self.survival_back[rows])


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


@dataclass(frozen=True, eq=False)
class Model:
    """All parameters that determine link probabilities; each parameter is estimated by one M-step in `learn`.

    Parameters
    ----------
    motion : MotionModel
    association : AssociationModel
    surroundings : Surroundings
    marks : MarkModel, optional
        What columns say, once it is learned.
    """

    motion: MotionModel
    association: AssociationModel
    surroundings: Surroundings
    marks: MarkModel | None = None

    def placed(self, place: Callable[[Any], Any]) -> Model:
        """The model with arrays of detections placed elsewhere, by `to_device` or `to_host`."""
        return replace(self, surroundings=placed(self.surroundings, place))
