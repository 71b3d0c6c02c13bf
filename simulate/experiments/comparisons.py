"""Linkers on the same movies: accuracy over one quantity compared with theory, and other packages on a grid.

kappa is the standard deviation of a step along one axis times density^(1/3).
"""

from __future__ import annotations

from itertools import product

from ..comparison import SCORES, Comparison, curves_of
from ..experiment import Curve, Experiment, Panel, Row, Size, Trial, grouped
from ..scenes import Scene
from ..theory import OPTIMAL, PREDICTED, nearest_precision, swapped

_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)
"""Of misses or clutter at kappa .15."""
_SMALL = [number / 100 for number in range(2, 17)]
"""Values of kappa at which few links are wrong."""


def _nearest(over: str, scenes: list[Scene]) -> list[Curve]:
    """Precision of links to the nearest neighbour."""
    precision = [nearest_precision(scene) for scene in scenes]
    return [Curve("nearest, theory", [getattr(one, over) for one in scenes], precision, kind="theory")]


def _optimal(over: str, scenes: list[Scene]) -> list[Curve]:
    """The same and that of optimal assignments."""
    return [
        *_nearest(over, scenes),
        Curve(
            "optimal assignment, swaps alone", _SMALL, [1 - swapped(kappa) for kappa in _SMALL], kind="theory"
        ),
        Curve("optimal assignment, infinite", list(OPTIMAL), list(OPTIMAL.values()), kind="theory"),
    ]


def _predicted(_over: str, _scenes: list[Scene]) -> list[Curve]:
    """Right links with a one-step velocity prediction."""
    label = "one-step prediction, infinite"
    return [Curve(label, list(PREDICTED), list(PREDICTED.values()), kind="theory")]


def _of_density(density: float) -> Scene:
    """Steps of standard deviation .2 along each axis and noise .03, in an absolute unit of length."""
    unit = density ** (1 / 3)  # the absolute unit of length in units of density^(-1/3)
    return Scene(0.2 * unit, density=density, noise=0.03 * unit)


class FiveFrames(Comparison):
    """Links at a gate of 1.108 density^(-1/3), two mean nearest-neighbour distances, have a recall of .71."""

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        curves = []
        for row in summary:
            who = f"{row['linker']}, given {row['given']}"
            curves.append(Curve(who, [float(row["link_recall"])], [float(row["link_precision"])]))
        return [Panel(f"{size.frames} frames, velocity memory .8", "recall", "precision", curves)]


class Rivals(Comparison):
    """A grid of kappa, persistence, misses and clutter."""

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


_RIVALS = ("plain", "velocity", "laptrack", "trackpy", "trackpy_velocity", "btrack", "byotrack")
EXPERIMENTS: dict[str, Experiment] = {
    "kappa": Comparison(
        shows="Accuracy against kappa, step times density^(1/3), for Brownian particles, with theory.",
        varied=("kappa",), y="link_precision", theory=_optimal,
        scenes=tuple(Scene(kappa) for kappa in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)),
    ),
    "density": Comparison(
        shows="Accuracy against density at a constant step (kappa .09 to .4), with theory.",
        varied=("density",), y="link_precision", theory=_nearest,
        scenes=tuple(map(_of_density, (0.1, 0.3, 1.0, 3.0, 8.0))),
    ),
    "misses": Comparison(
        shows="Accuracy against the share of missed detections at kappa .15, with theory.",
        varied=("miss",), y="link_precision", theory=_nearest,
        scenes=tuple(Scene(0.15, miss=share) for share in _SHARES),
    ),
    "clutter": Comparison(
        shows="Accuracy against false detections per particle at kappa .15, with theory.",
        varied=("clutter",), y="link_precision", theory=_nearest,
        scenes=tuple(Scene(0.15, clutter=share) for share in _SHARES),
    ),
    "persistence": Comparison(
        shows="Accuracy against persistence at kappa .3, with a one-step velocity prediction.",
        varied=("persistence",), linkers=("plain", "velocity", "outbid"), theory=_predicted,
        scenes=tuple(Scene(0.3, persistence) for persistence in (0.0, 1.0, 3.0, 10.0, 30.0)),
    ),
    "five_frames": FiveFrames(
        shows="Five frames, births and deaths 5 %, velocity memory .8: other packages, tuned on the truth.",
        takes="some 10 minutes; 1 minute with --quick",
        size=Size(seeds=10, frames=5, particles=1000), quick=Size(seeds=2, frames=5, particles=150),
        varied=("persistence",), linkers=(*_RIVALS, "outbid"), judged=SCORES,
        scenes=(Scene(0.296, 0.8, noise=0.0, turnover=0.05, walk="autoregressive"),),
    ),
    "rivals": Rivals(
        shows="Other packages against Outbid on persistent walks: kappa, persistence, misses, clutter.",
        takes="hours, most of them ByoTrack's: choose with --where; --quick takes minutes for two cells",
        size=Size(seeds=5, frames=50, particles=2000), quick=Size(seeds=2, frames=6, particles=150),
        varied=("kappa", "persistence", "miss", "clutter"), linkers=("outbid", *_RIVALS),
        judged=("link_f1", "idf1"),
        scenes=tuple(
            Scene(kappa, persistence, miss, clutter)
            for miss, clutter, persistence, kappa in product(
                (0.0, 0.1), (0.0, 0.1), (0.0, 3.0, 10.0), (0.1, 0.2, 0.3, 0.4)
            )
        ),
    ),
}  # fmt: skip
