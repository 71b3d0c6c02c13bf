"""A table or a figure of a paper as an experiment: rows, the paper's own values, claims that are checked."""

from __future__ import annotations

import json
import statistics
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from typing import TypeVar

from outbid.assignment import AbstractAssignmentSolver, Answer, AssignmentProblem
from outbid.assignment.problem import on_gpu
from outbid.compute.arrays import on_device, to_host

from .experiment import Curve, Panel, Progress, Row, Size, Study, Trial, grouped

_Made = TypeVar("_Made")
_VALUES = Path(__file__).parent / "experiments" / "papers" / "values.json"
"""What the papers print, table by table."""
Cases = Mapping[str, tuple[str, AbstractAssignmentSolver]]
"""Devices and solvers by name."""
_LONG = 2.0
"""Seconds from which a single run counts."""


def extent(sizes: tuple[int, ...], instances: int = 1, device: str = "cpu") -> Size:
    """Sizes of problems, and instances of each."""
    return Size(instances, sizes=sizes, device=device)


@dataclass(frozen=True)
class Claim:
    """What a paper claims, where, what was measured, whether that agrees; None if it was not measured."""

    claim: str
    where: str
    measured: str
    holds: bool | None

    def row(self) -> Row:
        """As a line of a table."""
        verdict = "not measured here" if self.holds is None else "holds" if self.holds else "does not hold"
        return {"claim": self.claim, "where": self.where, "measured": self.measured, "verdict": verdict}


def judged(claim: str, place: str, value: float | None, text: str, holds: Callable[[float], bool]) -> Claim:
    """A claim about a number, which stands for {} in the text; the number is None if it was not measured.

    Examples
    --------
    >>> judged("It is fast", "section 1", 3.0, "{:.1f} times", lambda times: times > 1)
    Claim(claim='It is fast', where='section 1', measured='3.0 times', holds=True)
    """
    return Claim(claim, place, *(("", None) if value is None else (text.format(value), holds(value))))


class Paper(Study):
    """One table or figure of a paper, at the usual sizes on a device.

    `drawn` are the columns that are plotted over `over`, each with its label. Every value of the column
    `apart` has plots of its own, named by `title`.
    """

    quick: Size
    cpu: Size
    gpu: Size
    cell: tuple[str, ...] = ("n", "case")
    drawn: tuple[tuple[str, str], ...] = (("seconds", "seconds"),)
    over: tuple[str, str] = ("n", "n")
    apart, title = "", "{}"
    others = ("frames", "particles", "where", "tables")
    concluded = "claims"

    def usual(self, device: str, *, quick: bool) -> Size:
        return replace(self.quick, device=device) if quick else {"cpu": self.cpu, "gpu": self.gpu}[device]

    @abstractmethod
    def rows(self, problems: Size) -> Iterator[Row]:
        """A line for each run."""

    def figures(self, summary: list[Row]) -> list[Panel]:
        """Plots in the form of the paper."""
        parts = grouped(summary, (self.apart,)) if self.apart else {("",): summary}
        (x, x_label), drawn = self.over, product(parts.items(), self.drawn)
        return [
            Panel(self.title.format(value), x_label, label, curves_of(rows, x, y))
            for ((value,), rows), (label, y) in drawn
        ]

    @abstractmethod
    def claims(self, summary: list[Row]) -> list[Claim]:
        """The paper's claims next to the measured values."""

    def measured(self, size: Size, trials: list[Trial], jobs: int, progress: Progress) -> Iterator[list[Row]]:
        del trials, jobs, progress
        return ([row] for row in self.rows(size))

    def summarised(self, rows: list[Row]) -> list[Row]:
        return mean_rows(rows, self.cell)

    def conclusions(self, rows: list[Row], summary: list[Row]) -> list[Row]:
        del rows
        return [claim.row() for claim in self.claims(summary)]

    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        del size
        return self.figures(summary)


@cache
def values_of(table: str) -> tuple[Row, ...]:
    """What a paper prints in a table; empty for a figure without numbers.

    Examples
    --------
    >>> values_of("date-nagi-table1")[0]["OMP-1"]
    0.07
    """
    return tuple(json.loads(_VALUES.read_text("utf-8")).get(table, ()))


def paper_value(table: str, column: str, wanted: Row) -> float | str:
    """One number of a table, "" if the paper has none there.

    Examples
    --------
    >>> paper_value("date-nagi-table1", "CU-TREE", {"n": 5000})
    1.7
    """
    found = next((row.get(column, "") for row in where(values_of(table), wanted)), "")
    return found if isinstance(found, str) else float(found)


