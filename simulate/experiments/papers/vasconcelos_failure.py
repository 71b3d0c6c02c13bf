"""The failure that Vasconcelos & Rosenhahn report: one particle leaves, one enters, both are matched."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from outbid.particles.tracks import Tracks

from ...experiment import Row, Size
from ...linkers import linker_named
from ...paper import Claim, Paper, extent, where
from ...scenes import Scene

TURNOVERS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
LINKERS = {"auction": "all of the smaller side matched", "plain": "rows and columns optional"}
_FRAMES = 10


class Failure(Paper):
    """`swapped` is the share of the particles that end in a frame and are linked to another all the same."""

    shows = (
        "Vasconcelos & Rosenhahn's failure: ends joined to starts over turnover, with and without options."
    )
    takes = "half a minute; seconds with --quick"
    quick = extent((60,))
    cpu = extent((500,), instances=5)
    gpu = extent((500,), instances=5, device="gpu")
    cell = ("n", "turnover", "case")
    over = ("turnover", "turnover")
    drawn = (("share of ends that are linked", "swapped"), ("share of links that are wrong", "wrong"))

    def rows(self, problems: Size) -> Iterator[Row]:
        for (size, instance), turnover in product(problems.runs(), TURNOVERS):
            scene = Scene(0.1, noise=0.0, turnover=turnover, particles=size, frames=_FRAMES)
            film = scene.film(instance)
            for name, case in LINKERS.items():
                settings = linker_named(name).defaults(gaps=False) or {}
                links = linker_named(name).link(film.detections, settings, scene.length_unit)
                row: Row = {"n": size, "turnover": turnover, "case": case, "instance": instance}
                yield row | judged(film, links)

    def claims(self, summary: list[Row]) -> list[Claim]:
        whole, optional = LINKERS.values()
        most = max(TURNOVERS)
        of_all, of_some = (where(summary, {"turnover": most, "case": case})[0] for case in (whole, optional))
        ends, wrong = ([float(row[name]) for row in (of_all, of_some)] for name in ("swapped", "wrong"))
        return [
            Claim(
                "A particle that leaves is matched to one that enters", "section 6",
                f"{ends[0]:.0%} of the ends are linked at turnover {most:g}, {ends[1]:.0%} with optional "
                "rows and columns", ends[0] > 0.5,
            ),
            Claim(
                "The model cannot identify that they are different particles", "section 6",
                f"wrong links {wrong[0]:.1%}, with optional rows and columns {wrong[1]:.1%}",
                wrong[1] > 0.5 * wrong[0],
            ),
        ]  # fmt: skip


def judged(film: Tracks, links: NDArray[np.int64]) -> Row:
    """Shares of the ends that were linked, and of the links that are wrong."""
    size = len(film.detections)
    truth = film.links @ [size, 1]
    wrong = ~np.isin(links @ [size, 1], truth)
    is_end = np.ones(size, bool)
    is_end[film.links[:, 0]] = False
    is_end &= film.detections.frame < film.detections.frame[-1]
    linked = np.zeros(size, bool)
    linked[links[:, 0]] = True
    ends = int(is_end.sum())
    return {
        "ends": ends,
        "swapped": float((is_end & linked).sum()) / ends if ends else 0.0,
        "wrong": float(wrong.mean()) if len(links) else 0.0,
    }


PAPERS = {"vasconcelos-failure": Failure()}
