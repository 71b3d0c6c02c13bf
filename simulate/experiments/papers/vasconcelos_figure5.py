"""Vasconcelos & Rosenhahn's Figure 5: right links by the auction over levels of persistence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import hypot

from outbid.particles.tracks import Tracks
from outbid.scoring import score

from ...experiment import Row, Size
from ...linkers import linker_named
from ...paper import Claim, Paper, extent, where
from ...scenes import Scene

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
LINKERS = {"auction": "the paper's auction", "outbid": "learned linking"}
STEPS = {"as the walk has it": False, "held constant": True}
_FRAMES = 10


def of_level(level: float, particles: int, *, constant: bool) -> Scene:
    """500 particles as in the paper; a mixed walk has shorter steps unless they are held constant."""
    kappa = 0.3 / (hypot(level, 1 - level) if constant else 1.0)
    scene = Scene(kappa, level, noise=0.0, turnover=0.0, walk="vasconcelos")
    return replace(scene, particles=particles, frames=_FRAMES)


class Figure5(Paper):
    """Steps of the paper's walk depend on its level of persistence; here they are also held constant."""

    shows = "Vasconcelos & Rosenhahn's Figure 5: link F1 over persistence, auction and learned linking."
    takes = "2 minutes; seconds with --quick"
    quick = extent((40,))
    cpu = extent((500,), instances=5)
    gpu = extent((500,), instances=5, device="gpu")
    cell = ("n", "persistence", "steps", "case")
    over, drawn = ("persistence", "level of persistence"), (("link F1", "link_f1"),)
    apart, title = "steps", "steps {}"

    def rows(self, problems: Size) -> Iterator[Row]:
        for (size, instance), level, steps in product(problems.runs(), LEVELS, STEPS):
            scene = of_level(level, size, constant=STEPS[steps])
            film = scene.film(instance)
            for name, case in LINKERS.items():
                links = linker_named(name).link(film.detections, {}, scene.length_unit)
                values = score(
                    Tracks(film.detections, links), film, families=("links",), link_rule="edge"
                ).values
                row: Row = {"n": size, "persistence": level, "steps": steps, "case": case}
                yield row | {"instance": instance, "link_f1": values["link_f1"]}

    def claims(self, summary: list[Row]) -> list[Claim]:
        def f1(level: float, steps: str, case: str) -> float:
            wanted: Row = {"persistence": level, "steps": steps, "case": case}
            return float(where(summary, wanted)[0]["link_f1"])

        own, held = STEPS
        auction, learned = LINKERS.values()
        spread = max(f1(p, held, auction) for p in LEVELS) - min(f1(p, held, auction) for p in LEVELS)
        best, lowest = f1(1.0, own, learned), min(f1(level, own, auction) for level in LEVELS)
        return [
            Claim(
                "All correspondences are found where no particle leaves or enters", "section 6",
                f"link F1 {lowest:.3f} or more at kappa .3; learned linking {best:.3f} at persistence 1",
                lowest > 0.999,
            ),
            Claim(
                "The level of persistence changes the result of the matching", "Figure 5",
                f"by {spread:.3f} where steps are held constant: positions alone hold nothing of it",
                spread > 0.05,
            ),
        ]  # fmt: skip


PAPERS = {"vasconcelos-figure5": Figure5()}
