"""Which motion explains the steps of a group: the families, and their weights by BIC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .likelihood import CONFINED, FRACTIONAL, PERSISTENT, Floats, Motion, Pieces
from .paths import Rows, pieces_of
from .pooled import Pooled, pooled

MOTIONS: Mapping[str, tuple[Motion, float | None]] = {
    "diffusion": (FRACTIONAL, 1.0), "anomalous": (FRACTIONAL, None), "persistent": (PERSISTENT, None),
    "confined": (CONFINED, None),
}  # fmt: skip
"""Families that are compared, and the parameter of the one that has none."""
_SLOPE = 1e-4
"""Step of the numerical derivative of a displacement by the parameter of the motion."""


@dataclass(frozen=True, eq=False)
class Fits:
    """The fits of all motions to the tracks of a group; None for one with too few steps.

    Parameters
    ----------
    fit : mapping of str to Pooled or None
    weight : mapping of str to float
        exp(-BIC/2) of each, of a sum of 1: the probability of each motion if one of them is true.
    """

    fit: Mapping[str, Pooled | None]
    weight: Mapping[str, float]

    @classmethod
    def of(cls, pieces: Pieces, weight: Floats) -> Fits:
        """Fit every motion to tracks with the weights (T,)."""
        fit = {name: pooled(pieces, weight, motion, fixed) for name, (motion, fixed) in MOTIONS.items()}
        penalty = 0.5 * np.log(max(float(weight @ pieces.steps_of()), 1.0))
        evidence = {
            name: one.log_likelihood - penalty * (MOTIONS[name][1] is None)
            for name, one in fit.items()
            if one is not None
        }
        best = max(evidence.values(), default=0.0)
        odds = {name: float(np.exp(value - best)) for name, value in evidence.items()}
        return cls(fit, {name: one / sum(odds.values()) for name, one in odds.items()})

    @property
    def chosen(self) -> str | None:
        """The motion of the largest weight; None if there are too few steps."""
        return max(self.weight, key=lambda name: self.weight[name], default=None)

    @property
    def best(self) -> Pooled | None:
        """The fit of the chosen motion."""
        return None if self.chosen is None else self.fit[self.chosen]

    @property
    def diffusing(self) -> Pooled | None:
        """The fit that a diffusion coefficient comes from; an anomalous motion has none."""
        return None if self.chosen == "anomalous" else self.best


def fitted(position: Floats, frame: Rows, owner: Rows) -> Fits:
    """All motions of all tracks together, over steps of a frame.

    Parameters
    ----------
    position, frame, owner
        As for `pieces_of`.
    """
    count = int(owner.max(initial=-1)) + 1
    return Fits.of(pieces_of(position, frame, owner, 1, count), np.ones(count))


def diffusion_of(fit: Pooled, interval: float) -> tuple[float, Floats]:
    r"""Diffusion coefficient, and its first-order change by the weight of each track (T,).

    :math:`D = \bar s / (2 m(1) Δt)`, the slope of a displacement m(t) that begins or ends as t: that of long
    times for a persistent motion, and of short times for a confined one.

    Parameters
    ----------
    fit : Pooled
        Of diffusion, persistent or confined motion.
    interval : float
    """
    at = np.ones(1)
    here = float(fit.motion.displacement(at, fit.parameter)[0])
    ahead = float(fit.motion.displacement(at, fit.parameter + _SLOPE)[0])
    unit = 1 / (2 * interval * len(fit.scale) * here)
    bend = (ahead - here) / (_SLOPE * here)
    change = (fit.influence[:, 1:] * fit.scale).sum(axis=1) - fit.scale.sum() * bend * fit.influence[:, 0]
    return float(fit.scale.sum()) * unit, change * unit
