"""Movies of five frames, too short to determine velocities well."""

from __future__ import annotations

from ..comparison import SCORES, Comparison
from ..experiment import Curve, Panel, Row, Size
from ..scenes import Scene


class FiveFrames(Comparison):
    """With this kappa, links at a gate of 1.108 density^(-1/3) have a recall of .71.

    A gate of 1.108 density^(-1/3) is two mean nearest-neighbour distances.
    """

    shows = "Five frames, births and deaths 5 %, velocity memory .8: other packages, tuned on the truth."
    takes = "some 10 minutes; 1 minute with --quick"
    size = Size(seeds=10, frames=5, particles=1000)
    quick = Size(seeds=2, frames=5, particles=150)
    varied = ("persistence",)
    scenes = (Scene(0.296, 0.8, noise=0.0, turnover=0.05, walk="autoregressive"),)
    linkers = (
        "plain", "velocity", "laptrack", "trackpy", "trackpy_velocity", "btrack", "byotrack", "outbid",
    )  # fmt: skip
    judged = SCORES

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        curves = []
        for row in summary:
            who = f"{row['linker']}, given {row['given']}"
            curves.append(Curve(who, [float(row["link_recall"])], [float(row["link_precision"])]))
        return [Panel(f"{size.frames} frames, velocity memory .8", "recall", "precision", curves)]


EXPERIMENT = FiveFrames()
