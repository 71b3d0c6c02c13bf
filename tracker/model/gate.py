"""Gate: distance from the predicted position within which successors are searched."""

from __future__ import annotations

import numpy as np

from .motion import MotionModel

_DEVIATIONS = 4.0
"""Error level: radius in standard deviations of the widest class of steps; in 3D, 1 in 900 of its steps is
longer."""
CHANCE = 1e-3
"""Error level: likelihood ratio of a link against chance below which it is no candidate."""


def radius(motion: MotionModel, lag: int, chance: float) -> float:
    """Distance from the predicted position within which detections `lag` frames later are candidates.

    Parameters
    ----------
    motion : MotionModel
    lag : int
    chance : float
        Density of chance pairs: the gate ends where the widest class is less probable.

    Examples
    --------
    >>> unit = np.ones(1)
    >>> walk = MotionModel(unit[:, None], 0 * unit, unit, unit, 0 * unit, unit)
    >>> radius(walk, 1, 1e-9), radius(walk, 1, 1.0)
    (4.0, 0.0)
    """
    spread = float(motion.displacement_variance(lag).max())
    axes = motion.variance.shape[1]
    peak = (2 * np.pi * spread) ** (-axes / 2) / chance
    deviations = np.sqrt(2 * np.log(max(peak, 1.0)))
    return float(min(deviations, _DEVIATIONS) * np.sqrt(spread))
