"""Vasconcelos & Rosenhahn's Figure 6: seconds of the Hungarian algorithm and the auction, walks in 3D."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from outbid.assignment import solve_and_certify
from outbid.assignment.papers.auction import Auction
from outbid.assignment.papers.hungarian import Hungarian

from ...experiment import Row, Size
from ...matrices import distances
from ...paper import Cases, Claim, Paper, cases_on, compared, each_solved, extent, paid
from ...scenes import Scene

EPSILON = 0.01
"""The fixed ε, in units of density^(-1/3); the paper states none."""


class Figure6(Paper):
    """Two frames of each of a hundred walks at a level of persistence of one half; the paper states none."""

    shows = "Vasconcelos & Rosenhahn's Figure 6: CPU Hungarian, CPU and GPU auction over n, walks."
    takes = "3 minutes; seconds with --quick"
    quick = extent((30, 60), instances=2)
    cpu = extent((50, 100, 200, 400), instances=100)
    gpu = extent((50, 100, 200, 400, 800, 1000), instances=100, device="gpu")
    over = ("n", "particles")
    cases: ClassVar[Cases] = {
        "CPU Hungarian": ("cpu", Hungarian("classical", 1)),
        "CPU auction": ("cpu", Auction(EPSILON, 1.0)),
        "CPU auction, ε scaling": ("cpu", Auction()),
        "GPU auction": ("gpu", Auction(EPSILON, 1.0)),
        "GPU auction, ε scaling": ("gpu", Auction()),
    }

    def rows(self, problems: Size) -> Iterator[Row]:
        for size, instance in problems.runs():
            scene = Scene(0.3, 0.5, noise=0.0, turnover=0.0, walk="vasconcelos", particles=size, frames=2)
            seen = scene.film(instance).detections
            problem = distances(seen.position[:size], seen.position[size:])
            best = float(solve_and_certify(problem, "sparsified").primal_cost)
            for row, answer in each_solved(problem, cases_on(problems.device, self.cases), size, instance):
                above = paid(problem, answer) - best
                yield row | {"error_percent": 100 * above / best if best else 0.0}

    def claims(self, summary: list[Row]) -> list[Claim]:
        worst = max(float(row["error_percent"]) for row in summary)
        return [
            compared(
                summary, "The GPU considerably accelerates the auction", "section 7, Figure 6",
                "{:.2g} times at n = {n}", "CPU auction", "GPU auction",
            ),
            compared(
                summary, "The auction is faster than the Hungarian algorithm on the CPU", "Figure 6",
                "{:.2g} times at n = {n}", "CPU Hungarian", "CPU auction",
            ),
            Claim(
                "The answer is within n ε of the optimum", "section 3.2",
                f"mean error at most {worst:.3g} %", worst < 100 * EPSILON,
            ),
        ]  # fmt: skip


PAPERS = {"vasconcelos-figure6": Figure6()}
