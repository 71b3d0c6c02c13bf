"""Gate: how far from where it is expected a successor is looked for."""

from __future__ import annotations

import numpy as np

from .motion import MotionModel

_DEVIATIONS = 4.0
"""Error level: standard deviations of the widest class of steps; 1 in 900 of its own lies beyond, in 3D."""
CHANCE = 1e-3
"""Error level: likelihood of a link, in that of chance, below which it is no candidate."""


def radius(motion: MotionModel, lag: int, chance: float) -> float:
    """Distance from the expected place within which successors `lag` frames later are candidates.

    Parameters
    ----------
    motion : MotionModel
    lag : int
    chance : float
        Weight of a pair by chance, a unit of volume: where the widest class is less likely, none is sought.

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
