"""Date & Nagi's Table 3: seconds and stages, large instances in three ranges of costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from outbid.assignment.papers.hungarian import Hungarian, processors

from ...experiment import Row, Size
from ...matrices import RANGES, uniform
from ...paper import Cases, Claim, Paper, each_solved, extent, largest_n, paid, paper_value, ratio, where
from .date_nagi_table1 import GPU

NAME = "date-nagi-table3"
STAGES = ("initial_reduction", "compress", "forward_pass", "dual_update", "augmentation_pass")


class Table3(Paper):
    """`forward_pass` of the tree variant on the CPU holds its joins; `serial_seconds` has no threads."""

    shows = "Date & Nagi's Table 3: seconds and stages in [0, n/10], [0, n] and [0, 10n]."
    takes = "5 minutes; seconds with --quick"
    quick = extent((80,))
    cpu = extent((1000, 2000, 3000, 5000))
    gpu = extent((5000, 10_000, 15_000, 20_000, 40_000), instances=5, device="gpu")
    cell = ("n", "costs", "case")
    apart = "costs"

    def rows(self, problems: Size) -> Iterator[Row]:
        for size, costs, instance in product(problems.sizes, RANGES, range(problems.seeds)):
            problem = uniform(size, costs, instance)
            known: Row = {"n": size, "costs": costs}
            for timed, answer in each_solved(problem, _cases(problems.device), size, instance):
                row = known | timed | {"objective": paid(problem, answer)}
                names = ("initial_assignments", "iterations", "dual_updates")
                row |= {name: answer.stats[name] for name in names}
                row |= {name: answer.stats.get(f"{name}_seconds", 0.0) for name in STAGES}
                row["serial_seconds"] = _serial(answer.stats, is_classical="CLASS" in str(row["case"]))
                row["paper_seconds"] = paper_value(NAME, str(row["case"]), known)
                yield row | {"paper_initial": paper_value(NAME, "initial", known)}

    def claims(self, summary: list[Row]) -> list[Claim]:
        largest = largest_n(summary)
        found = []
        for costs, slower in (("[0, n/10]", "tree"), ("[0, n]", "classical"), ("[0, 10n]", "classical")):
            cases = {str(row["case"]) for row in where(summary, {"n": largest, "costs": costs})}
            tree = next((c for c in sorted(cases, reverse=True) if "CLASS" not in c), "")
            other = "CU-CLASS" if tree == "CU-TREE" else f"{tree}-CLASS"
            over = ratio(summary, {"n": largest, "costs": costs}, other, tree)
            holds = None if over is None else (over > 1) == (slower == "classical")
            text = "" if over is None else f"classical over tree: {over:.2f} at n = {largest} ({tree})"
            claim = f"{slower} is the slower variant in {costs}"
            found.append(Claim(claim, "Table 3, n = 20,000", text, holds))
        first = {costs: where(summary, {"n": largest, "costs": costs})[0] for costs in RANGES}
        initial = [float(row["initial_assignments"]) / largest for row in first.values()]
        falls = initial[0] >= initial[1] >= initial[2]
        shares = ", ".join(f"{share:.1%}" for share in initial)
        found.append(Claim("Initial assignments fall as zeros get sparser", "section 6.2", shares, falls))
        equal = first["[0, 10n]"]["objective"] == first["[0, n]"]["objective"]
        claim = "The objectives of [0, 10n] are those of [0, n], to the digit"
        return [*found, Claim(claim, "Table 3", "equal" if equal else "they differ about tenfold", equal)]


def _cases(device: str) -> Cases:
    if device == "gpu":
        return GPU
    counts = sorted({1, min(8, processors())})
    return {
        f"OMP-{count}{end}": ("cpu", Hungarian(variant, count))
        for end, variant in (("", "tree"), ("-CLASS", "classical"))
        for count in counts
    }


def _serial(stats: Mapping[str, float], *, is_classical: bool) -> float:
    """Seconds of the stages that have no threads; the joins of trees are not timed apart."""
    names = ["optimality_check", "reverse_pass", *(["forward_pass"] if is_classical else [])]
    return sum(stats.get(f"{name}_seconds", 0.0) for name in names)


PAPERS = {NAME: Table3()}