def solved(
    problem: AssignmentProblem,
    solver: AbstractAssignmentSolver,
    device: str,
    repeats: int = 3,
    *,
    compiled: bool = False,
) -> tuple[float, Answer]:
    """Median seconds of a solver and its answer, a GPU's with both transfers; the first run is not timed.

    If `compiled`, all are timed: the solver has run before on a problem of this size.
    """

    def run() -> Answer:
        given = on_gpu(problem) if device == "gpu" and not on_device(problem.array) else problem
        answer = solver.compute(given)
        to_host(answer.col_of_row)
        return answer

    return timed(run, repeats, compiled=compiled)


def cases_on(device: str, cases: Cases) -> Cases:
    """The cases of the CPU, and with a GPU those of the GPU."""
    return {case: way for case, way in cases.items() if way[0] in ("cpu", device)}


def each_solved(
    problem: AssignmentProblem, cases: Cases, size: int, instance: int, repeats: int = 1
) -> Iterator[tuple[Row, Answer]]:
    """A line with the seconds of every case, and its answer; the first instance compiles."""
    for case, (device, solver) in cases.items():
        seconds, answer = solved(problem, solver, device, repeats, compiled=instance > 0)
        yield {"n": size, "case": case, "instance": instance, "seconds": seconds}, answer


def paid(problem: AssignmentProblem, answer: Answer) -> float:
    """What the pairs of a perfect matching of a matrix on the host cost."""
    cols = to_host(answer.col_of_row)
    return float(problem.array[range(len(cols)), cols].sum(dtype=float))


def timed(work: Callable[[], _Made], repeats: int = 3, *, compiled: bool = False) -> tuple[float, _Made]:
    """Median seconds of some runs after one that compiles; of one run if it takes long."""
    start = time.perf_counter()
    made = work()
    first = time.perf_counter() - start
    if first > 5 * _LONG:
        return first, made
    times = [first] if compiled else []
    while len(times) < repeats and (not times or times[0] < _LONG):
        start = time.perf_counter()
        made = work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), made


def mean_rows(rows: list[Row], cell: tuple[str, ...]) -> list[Row]:
    """Means over the instances, one line for each cell; words are those of the first line.

    Examples
    --------
    >>> mean_rows([{"n": 2, "instance": k, "seconds": 1.0 + k} for k in range(3)], ("n",))
    [{'n': 2, 'instances': 3, 'seconds': 2.0}]
    """
    found = []
    for key, those in grouped(rows, cell).items():
        line: Row = dict(zip(cell, key, strict=True))
        line["instances"] = len(those)
        for name, value in those[0].items():
            if name in cell or name == "instance":
                continue
            numbers = [row[name] for row in those if not isinstance(row[name], str)]
            line[name] = value if isinstance(value, str) else statistics.mean(map(float, numbers))
        found.append(line)
    return found


def curves_of(rows: list[Row], x: str, y: str, name: str = "{}", *, kind: str = "measured") -> list[Curve]:
    """A curve for every case that has values."""
    cases = dict.fromkeys(str(row["case"]) for row in rows)
    every = (Curve.of(name.format(case), where(rows, {"case": case}), x, y, kind) for case in cases)
    return [curve for curve in every if curve.x]


def where(rows: Iterable[Row], wanted: Row) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def compared(
    summary: list[Row], claim: str, place: str, text: str, over: str, under: str,
    *, least: float = 1.0, most: float = inf,
) -> Claim:  # fmt: skip
    """A claim that a case takes more than `least`, less than `most` times another's seconds at the largest n.

    The number stands for {} in the text, n for {n}; it is None if either was not measured.

    Examples
    --------
    >>> rows = [{"n": 9, "case": "a", "seconds": 3.0}, {"n": 9, "case": "b", "seconds": 2.0}]
    >>> compared(rows, "a is slower", "section 1", "{:.1f} times at n = {n}", "a", "b")
    Claim(claim='a is slower', where='section 1', measured='1.5 times at n = 9', holds=True)
    """
    largest = largest_n(summary)
    times = ratio(summary, {"n": largest}, over, under)
    return judged(claim, place, times, text.replace("{n}", str(largest)), lambda x: least < x < most)


def largest_n(rows: list[Row]) -> int:
    """The size of the largest problems."""
    return max(int(row["n"]) for row in rows)


def ratio(rows: list[Row], wanted: Row, over: str, under: str) -> float | None:
    """Seconds of one case over those of another in the rows with these values; None if either is missing."""
    upper, lower = (where(rows, wanted | {"case": case}) for case in (over, under))
    if not upper or not lower or not float(lower[0]["seconds"]):
        return None
    return float(upper[0]["seconds"]) / float(lower[0]["seconds"])
