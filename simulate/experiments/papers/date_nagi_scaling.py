"""Date & Nagi's Tables 4 and 5: a matrix divided over P shards, their messages, and the time of one GPU.

Shards take turns on one device: their seconds say nothing of P GPUs, which `make gpu-scaling` measures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from outbid.assignment import AssignmentProblem
from outbid.assignment.papers.shards.blocks import ArrayBlocks
from outbid.assignment.papers.shards.communicator import Virtual, run_ranks
from outbid.assignment.papers.shards.search import Setup, found
from outbid.compute.arrays import to_device

from ...experiment import Panel, Row, Size
from ...matrices import uniform
from ...paper import Claim, Paper, curves_of, extent, largest_n, paper_value, where

VARIANTS = ("classical", "tree")


@dataclass(frozen=True, kw_only=True)
class Scaling(Paper):
    """Integers in [0, 10n]. Seconds are those of one shard; messages and bytes those of a shard."""

    table: str
    is_weak: bool
    shows: str
    quick: Size
    cpu: Size
    gpu: Size
    takes = "2 minutes; seconds with --quick"
    cell = ("n", "shards", "case")

    def cells(self, problems: Size) -> list[tuple[int, int]]:
        """Sizes and numbers of shards."""
        power = 0.5 if self.is_weak else 0.0
        return [(round(size * count**power), count) for size in problems.sizes for count in (1, 2, 4, 8)]

    def rows(self, problems: Size) -> Iterator[Row]:
        for variant in VARIANTS:  # compiles
            _divided(uniform(40, "[0, 10n]", 0), 2, variant, problems.device)
        for (size, shards), instance in product(self.cells(problems), range(problems.seeds)):
            problem = uniform(size, "[0, 10n]", instance)
            for variant in VARIANTS:
                seconds, stats = _divided(problem, shards, variant, problems.device)
                row: Row = {"n": size, "shards": shards, "case": variant, "instance": instance}
                row |= {"seconds": seconds if shards == 1 else ""}
                row |= {name: stats[name] for name in ("messages", "bytes_sent")}
                yield row | self._of_paper(size, shards, variant)

    def _of_paper(self, size: int, shards: int, variant: str) -> Row:
        """Seconds and efficiency of the paper with as many GPUs; of strong scaling at its own sizes alone."""
        known: Row = {"shards": shards} if self.is_weak else {"shards": shards, "n": size}
        seconds = paper_value(self.table, variant, known)
        first = paper_value(self.table, variant, known | {"shards": 1})
        if isinstance(seconds, str) or isinstance(first, str):
            return {"paper_seconds": seconds, "paper_efficiency": ""}
        share = first / seconds / (1 if self.is_weak else shards)
        return {"paper_seconds": seconds, "paper_efficiency": share}

    def figures(self, summary: list[Row]) -> list[Panel]:
        lines = summary if self.is_weak else where(summary, {"n": largest_n(summary)})
        sent = curves_of(lines, "shards", "bytes_sent")
        paper = curves_of(lines, "shards", "paper_efficiency", "{}, paper", kind="theory")
        return [
            Panel("", "shards", "bytes of a shard", sent),
            Panel("the paper's", "shards", "efficiency", paper),
        ]

    def claims(self, summary: list[Row]) -> list[Claim]:
        del summary
        better = "The classical variant scales better than the tree variant"
        return [
            Claim("Efficiency deteriorates with more GPUs", "section 6.3", "", None),
            Claim(better, "sections 6.3 and 7", "", None),
        ]


def _divided(
    problem: AssignmentProblem, shards: int, variant: str, device: str
) -> tuple[float, Mapping[str, float]]:
    """Seconds of shards that take turns, without the making of their blocks, and the counts of one."""
    blocks = ArrayBlocks(to_device(problem.array) if device == "gpu" else problem.array)
    work = Setup(variant, device == "gpu", 1)
    start = time.perf_counter()
    stats = run_ranks(Virtual.all_of(shards), lambda way: found(blocks, way, work).stats)[0]
    return time.perf_counter() - start - stats["reading_seconds"], stats


weak = Scaling(
    table="date-nagi-table4", is_weak=True,
    shows="Date & Nagi's Table 4: weak scaling: messages of shards, seconds of one.",
    quick=extent((60,)), cpu=extent((500, 1000)), gpu=extent((10_000,), instances=3, device="gpu"),
)  # fmt: skip
strong = Scaling(
    table="date-nagi-table5", is_weak=False,
    shows="Date & Nagi's Table 5: strong scaling: messages of shards, seconds of one.",
    quick=extent((90,)), cpu=extent((1000, 1414, 2000)),
    gpu=extent((10_000, 14_142, 20_000), instances=1, device="gpu"),
)  # fmt: skip
PAPERS = {one.table: one for one in (weak, strong)}
