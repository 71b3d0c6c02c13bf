"""Other packages on the same movies: what they reach tuned on the truth, and what Outbid does untold."""

from __future__ import annotations

from itertools import product

from ..comparison import Comparison, against_the_best, curves_of
from ..experiment import Panel, Row, Size, Trial
from ..scenes import Scene

_KAPPAS, _PERSISTENCES, _SHARES = (0.1, 0.2, 0.3, 0.4), (0.0, 3.0, 10.0), (0.0, 0.1)


class Rivals(Comparison):
    """The grid of kappa, persistence, misses and clutter."""

    shows = "Other packages against Outbid on persistent walks: kappa, persistence, misses, clutter."
    takes = (
        "days, most of them laptrack's gap closing: choose with --where; --quick takes minutes for two cells"
    )
    size = Size(seeds=5, frames=50, particles=2000)
    quick = Size(seeds=2, frames=6, particles=150)
    varied = ("kappa", "persistence", "miss", "clutter")
    linkers = (
        "outbid", "plain", "velocity", "laptrack", "trackpy", "trackpy_velocity", "btrack", "byotrack",
    )  # fmt: skip

    def scenes(self, size: Size) -> list[Scene]:
        return [
            Scene(kappa, persistence, miss, clutter, particles=size.particles, frames=size.frames)
            for miss, clutter, persistence, kappa in product(_SHARES, _SHARES, _PERSISTENCES, _KAPPAS)
        ]

    def quicker(self, trials: list[Trial]) -> list[Trial]:
        two = ((0.1, 0.0, 0.0, 0.0), (0.3, 3.0, 0.1, 0.1))
        return [one for one in trials if tuple(getattr(one.scene, name) for name in self.varied) in two]

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        del size
        cells = dict.fromkeys((row["persistence"], row["miss"], row["clutter"]) for row in summary)
        panels = []
        for persistence, miss, clutter in cells:
            cell = (persistence, miss, clutter)
            rows = [row for row in summary if (row["persistence"], row["miss"], row["clutter"]) == cell]
            title = f"persistence {persistence:g}, misses {float(miss):.0%}, clutter {float(clutter):.0%}"
            told = [row for row in rows if row["told"] == "the truth" or row["linker"] == "outbid"]
            panels.append(Panel(title, "kappa", "link F1", curves_of(told, "kappa", "link_f1")))
        return panels

    def findings(self, rows: list[Row]) -> list[Row]:
        return [
            found for score in ("link_f1", "idf1") for found in against_the_best(rows, self.varied, score)
        ]


EXPERIMENT = Rivals()
