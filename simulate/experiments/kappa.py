"""Accuracy against kappa, the step in spacings, for Brownian particles: theory, and what linkers reach."""

from __future__ import annotations

from ..comparison import Comparison
from ..experiment import Curve, Size
from ..scenes import Scene
from ..theory import OPTIMAL, nearest_precision, swapped

_KAPPAS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)


class Kappa(Comparison):
    """Precision is what theory tells of the nearest neighbour."""

    shows = "Accuracy against kappa, the step over the spacing, for Brownian particles; theory beside it."
    takes = "some 5 minutes; 10 s with --quick"
    varied = ("kappa",)
    linkers = ("nearest", "plain", "outbid")
    y = "link_precision"

    def scenes(self, size: Size) -> list[Scene]:
        return [Scene(kappa, particles=size.particles, frames=size.frames) for kappa in _KAPPAS]

    def theory(self, size: Size) -> list[Curve]:
        scenes = self.scenes(size)
        near = [nearest_precision(scene) for scene in scenes]
        small = [number / 100 for number in range(2, 17)]
        return [
            Curve("nearest, theory", [scene.kappa for scene in scenes], near, kind="theory"),
            Curve(
                "optimal assignment, swaps alone",
                small,
                [1 - swapped(kappa) for kappa in small],
                kind="theory",
            ),
            Curve("optimal assignment, infinite", list(OPTIMAL), list(OPTIMAL.values()), kind="theory"),
        ]


EXPERIMENT = Kappa()
