"""Accuracy against density at a step that stays the same: only kappa counts."""

from __future__ import annotations

from ..comparison import Comparison
from ..experiment import Curve, Size
from ..scenes import Scene
from ..theory import nearest_precision

_STEP, _NOISE = 0.2, 0.03
_DENSITIES = (0.1, 0.3, 1.0, 3.0, 8.0)


class Density(Comparison):
    """The same particles, step .2 and noise .03 in the unit of length, in boxes of other sizes."""

    shows = "Accuracy against density at one and the same step: kappa is .09 to .4; theory beside it."
    takes = "some 4 minutes; 10 s with --quick"
    varied = ("density",)
    linkers = ("nearest", "plain", "outbid")
    y = "link_precision"

    def scenes(self, size: Size) -> list[Scene]:
        return [
            Scene(
                _STEP * density ** (1 / 3),
                density=density,
                noise=_NOISE * density ** (1 / 3),
                particles=size.particles,
                frames=size.frames,
            )
            for density in _DENSITIES
        ]

    def theory(self, size: Size) -> list[Curve]:
        near = [nearest_precision(scene) for scene in self.scenes(size)]
        return [Curve("nearest, theory", list(_DENSITIES), near, kind="theory")]


EXPERIMENT = Density()
