"""Date & Nagi's Table 1 and Figure 2: seconds of the Hungarian algorithms, integers in [0, n]."""

from __future__ import annotations

from collections.abc import Iterator

from outbid.assignment.papers.hungarian import Hungarian, processors

from ...experiment import Panel, Row, Size
from ...matrices import uniform
from ...paper import Cases, Claim, Paper, compared, curves_of, each_solved, extent, paid, paper_value

NAME = "date-nagi-table1"
GPU: Cases = {"CU-CLASS": ("gpu", Hungarian("classical")), "CU-TREE": ("gpu", Hungarian("tree"))}
"""What the paper calls its variants on the GPU."""


def _cases(device: str, instance: int) -> Cases:
    """What is measured with an instance: the tree variant with so many threads is OMP."""
    counts = [count for count in (1, 2, 4, 8, 16) if count <= max(processors(), 1)]
    on_cpu: Cases = {f"OMP-{count}": ("cpu", Hungarian("tree", count)) for count in counts}
    on_cpu = {**on_cpu, "CPU-CLASS": ("cpu", Hungarian("classical"))}
    if device == "cpu":
        return on_cpu
    return GPU if instance else {**on_cpu, **GPU}


class Table1(Paper):
    """The tree variant by threads on the CPU, both variants on a GPU.

    With a GPU the cases of the CPU, which take nearly all of the time, are measured with the first instance
    alone.
    """

    shows = "Date & Nagi's Table 1, Figure 2: seconds by threads and on the GPU, small instances, [0, n]."
    takes = "2 minutes; seconds with --quick"
    quick = extent((60, 120))
    cpu = extent((500, 1000, 1500, 2000, 2500, 3000))
    gpu = extent(tuple(range(500, 5001, 500)), instances=5, device="gpu")

    def rows(self, problems: Size) -> Iterator[Row]:
        for size, instance in problems.runs():
            problem = uniform(size, "[0, n]", instance)
            for row, answer in each_solved(problem, _cases(problems.device, instance), size, instance, 3):
                row |= {"objective": paid(problem, answer), "iterations": answer.stats["iterations"]}
                row["paper_seconds"] = paper_value(NAME, str(row["case"]), {"n": size})
                yield row | {"paper_objective": paper_value(NAME, "objective", {"n": size})}

    def figures(self, summary: list[Row]) -> list[Panel]:
        ours = curves_of(summary, "n", "seconds")
        paper = curves_of(summary, "n", "paper_seconds", "{}, paper", kind="theory")
        return [Panel("", "n", "seconds", [*ours, *paper])]

    def claims(self, summary: list[Row]) -> list[Claim]:
        large = [row for row in summary if int(row["n"]) >= 1500] or [{"n": 0}]
        return [
            compared(
                large, "The GPU is faster than one thread for n >= 1500", "section 6.1",
                "{:.2g} times at n = {n}", "OMP-1", "CU-TREE",
            ),
            compared(
                summary, "The classical variant is the quicker one on small instances", "section 6.1",
                "tree over classical: {:.2f} at n = {n}", "CU-TREE", "CU-CLASS",
            ),
            compared(
                large, "More threads are quicker for n >= 1500", "section 6.1",
                "one over two threads: {:.2f} at n = {n}", "OMP-1", "OMP-2",
            ),
        ]  # fmt: skip


PAPERS = {NAME: Table1()}
