"""Accuracy against clutter."""

from __future__ import annotations

from ..comparison import Comparison
from ..experiment import Curve, Size
from ..scenes import Scene
from ..theory import nearest_precision

_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)


class Clutter(Comparison):
    """Brownian particles at kappa .15."""

    shows = "Accuracy against false detections for each particle at kappa .15; theory beside it."
    takes = "some 5 minutes; 10 s with --quick"
    varied = ("clutter",)
    linkers = ("nearest", "plain", "outbid")
    y = "link_precision"

    def scenes(self, size: Size) -> list[Scene]:
        return [Scene(0.15, clutter=share, particles=size.particles, frames=size.frames) for share in _SHARES]

    def theory(self, size: Size) -> list[Curve]:
        near = [nearest_precision(scene) for scene in self.scenes(size)]
        return [Curve("nearest, theory", list(_SHARES), near, kind="theory")]


EXPERIMENT = Clutter()
