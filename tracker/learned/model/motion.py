"""Motion: classes of steps, each a stationary autoregression, with renewals; and localisation noise."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import FRAME, Arrays

CORRELATION = -0.5, 0.995
"""Prior: least and largest correlation of a class. Positions of white noise have -.5; a class below would
explain clutter where a particle is missed, as a wide step there and back."""


@dataclass(frozen=True, eq=False)
class MotionModel(Arrays):
    r"""Motion of particles relative to the common flow, in K classes and along D axes.

    The step s of a particle in an interval adds ``scale s`` to its position. Within a class

    .. math:: s' = a_c s + N(0, S_c (1 - a_c^2)), \quad s \sim N(0, S_c)

    which is stationary and therefore reversible in time. With probability :math:`\lambda_c` the next step is
    a renewal: it is independent and has class c' with probability :math:`\pi_{c'} \lambda_{c'} / \sum_k \pi_k
    \lambda_k`, so that :math:`\pi` remains the share of the classes. The observed position is y = x + N(0,
    r).

    Parameters
    ----------
    variance : (K, D) float64 array
        S, the variance of the step in one interval.
    correlation : (K,) float64 array
        a, the correlation of successive steps.
    share : (K,) float64 array
        Share of steps in each class; sums to 1.
    renewal : (K,) float64 array
        Probability that the next step is a renewal.
    noise : (D,) float64 array
        r, the variance of the localisation error.
    step_scale : (F - 1,) float64 array
        Scale of the steps from each frame to the next, in each of its intervals; its mean square over links
        is 1.
    """

    variance: NDArray[np.float64]
    correlation: NDArray[np.float64]
    share: NDArray[np.float64]
    renewal: NDArray[np.float64]
    noise: NDArray[np.float64]
    step_scale: NDArray[np.float64] = field(metadata=FRAME)

    @property
    def classes(self) -> int:
        """Number of classes of steps, K."""
        return len(self.share)

    @property
    def entry(self) -> NDArray[np.float64]:
        """(K,) probability of each class after a renewal.

        Examples
        --------
        >>> two = np.array([0.5, 0.5])
        >>> unit = np.ones((2, 1))
        >>> MotionModel(unit, two, two, np.array([0.3, 0.1]), unit[0], unit[0]).entry.round(2).tolist()
        [0.75, 0.25]
        """
        left = self.share * self.renewal
        return left / left.sum()

    def kept(self, frames: int) -> float:
        """Correlation of steps `lag` frames apart, over all classes.

        Examples
        --------
        >>> unit = np.ones(1)
        >>> walk = MotionModel(unit[:, None], 0.5 * unit, unit, 0.2 * unit, unit, unit)
        >>> round(walk.kept(2), 2)
        0.16
        """
        each = self.share * self.variance.sum(axis=1)
        lasting = ((1 - self.renewal) * self.correlation) ** frames
        return float((each * lasting).sum() / each.sum())

    def continued(self, lag: int) -> NDArray[np.float64]:
        """(D,) regression of the displacement over `lag` intervals on that of the interval before.

        Examples
        --------
        >>> unit = np.ones(1)
        >>> walk = MotionModel(unit[:, None], 0.5 * unit, unit, 0 * unit, 0.1 * unit, unit)
        >>> walk.continued(2).round(3).tolist()
        [0.542]
        """
        variance = self.share @ self.variance
        kept = sum(self.kept(frames) for frames in range(1, lag + 1))
        return np.asarray((kept * variance - self.noise) / (variance + 2 * self.noise))

    def displacement_variance(self, lag: int) -> NDArray[np.float64]:
        """(K, D) variance of the observed displacement over `lag` frames, including noise at both ends.

        Examples
        --------
        >>> unit = np.ones(1)
        >>> walk = MotionModel(unit[:, None], 0 * unit, unit, unit, 0.1 * unit, unit)
        >>> walk.displacement_variance(2).tolist()
        [[2.2]]
        """
        apart = np.abs(np.subtract.outer(np.arange(lag), np.arange(lag)))
        summed = (self.correlation[:, None, None] ** apart).sum(axis=(1, 2))
        return self.variance * summed[:, None] + 2 * self.noise
