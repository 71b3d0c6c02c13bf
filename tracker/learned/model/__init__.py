"""The model: assumptions about the motion and detection of particles in a movie.

`motion`        steps of a particle: classes of first-order autoregressions, renewals, noise
`features`         columns of detections: what tracks keep of them, odds of clutter
`levels`        what does not count; rounds of iterations
`movie`         detections as arrays, in units of their spacing
`gate`          search radius for successors
`advection`     displacement by the flow over several frames
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import ROW, Arrays, array_module
from .features import FeatureModel as FeatureModel
from .motion import MotionModel as MotionModel


@dataclass(frozen=True, eq=False)
class LocalFields(Arrays):
    """Quantities that vary in space, with one value per detection.

    Parameters
    ----------
    flow : (N, D) float64 array
        Step to the next frame that a detection shares with its neighbours.
    survival, survival_back : (N,) float64 arrays
        Probability of a successor (of a predecessor) at each detection, relative to the mean.
    """

    flow: NDArray[np.float64] = field(metadata=ROW)
    survival: NDArray[np.float64] = field(metadata=ROW)
    survival_back: NDArray[np.float64] = field(metadata=ROW)

    @classmethod
    def uniform(cls, flow: NDArray[np.float64]) -> LocalFields:
        """Uniform survival."""
        one = array_module(flow).ones(len(flow))
        return cls(flow, one, one)


Surroundings = LocalFields
"""The former name, for one release."""


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
class Model(Arrays):
    """All parameters that determine link probabilities; each parameter is estimated by one M-step in `learn`.

    Parameters
    ----------
    motion : MotionModel
    association : AssociationModel
    local : LocalFields
    features : FeatureModel, optional
        What columns say, once it is learned.
    """

    motion: MotionModel
    association: AssociationModel
    local: LocalFields
    features: FeatureModel | None = None

    @property
    def surroundings(self) -> LocalFields:
        """The former name of `local`, for one release."""
        return self.local
