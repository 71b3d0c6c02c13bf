"""Accuracy of other packages, tuned on the truth, and of Outbid without settings, on the same movies."""

from __future__ import annotations

from itertools import product

from ..comparison import Comparison, curves_of
from ..experiment import Panel, Row, Size, Trial, grouped
from ..scenes import Scene

_KAPPAS, _PERSISTENCES, _SHARES = (0.1, 0.2, 0.3, 0.4), (0.0, 3.0, 10.0), (0.0, 0.1)


class Rivals(Comparison):
    """Comparison of linkers on a grid of kappa, persistence, misses and clutter."""

    shows = "Other packages against Outbid on persistent walks: kappa, persistence, misses, clutter."
    takes = "hours, most of them ByoTrack's: choose with --where; --quick takes minutes for two cells"
    size = Size(seeds=5, frames=50, particles=2000)
    quick = Size(seeds=2, frames=6, particles=150)
    varied = ("kappa", "persistence", "miss", "clutter")
    scenes = tuple(
        Scene(kappa, persistence, miss, clutter)
        for miss, clutter, persistence, kappa in product(_SHARES, _SHARES, _PERSISTENCES, _KAPPAS)
    )
    linkers = (
        "outbid", "plain", "velocity", "laptrack", "trackpy", "trackpy_velocity", "btrack", "byotrack",
    )  # fmt: skip
    judged = ("link_f1", "idf1")

    def quicker(self, trials: list[Trial]) -> list[Trial]:
        two = ((0.1, 0.0, 0.0, 0.0), (0.3, 3.0, 0.1, 0.1))
        return [one for one in trials if tuple(getattr(one.scene, name) for name in self.varied) in two]

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        del size
        shown = [row for row in summary if row["given"] == "the truth" or row["linker"] == "outbid"]
        return [
            Panel(
                f"persistence {float(persistence):g}, misses {float(miss):.0%}, clutter {float(clutter):.0%}",
                "kappa", "link F1", curves_of(rows, "kappa", "link_f1"),
            )
            for (persistence, miss, clutter), rows in grouped(shown, self.varied[1:]).items()
        ]  # fmt: skip


EXPERIMENT = Rivals()
