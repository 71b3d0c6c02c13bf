"""A table or a figure of a paper as an experiment: rows, the paper's own values, claims that are checked."""

from __future__ import annotations

import json
import math
import platform
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack

from outbid._arrays import gpu_names, on_device, to_host
from outbid.assignment import AbstractAssignmentSolver, Answer, AssignmentProblem
from outbid.assignment.problem import on_gpu
from outbid.errors import ResourceError, SettingsError
from outbid.formats.outputs import refuse_output
from outbid.formats.records import record_path

from .conduct import write_rows
from .experiment import Curve, Panel, Row, grouped

_Made = TypeVar("_Made")
_VALUES = Path(__file__).parent / "experiments" / "papers" / "values.json"
"""What the papers print, table by table."""
_LONG = 2.0
"""Seconds from which a single run counts."""
_OFTEN = 2.0
"""Seconds after which the rows so far are written again; after each row it took longer than the runs."""


class Key(TypedDict, total=False):
    """Columns by which lines of a table are found."""

    n: int
    case: str
    costs: str
    shards: int
    persistence: float
    steps: str
    turnover: float


@dataclass(frozen=True)
class Problems:
    """How much is measured: sizes of problems, instances of each, and where."""

    sizes: tuple[int, ...]
    instances: int = 1
    device: str = "cpu"

    def runs(self) -> Iterator[tuple[int, int]]:
        """Every size with the number of each of its instances."""
        return product(self.sizes, range(self.instances))


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


class Paper(ABC):
    """One table or figure. `cell` names the columns in which rows of different kinds differ."""

    shows: str
    takes: str
    quick: Problems
    cpu: Problems
    gpu: Problems
    cell: tuple[str, ...] = ("n", "case")

    @abstractmethod
    def rows(self, problems: Problems) -> Iterator[Row]:
        """A line for each run."""

    @abstractmethod
    def panels(self, summary: list[Row]) -> list[Panel]:
        """Plots in the form of the paper."""

    @abstractmethod
    def claims(self, summary: list[Row]) -> list[Claim]:
        """The paper's claims beside what was measured."""

    def problems(self, device: str, *, quick: bool) -> Problems:
        """The usual sizes on a device."""
        return replace(self.quick, device=device) if quick else {"cpu": self.cpu, "gpu": self.gpu}[device]


@cache
def values_of(table: str) -> tuple[Row, ...]:
    """What a paper prints in a table; empty for a figure without numbers.

    Examples
    --------
    >>> values_of("date-nagi-table1")[0]["OMP-1"]
    0.07
    """
    return tuple(json.loads(_VALUES.read_text("utf-8")).get(table, ()))


def paper_value(table: str, column: str, **where: Unpack[Key]) -> float | str:
    """One number of a table, "" if the paper has none there.

    Examples
    --------
    >>> paper_value("date-nagi-table1", "CU-TREE", n=5000)
    1.7
    """
    for row in values_of(table):
        if all(row.get(name) == value for name, value in where.items()):
            found = row.get(column, "")
            return found if isinstance(found, str) else float(found)
    return ""


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


def curve(label: str, rows: list[Row], x: str, y: str, *, kind: str = "measured") -> Curve:
    """A column over another, of the rows that have both."""
    both = [row for row in rows if not isinstance(row.get(y, ""), str)]
    return Curve(label, [float(row[x]) for row in both], [float(row[y]) for row in both], kind=kind)


def curves_of(rows: list[Row], x: str, y: str, name: str = "{}", *, kind: str = "measured") -> list[Curve]:
    """Such a curve for every case."""
    cases = dict.fromkeys(str(row["case"]) for row in rows)
    return [curve(name.format(case), where(rows, case=case), x, y, kind=kind) for case in cases]


def where(rows: list[Row], **wanted: Unpack[Key]) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def ratio(rows: list[Row], column: str, over: Key, under: Key) -> float | None:
    """The value of one row over that of another; None if either is missing."""
    upper, lower = where(rows, **over), where(rows, **under)
    if not upper or not lower or not float(lower[0][column]):
        return None
    return float(upper[0][column]) / float(lower[0][column])


@dataclass(frozen=True, eq=False)
class Outcome:
    """Rows, their means, and the paper's claims beside them; complete unless the time was over before."""

    rows: list[Row]
    summary: list[Row]
    claims: list[Row]
    complete: bool = True


def check_outputs(name: str, folder: Path, *, overwrite: bool) -> None:
    """Refuse files that are there already."""
    for ending in (".csv", "_summary.csv", "_claims.csv", ".png"):
        path = folder / f"{name}{ending}"
        if folder.is_dir():
            record = record_path(path) if ending == ".csv" else None
            refuse_output(path, overwrite=overwrite, record=record)


def conduct_paper(
    name: str, paper: Paper, problems: Problems, folder: Path, seconds: float = math.inf
) -> Outcome:
    """Measure, and write NAME.csv with its record, NAME_summary.csv and NAME_claims.csv.

    Parameters
    ----------
    name : str
    paper : Paper
    problems : Problems
    folder : Path
    seconds : float
        After which no further run is begun; the size that is not complete then is left out.

    Raises
    ------
    ResourceError
        If a GPU is asked for and there is none.
    """
    if problems.device == "gpu":
        try:
            gpu_names()
        except RuntimeError as error:
            raise ResourceError(str(error)) from None
    if not problems.sizes or min(problems.sizes) < 2:
        raise SettingsError(f"sizes are {list(problems.sizes)}; give numbers of 2 or more.")
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    table = folder / f"{name}.csv"
    begun, written, complete = time.monotonic(), -math.inf, True
    for row in paper.rows(problems):
        now = time.monotonic()
        complete = now - begun <= seconds
        if not complete:
            rows = [one for one in rows if one["n"] != row["n"]]
            break
        rows.append(row)
        if now - written >= _OFTEN:
            write_rows(table, rows, record_of(name, problems, complete=False))
            written = time.monotonic()
    if not rows:
        raise ResourceError(
            f"{name}: no size was complete after {seconds:g} s. Give more time or smaller sizes."
        )
    summary = mean_rows(rows, paper.cell)
    claims = [claim.row() for claim in paper.claims(summary)]
    write_rows(table, rows, record_of(name, problems, complete=complete))
    write_rows(folder / f"{name}_summary.csv", summary)
    write_rows(folder / f"{name}_claims.csv", claims)
    return Outcome(rows, summary, claims, complete)


def record_of(name: str, problems: Problems, *, complete: bool) -> dict[str, object]:
    """How a table was made."""
    card = gpu_names()[0] if problems.device == "gpu" else ""
    return {
        "command": "experiment",
        "experiment": name,
        "version": metadata.version("outbid"),
        "packages": {one: metadata.version(one) for one in ("outbid", "numpy", "scipy", "numba")},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device": problems.device,
        "card": card,
        "input": None,
        "settings": asdict(problems) | {"sizes": list(problems.sizes)},
        "complete": complete,
    }
