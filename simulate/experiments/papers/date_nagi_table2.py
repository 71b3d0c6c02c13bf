"""Date & Nagi's Table 2: how many rows are assigned in which iterations of the tree variant, [0, n]."""

from __future__ import annotations

from collections.abc import Iterator

from outbid.assignment.papers.hungarian import Hungarian

from ...experiment import Curve, Panel, Row, Size
from ...matrices import uniform
from ...paper import Claim, Paper, extent, paper_value, solved

NAME = "date-nagi-table2"
_FIVES = {f"[{first}-{first + 4}]": f"paths_{first}_to_{first + 4}" for first in range(1, 35, 5)}
"""Columns of five iterations each, and what the solver calls their counts."""


class Table2(Paper):
    """The same counts on the CPU and on the GPU, for both take the same steps."""

    shows = "Date & Nagi's Table 2: assignments in iterations 1 to 5, 6 to 10 and so on, [0, n]."
    takes = "half a minute; seconds with --quick"
    quick = extent((100,))
    cpu = extent((1000, 2000, 3000, 4000, 5000))
    gpu = extent((1000, 2000, 3000, 4000, 5000), instances=5, device="gpu")
    cell = ("n",)

    def rows(self, problems: Size) -> Iterator[Row]:
        for size, instance in problems.runs():
            problem = uniform(size, "[0, n]", instance)
            stats = solved(problem, Hungarian("tree"), problems.device, repeats=1)[1].stats
            row: Row = {"n": size, "instance": instance, "initial": stats["initial_assignments"]}
            row["paper_initial"] = paper_value(NAME, "initial", {"n": size})
            for name, count in _FIVES.items():
                row[name] = stats.get(count, 0)
                row[f"paper_{name}"] = paper_value(NAME, name, {"n": size})
            yield row

    def figures(self, summary: list[Row]) -> list[Panel]:
        at = [5.0 * k + 3 for k in range(len(_FIVES))]
        ours = [Curve(f"n = {row['n']}", at, [float(row[name]) for name in _FIVES]) for row in summary]
        return [Panel("", "iteration", "assignments", ours)]

    def claims(self, summary: list[Row]) -> list[Claim]:
        share = [float(row["initial"]) / float(row["n"]) for row in summary]
        known = [row for row in summary if row["paper_initial"] != ""]
        off = [abs(float(row["initial"]) / float(row["paper_initial"]) - 1) for row in known]
        falling = all(float(row["[1-5]"]) >= float(row["[6-10]"]) for row in summary)
        return [
            Claim(
                "Some 87 % of the rows are assigned before the first dual update", "Table 2",
                f"{min(share):.1%} to {max(share):.1%}", all(0.8 < one < 0.95 for one in share),
            ),
            Claim(
                "The initial assignments are those of Table 2", "Table 2",
                f"within {max(off):.2%}" if off else "", max(off) < 0.02 if off else None,
            ),
            Claim(
                "Many paths are found early, fewer in later iterations", "section 6.1",
                "falls from [1-5] to [6-10] at every n" if falling else "rises at some n", falling,
            ),
        ]  # fmt: skip


PAPERS = {"date-nagi-table2": Table2()}
