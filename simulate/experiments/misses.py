"""Accuracy of links against the share of particles that are missed in a frame."""

from __future__ import annotations

from ..comparison import BesideTheory
from ..scenes import Scene


class Misses(BesideTheory):
    """Brownian particles at kappa .15."""

    shows = "Accuracy against the share of missed detections at kappa .15, with theory."
    takes = "half a minute; seconds with --quick"
    varied = ("miss",)
    scenes = tuple(Scene(0.15, miss=share) for share in (0.0, 0.05, 0.1, 0.2, 0.3))


EXPERIMENT = Misses()
