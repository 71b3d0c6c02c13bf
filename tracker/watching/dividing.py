r"""Divisions while a movie is recorded, by what the divisions of the first frames were like.

A mother in the frame before, and two detections without another past, or one that was linked to the mother
and one without a past, are a division with the odds

.. math:: \frac{\beta N(m; 0, \sigma_m^2) \, N(\log r) / (A_D r^D)}{N(d; 0, \sigma^2) \, s \rho}

of the rate :math:`\beta` of divisions, the offset m of the daughters' midpoint from the mother, their
distance r, the surface :math:`A_D` of the unit sphere, the step d of the linked one, the rate s of beginnings
and the density :math:`\rho` of detections. Where neither was linked, :math:`(s \rho)^2` and the rate of ends
stand below.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma, log, pi

import numpy as np
from numpy.typing import NDArray

from ..learned.summary import Summary
from ..particles.tracks import Tracks

_LEAST = 3
"""Error level: divisions of the first frames from which the next ones are found; fewer show no spread."""
_FLOOR = 1e-9
"""Guard: least variance and rate, relative to those of steps."""


@dataclass(frozen=True, eq=False)
class Dividing:
    """What divisions are like; lengths are in the unit of the positions, along the axes that vary.

    Parameters
    ----------
    axes : list of int
    rate, start, end : float
        Of divisions, beginnings and ends per detection.
    step : (A,) float64 array
        Variance of a step along each axis.
    offset : float
        Variance of the offset of the midpoint along an axis.
    distance, spread : float
        Mean and variance of the log of the daughters' distance.
    """

    axes: list[int]
    rate: float
    start: float
    end: float
    step: NDArray[np.float64]
    offset: float
    distance: float
    spread: float

    @classmethod
    def of(cls, tracks: Tracks, learned: Summary) -> Dividing | None:
        """By the divisions of the first frames; None if there are too few."""
        links = tracks.links
        mothers = np.flatnonzero(np.bincount(links[:, 0], minlength=1) == 2)
        if len(mothers) < _LEAST:
            return None
        axes, place = ["zyx".index(axis) for axis in learned.axes], tracks.detections.position
        order = np.argsort(links[:, 0], kind="stable")
        first = np.searchsorted(links[order, 0], mothers)
        one, other = (place[links[order[first + k], 1]][:, axes] for k in (0, 1))
        middle = (one + other) / 2 - place[mothers][:, axes]
        apart = np.log(np.linalg.norm(one - other, axis=1))
        least = _FLOOR * float(np.square(learned.step).mean())
        return cls(
            axes, len(mothers) / len(place), max(learned.start, _FLOOR), max(learned.end, _FLOOR),
            np.maximum(np.square(learned.step), least), max(float(np.square(middle).mean()), least),
            float(apart.mean()), max(float(apart.var(ddof=1)), _FLOOR),
        )  # fmt: skip

    def divided(
        self,
        before: NDArray[np.float64],
        here: NDArray[np.float64],
        source: NDArray[np.int64],
    ) -> list[tuple[int, int, int]]:
        """Mothers and their two daughters, as rows of the frame before and of this one.

        Parameters
        ----------
        before, here : (M, 3), (N, 3) float64 arrays
        source : (N,) int64 array
            The row of the frame before to which each was linked; -1 for none.
        """
        begun = np.flatnonzero(source < 0)
        if not len(begun) or not len(before):
            return []
        old, new = before[:, self.axes], here[:, self.axes]
        child = np.full(len(old), -1)
        child[source[source >= 0]] = np.flatnonzero(source >= 0)
        extent = np.ptp(np.concatenate([old, new]), axis=0)
        background = self.start * len(new) / max(float(np.prod(np.maximum(extent, 1e-12))), 1e-300)
        found = [
            (odds, mother, int(one), int(other))
            for mother in range(len(old))
            for one in ([child[mother]] if child[mother] >= 0 else begun)
            for other in (begun if child[mother] >= 0 else begun[begun > one])
            if (odds := self._odds(old[mother], new[one], new[other], background, child[mother] >= 0)) > 0
        ]
        chosen, used = [], set[tuple[str, int]]()
        for _, mother, one, other in sorted(found, reverse=True):
            claims = {("mother", mother), ("daughter", one), ("daughter", other)}
            if not claims & used:
                chosen.append((mother, one, other))
                used |= claims
        return chosen

    def _odds(
        self, mother: NDArray, one: NDArray, other: NDArray, background: float, is_linked: bool
    ) -> float:
        """The log of the odds of a division."""
        axes, apart = len(self.axes), float(np.linalg.norm(one - other))
        if apart <= 0:
            return -np.inf
        middle = float(np.square((one + other) / 2 - mother).sum()) / self.offset
        surface = 2 * pi ** (axes / 2) / gamma(axes / 2)
        divides = log(self.rate) - middle / 2 - axes / 2 * log(2 * pi * self.offset)
        divides -= (log(apart) - self.distance) ** 2 / self.spread / 2 + log(2 * pi * self.spread) / 2
        divides -= log(surface) + axes * log(apart)
        if not is_linked:
            return divides + log(2) - log(self.end) - 2 * log(background)
        step = -float((np.square(one - mother) / self.step).sum() + np.log(2 * pi * self.step).sum()) / 2
        return divides + log(2) - step - log(background)
