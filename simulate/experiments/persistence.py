"""Accuracy against persistence at kappa .3: the value of a particle's past and future for linking."""

from __future__ import annotations

from ..comparison import Comparison
from ..experiment import Curve, Size
from ..scenes import Scene
from ..theory import PREDICTED


class Persistence(Comparison):
    """Fürth's persistent random walks, all with the same standard deviation of the step of one frame."""

    shows = "Accuracy against persistence at kappa .3, with a one-step velocity prediction."
    takes = "half a minute; seconds with --quick"
    varied = ("persistence",)
    scenes = tuple(Scene(0.3, persistence) for persistence in (0.0, 1.0, 3.0, 10.0, 30.0))
    linkers = ("plain", "velocity", "outbid")

    def theory(self, size: Size) -> list[Curve]:
        del size
        label = "one-step prediction, infinite"
        return [Curve(label, list(PREDICTED), list(PREDICTED.values()), kind="theory")]


EXPERIMENT = Persistence()
