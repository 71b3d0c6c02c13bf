"""Roverso et al.'s Figure 2: Deep Greedy Switching on the CPU, mixed and on the GPU; and how far it errs."""

from __future__ import annotations

from collections.abc import Iterator

from outbid.assignment import solve_and_certify
from outbid.assignment.papers.greedy_switching import GreedySwitching

from ...experiment import Row, Size
from ...matrices import geom
from ...paper import Cases, Claim, Paper, cases_on, compared, each_solved, extent, paid

CASES: Cases = {
    "CPU": ("cpu", GreedySwitching()),
    "CPU parallel": ("cpu", GreedySwitching(parallel=True)),
    "CPU greedy start": ("cpu", GreedySwitching(start="greedy")),
    "Mixed GPU-CPU": ("gpu", GreedySwitching(mixed=True)),
    "GPU": ("gpu", GreedySwitching(parallel=True)),
    "GPU global memory": ("gpu", GreedySwitching(parallel=True, evaluation="global")),
    "GPU greedy start": ("gpu", GreedySwitching(parallel=True, start="greedy")),
}


class Figure2(Paper):
    """`error_percent` is the distance from the optimum, which `sparsified` proves."""

    shows = "Roverso et al.'s Figure 2: seconds and errors of Deep Greedy Switching by variant, GEOM."
    takes = "3 minutes; seconds with --quick"
    quick = extent((40, 80))
    cpu = extent((256, 512, 1024, 2048), instances=3)
    gpu = extent((256, 512, 1024, 2048, 4096), instances=5, device="gpu")
    drawn = (("seconds", "seconds"), ("% from the optimum", "error_percent"))

    def rows(self, problems: Size) -> Iterator[Row]:
        for size, instance in problems.runs():
            problem = geom(size, instance)
            best = solve_and_certify(problem, "sparsified").primal_cost
            for row, answer in each_solved(problem, cases_on(problems.device, CASES), size, instance):
                row["error_percent"] = 100 * (paid(problem, answer) - float(best)) / abs(float(best))
                yield row | {name: answer.stats[name] for name in ("evaluations", "rounds", "switches")}

    def claims(self, summary: list[Row]) -> list[Claim]:
        worst = max(float(row["error_percent"]) for row in summary if "greedy" not in str(row["case"]))
        return [
            Claim("The answer is at most 0.6 % from the optimum", "section 3", f"{worst:.3f} %", worst < 0.6),
            compared(
                summary, "The GPU's variant is an order of magnitude faster than C for large n",
                "sections 6 and 7, Figure 2", "{:.1f} times at n = {n}", "CPU", "GPU", least=10,
            ),
            compared(
                summary, "A greedy start has no clear advantage over a random one", "section 3.1",
                "random over greedy: {:.2f} times the seconds at n = {n}", "CPU", "CPU greedy start",
                least=0.8, most=1.25,
            ),
        ]  # fmt: skip


PAPERS = {"roverso-figure2": Figure2()}
