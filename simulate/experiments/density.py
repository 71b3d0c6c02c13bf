"""Accuracy against density at a step that stays the same: only kappa counts."""

from __future__ import annotations

from ..comparison import BesideTheory
from ..scenes import Scene


def _scene(density: float) -> Scene:
    """Step .2 and noise .03 in the unit of length."""
    nearness = density ** (1 / 3)
    return Scene(0.2 * nearness, density=density, noise=0.03 * nearness)


class Density(BesideTheory):
    """The same particles in boxes of other sizes."""

    shows = "Accuracy against density at one and the same step: kappa is .09 to .4; theory beside it."
    takes = "half a minute; seconds with --quick"
    varied = ("density",)
    scenes = tuple(_scene(density) for density in (0.1, 0.3, 1.0, 3.0, 8.0))


EXPERIMENT = Density()
