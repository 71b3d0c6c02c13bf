"""The model: what is assumed of a movie before any link is made.

`motion`        steps of a particle: classes of a stationary first-order autoregression, renewals, noise
`association`   who is seen next, and when: detection delays, births, deaths, clutter
`movie`         detections as arrays, in units of their spacing
`gate`          how far ahead a successor is looked for
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .association import AssociationModel as AssociationModel
from .motion import MotionModel as MotionModel


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What varies in space, one value a detection.

    Parameters
    ----------
    flow : (N, D) float64 array
        Step to the next frame that a detection shares with its neighbours.
    survival, survival_back : (N,) float64 arrays
        Probability of a successor (a predecessor) there, relative to its mean.
    """

    flow: NDArray[np.float64]
    survival: NDArray[np.float64]
    survival_back: NDArray[np.float64]

    @classmethod
    def uniform(cls, flow: NDArray[np.float64]) -> Surroundings:
        """The same survival everywhere."""
        one = np.ones(len(flow))
        return cls(flow, one, one)


@dataclass(frozen=True, eq=False)
class Model:
    """All that decides how likely a link is; every parameter has one owner, an M-step in `learn`.

    Parameters
    ----------
    motion : MotionModel
    association : AssociationModel
    surroundings : Surroundings
    """

    motion: MotionModel
    association: AssociationModel
    surroundings: Surroundings
