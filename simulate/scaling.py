"""Date & Nagi's Tables 4 and 5: a matrix divided over P shards, and the time that P GPUs would take."""

from __future__ import annotations

from collections.abc import Iterator

from outbid._arrays import to_device
from outbid.assignment import AssignmentProblem
from outbid.assignment.problem import DenseCosts
from outbid.assignment.shards.blocks import ArrayBlocks
from outbid.assignment.shards.search import Work

from .experiment import Panel, Row
from .matrices import uniform
from .paper import Claim, Extent, Key, Paper, curve, paper_value, where
from .replay import predicted

VARIANTS = ("classical", "tree")


class Scaling(Paper):
    """Seconds of one shard are measured, those of several are predicted; see `replay`."""

    table: str
    is_weak: bool
    cell = ("n", "shards", "case")

    def cells(self, extent: Extent) -> list[tuple[int, int]]:
        """Sizes and numbers of shards."""
        counts = (1, 2, 4, 8)
        if self.is_weak:
            return [(round(size * count**0.5), count) for size in extent.sizes for count in counts]
        return [(size, count) for size in extent.sizes for count in counts]

    def rows(self, extent: Extent) -> Iterator[Row]:
        for variant in VARIANTS:  # compiles
            costs = uniform(40, "[0, 10n]", 0).array
            some = ArrayBlocks(to_device(costs) if extent.device == "gpu" else costs)
            predicted(some, 2, Work(variant, extent.device == "gpu", 1))
        alone: dict[tuple[str, int, int], float] = {}
        for size, shards in self.cells(extent):
            for instance in range(extent.instances):
                problem = uniform(size, "[0, 10n]", instance)
                if extent.device == "gpu":
                    problem = AssignmentProblem(DenseCosts(to_device(problem.array)))
                for variant in VARIANTS:
                    work = Work(variant, extent.device == "gpu", 1)
                    found = predicted(ArrayBlocks(problem.array), shards, work)
                    first = (variant, 0 if self.is_weak else size, instance)
                    one = alone.setdefault(first, found.seconds)
                    share = one / found.seconds / (1 if self.is_weak else shards)
                    yield {
                        "n": size,
                        "shards": shards,
                        "case": variant,
                        "instance": instance,
                        "kind": "measured" if shards == 1 else "predicted",
                        "seconds": found.seconds,
                        "message_seconds": found.of_messages,
                        "messages": found.answer.stats["messages"],
                        "bytes_sent": found.answer.stats["bytes_sent"],
                        "efficiency": share,
                        **self._of_paper(size, shards, variant),
                    }

    def _of_paper(self, size: int, shards: int, variant: str) -> Row:
        """Seconds and efficiency of the paper with as many GPUs; of strong scaling at its own sizes alone."""
        known: Key = {"shards": shards} if self.is_weak else {"shards": shards, "n": size}
        seconds = paper_value(self.table, variant, **known)
        first = paper_value(self.table, variant, **(known | {"shards": 1}))
        share = ""
        if not isinstance(seconds, str) and not isinstance(first, str):
            return {
                "paper_seconds": seconds,
                "paper_efficiency": first / seconds / (1 if self.is_weak else shards),
            }
        return {"paper_seconds": seconds, "paper_efficiency": share}

    def panels(self, summary: list[Row]) -> list[Panel]:
        curves = []
        for variant in VARIANTS:
            largest = max(int(row["n"]) for row in summary)
            lines = where(summary, case=variant)
            lines = lines if self.is_weak else where(lines, n=largest)
            curves.append(curve(f"{variant}, predicted", lines, "shards", "efficiency"))
            curves.append(curve(f"{variant}, paper", lines, "shards", "paper_efficiency", kind="theory"))
        return [Panel("", "shards", "efficiency", [one for one in curves if one.x])]

    def claims(self, summary: list[Row]) -> list[Claim]:
        most = max(int(row["shards"]) for row in summary)
        largest = max(int(row["n"]) for row in where(summary, shards=most))
        last = {
            variant: float(where(summary, case=variant, shards=most, n=largest)[0]["efficiency"])
            for variant in VARIANTS
        }
        text = f"predicted at P = {most}, n = {largest}: "
        text += f"classical {last['classical']:.2f}, tree {last['tree']:.2f}"
        return [
            Claim("Efficiency deteriorates with more GPUs", "section 6.3", text, max(last.values()) < 1),
            Claim(
                "The classical variant scales better than the tree variant",
                "sections 6.3 and 7",
                text,
                last["classical"] > last["tree"],
            ),
        ]
