"""Five frames only: so short that a velocity is hardly known before the movie ends."""

from __future__ import annotations

from ..comparison import Comparison, against_the_best
from ..experiment import Curve, Panel, Row, Size
from ..scenes import Scene

_MEMORIES = (0.8,)


class FiveFrames(Comparison):
    """The step is such that links at a gate of two nearest-neighbour distances reach .71 recall."""

    shows = "Five frames, births and deaths 5 %, velocity memory .8: other packages, tuned on the truth."
    takes = "some 10 minutes; 1 minute with --quick; --frames is ignored"
    size = Size(seeds=10, frames=5, particles=1000)
    quick = Size(seeds=2, frames=5, particles=150)
    varied = ("persistence",)
    linkers = (
        "plain", "velocity", "laptrack", "trackpy", "trackpy_velocity", "btrack", "byotrack", "outbid",
    )  # fmt: skip

    def scenes(self, size: Size) -> list[Scene]:
        return [
            Scene(
                0.296,
                memory,
                noise=0.0,
                turnover=0.05,
                walk="autoregressive",
                particles=size.particles,
                frames=5,
            )
            for memory in _MEMORIES
        ]

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        del size
        curves = []
        for row in summary:
            who = f"{row['linker']}, told {row['told']}"
            curves.append(Curve(who, [float(row["link_recall"])], [float(row["link_precision"])]))
        return [Panel("five frames, velocity memory .8", "recall", "precision", curves)]

    def findings(self, rows: list[Row]) -> list[Row]:
        return [
            found
            for score in ("link_recall", "link_precision", "link_f1", "idf1")
            for found in against_the_best(rows, self.varied, score)
        ]


EXPERIMENT = FiveFrames()
