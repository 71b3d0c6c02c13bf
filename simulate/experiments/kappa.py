"""Accuracy against kappa for Brownian particles: theory and linkers.

Kappa is the standard deviation of a step along one axis times density^(1/3).
"""

from __future__ import annotations

from ..comparison import BesideTheory
from ..experiment import Curve, Size
from ..scenes import Scene
from ..theory import OPTIMAL, swapped

_SMALL = [number / 100 for number in range(2, 17)]


class Kappa(BesideTheory):
    """Precision beside the prediction of theory for links to the nearest neighbour."""

    shows = "Accuracy against kappa, step times density^(1/3), for Brownian particles, with theory."
    takes = "half a minute; seconds with --quick"
    varied = ("kappa",)
    scenes = tuple(Scene(kappa) for kappa in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4))

    def theory(self, size: Size) -> list[Curve]:
        swaps, optimal = [1 - swapped(kappa) for kappa in _SMALL], list(OPTIMAL.values())
        return [
            *super().theory(size),
            Curve("optimal assignment, swaps alone", _SMALL, swaps, kind="theory"),
            Curve("optimal assignment, infinite", list(OPTIMAL), optimal, kind="theory"),
        ]


EXPERIMENT = Kappa()
