"""Gate: predicted positions, and the distance from them within which successors are searched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .motion import MotionModel
from .movie import Movie


def radius(motion: MotionModel, lag: int, background: float) -> float:
    """Distance from the predicted position within which detections `lag` intervals later are candidates.

    The background is the density of chance pairs: the gate ends where the widest class is less probable.

    Examples
    --------
    >>> unit = np.ones(1)
    >>> walk = MotionModel(unit[:, None], 0 * unit, unit, unit, 0 * unit, unit)
    >>> round(radius(walk, 1, 1e-3), 2), radius(walk, 1, 1.0)
    (3.46, 0.0)
    """
    spread = float(motion.displacement_variance(lag).max())
    axes = motion.variance.shape[1]
    peak = (2 * np.pi * spread) ** (-axes / 2) / background
    deviations = np.sqrt(2 * np.log(max(peak, 1.0)))
    return float(deviations * np.sqrt(spread))


def reaches(movie: Movie, motion: MotionModel, lag: int, background: float) -> NDArray[np.float64]:
    """(N,) the radius for each detection, `lag` frames later; frames not recorded make it longer."""
    return _by_interval(movie, lag, lambda between: radius(motion, between, background))


def predicted(movie: Movie, motion: MotionModel, lag: int, step: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, D) displacement over `lag` frames relative to the flow, by regression on the last steps (N, D).

    The last step is 0 if it is not known.
    """
    return _by_interval(movie, lag, motion.continued) * step


def _by_interval(movie: Movie, lag: int, value: Callable[[int], ArrayLike]) -> NDArray[np.float64]:
    """(N, …) a value for each detection, from the number of intervals to the frame `lag` later."""
    between, index = np.unique(movie.lasting(lag), return_inverse=True)
    return movie.of_frames(np.array([value(int(many)) for many in between])[index])
