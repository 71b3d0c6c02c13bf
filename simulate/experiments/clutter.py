"""Accuracy of links against clutter: false detections per particle."""

from __future__ import annotations

from ..comparison import BesideTheory
from ..scenes import Scene


class Clutter(BesideTheory):
    """Brownian particles at kappa .15."""

    shows = "Accuracy against false detections per particle at kappa .15, with theory."
    takes = "half a minute; seconds with --quick"
    varied = ("clutter",)
    scenes = tuple(Scene(0.15, clutter=share) for share in (0.0, 0.05, 0.1, 0.2, 0.3))


EXPERIMENT = Clutter()
