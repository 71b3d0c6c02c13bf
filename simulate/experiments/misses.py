"""Accuracy against misses."""

from __future__ import annotations

from ..comparison import Comparison
from ..experiment import Curve, Size
from ..scenes import Scene
from ..theory import nearest_precision

_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)


class Misses(Comparison):
    """Brownian particles at kappa .15."""

    shows = "Accuracy against the share of missed detections at kappa .15; theory beside it."
    takes = "some 5 minutes; 10 s with --quick"
    varied = ("miss",)
    linkers = ("nearest", "plain", "outbid")
    y = "link_precision"

    def scenes(self, size: Size) -> list[Scene]:
        return [Scene(0.15, miss=share, particles=size.particles, frames=size.frames) for share in _SHARES]

    def theory(self, size: Size) -> list[Curve]:
        near = [nearest_precision(scene) for scene in self.scenes(size)]
        return [Curve("nearest, theory", list(_SHARES), near, kind="theory")]


EXPERIMENT = Misses()
