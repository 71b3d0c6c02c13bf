"""Roverso et al.'s Figure 3: the speed-up of Deep Greedy Switching over the auction with a fixed ε."""

from __future__ import annotations

from collections.abc import Iterator

from outbid.assignment.papers.auction import Auction
from outbid.assignment.papers.greedy_switching import GreedySwitching

from ...experiment import Row, Size
from ...matrices import geom
from ...paper import Cases, Claim, Paper, cases_on, each_solved, extent, judged, solved, where

SHARE = 1e-4
"""The fixed ε over the side of the square: n ε is then some .1 % of the sum for n in the hundreds."""
_SIDE = 1000.0
CASES: Cases = {"CPU": ("cpu", GreedySwitching()), "GPU": ("gpu", GreedySwitching(parallel=True))}


class Figure3(Paper):
    """Speed-ups over Vasconcelos & Rosenhahn's auction, and over the same with ε scaling."""

    shows = "Roverso et al.'s Figure 3: speed-up of Deep Greedy Switching over the auction, GEOM."
    takes = "3 minutes; seconds with --quick"
    quick = extent((32, 64))
    cpu = extent((128, 256, 512))
    gpu = extent((256, 512, 1024, 2048), instances=5, device="gpu")
    drawn = (("times as fast as the auction", "speed_up"),)

    def rows(self, problems: Size) -> Iterator[Row]:
        epsilon = SHARE * _SIDE
        auctions = {"fixed": Auction(epsilon, 1.0), "scaled": Auction(epsilon)}
        for size, instance in problems.runs():
            problem = geom(size, instance, _SIDE)
            cases = cases_on(problems.device, CASES)
            spent = [row for row, _ in each_solved(problem, cases, size, instance)]
            for kind, auction in auctions.items():
                over, answer = solved(problem, auction, problems.device, 1, compiled=instance > 0)
                for row in spent:
                    line = row | {"case": f"{row['case']} over {kind} ε", "auction_seconds": over}
                    speed_up = over / float(row["seconds"])
                    yield line | {"auction_rounds": answer.stats["rounds"], "speed_up": speed_up}

    def claims(self, summary: list[Row]) -> list[Claim]:
        def most(case: str) -> float | None:
            found = [float(row["speed_up"]) for row in where(summary, {"case": case})]
            return max(found) if found else None

        cpu, gpu, scaled = most("CPU over fixed ε"), most("GPU over fixed ε"), most("CPU over scaled ε")
        return [
            judged(
                "Even on the CPU it is as much as 20 times faster than the auction on a GPU",
                "section 6, Figure 3", cpu,
                "up to {:.1f} times, over the auction on the same device as here", lambda x: x > 10,
            ),
            judged(
                "On the GPU it is as much as 400 times faster", "section 6, Figure 3", gpu,
                "up to {:.1f} times", lambda x: x > 100,
            ),
            judged(
                "An auction is that slow", "section 6", scaled,
                "with ε scaling it is up to {:.1f} times slower on the CPU", lambda x: x > 10,
            ),
        ]  # fmt: skip


PAPERS = {"roverso-figure3": Figure3()}
