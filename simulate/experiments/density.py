"""Accuracy of links against particle density at a constant step length: only kappa matters."""

from __future__ import annotations

from ..comparison import BesideTheory
from ..scenes import Scene


def _scene(density: float) -> Scene:
    """Steps of standard deviation .2 along each axis and noise .03, in an absolute unit of length."""
    unit = density ** (1 / 3)  # the absolute unit of length in units of density^(-1/3)
    return Scene(0.2 * unit, density=density, noise=0.03 * unit)


class Density(BesideTheory):
    """Brownian particles with the same step length, in boxes of different densities."""

    shows = "Accuracy against density at a constant step (kappa .09 to .4), with theory."
    takes = "half a minute; seconds with --quick"
    varied = ("density",)
    scenes = tuple(_scene(density) for density in (0.1, 0.3, 1.0, 3.0, 8.0))


EXPERIMENT = Density()
