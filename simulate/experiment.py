"""Base class of experiments: independent trials, their table rows, and plots of these rows."""

from __future__ import annotations

import multiprocessing
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields
from itertools import product
from typing import ClassVar

from outbid.errors import ResourceError, SettingsError

from .bootstrap import interval
from .scenes import Scene

Row = dict[str, float | int | str]
"""One line of a table."""
Progress = Callable[[int, int], None] | None
"""Called with (trials done, trials in all)."""

_OF_TRIAL = ("linker", "given")
QUANTITIES = (*_OF_TRIAL, *(field.name for field in fields(Scene)))
"""Names by which trials are chosen and their rows known: linker, what it is given, fields of a scene."""
UNSEEN = ("seed", "seconds", "settings")
"""Columns of rows that a summary does not average."""


@dataclass(frozen=True)
class Size:
    """Size of an experiment.

    Parameters
    ----------
    seeds : int
        Movies of each scene; for a table of a paper, instances of each problem.
    frames, particles : int
        Of each movie.
    sizes : tuple of int
        For a table of a paper: n of its problems.
    device : {"cpu", "gpu"}
        Where these are solved.
    """

    seeds: int = 5
    frames: int = 30
    particles: int = 1000
    sizes: tuple[int, ...] = ()
    device: str = "cpu"

    def runs(self) -> Iterator[tuple[int, int]]:
        """Every n with the number of each of its instances."""
        return product(self.sizes, range(self.seeds))


@dataclass(frozen=True)
class Trial:
    """The unit of work: movies of one scene, the linker, and what the linker is given.

    `given` is ``"nothing"``, or ``"the truth"`` of other movies of the scene, on which settings are tuned.
    """

    scene: Scene
    seeds: tuple[int, ...]
    linker: str = "outbid"
    given: str = "nothing"

    def cell(self, names: Sequence[str]) -> Row:
        """Values of fields of the scene, and of `linker` and `given`, by name."""
        return {name: getattr(self if name in _OF_TRIAL else self.scene, name) for name in names}


@dataclass(frozen=True)
class Curve:
    """A line of a plot: values over x, with the ends of their intervals if there are any.

    `kind` is ``"measured"`` or ``"theory"``.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    kind: str = "measured"

    @classmethod
    def of(cls, label: str, summary: list[Row], x: str, y: str, kind: str = "measured") -> Curve:
        """A curve with one column of a summary table as x and another one as y, of rows that have a number.

        Examples
        --------
        >>> summary = [{"kappa": 0.1, "idf1": 0.8, "idf1_low": 0.7, "idf1_high": 0.9}]
        >>> Curve.of("outbid", summary, "kappa", "idf1")
        Curve(label='outbid', x=[0.1], y=[0.8], low=[0.7], high=[0.9], kind='measured')
        """
        rows = [row for row in summary if not isinstance(row.get(y, ""), str)]
        over, value, low, high = (
            [float(row[name]) for row in rows if name in row] for name in (x, y, f"{y}_low", f"{y}_high")
        )
        return cls(label, over, value, low, high, kind)


@dataclass(frozen=True)
class Panel:
    """One plot of a picture, with labelled axes and curves."""

    title: str
    x_label: str = ""
    y_label: str = ""
    curves: Sequence[Curve] = ()


class Study(ABC):
    """What `outbid experiment` measures, an `Experiment` with movies or a table of a `Paper`.

    `shows` describes it in a sentence, `takes` is the running time on two cores. `others` are the settings
    that do not concern it, and `concluded` is what its conclusions are called.
    """

    shows: str
    takes: str
    others: ClassVar[tuple[str, ...]]
    concluded: ClassVar[str]

    @property
    @abstractmethod
    def cell(self) -> tuple[str, ...]:
        """Columns that identify a cell: rows with the same values in them are summarised together."""

    @abstractmethod
    def usual(self, device: str, *, quick: bool) -> Size:
        """The usual size, or one that takes seconds."""

    @abstractmethod
    def measured(self, size: Size, trials: list[Trial], jobs: int, progress: Progress) -> Iterator[list[Row]]:
        """The rows, some at a time."""

    @abstractmethod
    def summarised(self, rows: list[Row]) -> list[Row]:
        """One row for each cell."""

    @abstractmethod
    def conclusions(self, rows: list[Row], summary: list[Row]) -> list[Row]:
        """Findings or claims."""

    @abstractmethod
    def panels(self, summary: list[Row], size: Size) -> list[Panel]:
        """Plots of the summary; cells may be missing."""


class Experiment(Study):
    """A question that simulated movies answer. `size` is the usual size, `quick` one that takes seconds."""

    size: Size = Size()
    quick: Size = Size(seeds=2, frames=8, particles=200)
    others = ("device", "sizes")
    concluded = "findings"

    def usual(self, device: str, *, quick: bool) -> Size:
        del device
        return self.quick if quick else self.size

    @abstractmethod
    def trials(self, size: Size) -> list[Trial]:
        """All trials; linkers of one scene get the same seeds, so that their scores can be paired."""

    @abstractmethod
    def measure(self, trial: Trial) -> list[Row]:
        """The rows of one trial, at least one for each seed."""

    def measured(self, size: Size, trials: list[Trial], jobs: int, progress: Progress) -> Iterator[list[Row]]:
        del size
        return rows_of(self.measure, trials, jobs=jobs, progress=progress)

    def summarised(self, rows: list[Row]) -> list[Row]:
        return summary_of(rows, self.cell)

    def quicker(self, trials: list[Trial]) -> list[Trial]:
        """The trials that `--quick` runs; by default all of them."""
        return trials

    def conclusions(self, rows: list[Row], summary: list[Row]) -> list[Row]:
        """Conclusions from the rows, in addition to their summary; by default none."""
        del rows, summary
        return []


def chosen(trials: list[Trial], where: Mapping[str, str]) -> list[Trial]:
    """The trials whose scene, linker or `given` has one of the requested values.

    Values are texts; several values are separated by commas.

    Raises
    ------
    SettingsError
        If there is no such quantity, or no trial with such a value.

    Examples
    --------
    >>> trials = [Trial(Scene(kappa), (0,)) for kappa in (0.1, 0.2)]
    >>> [trial.scene.kappa for trial in chosen(trials, {"kappa": "0.20"})]
    [0.2]
    """
    for name, value in where.items():
        if name not in QUANTITIES:
            raise SettingsError(f"There is no {name!r} to choose by. Known are: {', '.join(QUANTITIES)}.")
        there = [trial.cell([name])[name] for trial in trials]
        trials = [trial for trial, one in zip(trials, there, strict=True) if _same(one, value)]
        if not trials:
            values = ", ".join(map(str, dict.fromkeys(there)))
            raise SettingsError(f"No trial has {name} {value}. There are: {values}.")
    return trials


def _same(value: object, asked: str) -> bool:
    try:
        return any(float(str(value)) == float(one) for one in asked.split(","))
    except ValueError:
        return str(value) in asked.split(",")


def rows_of(
    measure: Callable[[Trial], list[Row]], trials: list[Trial], *, jobs: int = 1, progress: Progress = None
) -> Iterator[list[Row]]:
    """The rows of the trials, trial by trial, always in the order of the trials.

    Parameters
    ----------
    measure : callable
        `Experiment.measure`.
    trials : list of Trial
    jobs : int
        Number of processes. It changes no column but `seconds`.
    progress : callable, optional
        Called with (trials done, trials in all).

    Raises
    ------
    ResourceError
        If a process is killed from outside.
    """
    report = progress or (lambda _done, _total: None)
    report(0, len(trials))
    if jobs == 1:
        for done, trial in enumerate(trials, 1):
            yield measure(trial)
            report(done, len(trials))
        return
    # Spawned, because the threads of compiled kernels do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, max(len(trials), 1)), context, _leave_interrupts) as pool:
        try:
            for done, rows in enumerate(pool.map(measure, trials), 1):
                yield rows
                report(done, len(trials))
        except BrokenProcessPool:
            raise ResourceError(
                "A process was killed from outside, perhaps for lack of memory. Take fewer jobs; the rows "
                "measured before are kept."
            ) from None
        except BaseException:  # do not wait for the others, for any reason that ends this process
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def _leave_interrupts() -> None:
    """Ignore Ctrl-C, which reaches the whole group of processes: the parent ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def summary_of(rows: list[Row], cell: tuple[str, ...]) -> list[Row]:
    """Means over seeds with bootstrap intervals, one row for each cell, in the order of their first rows.

    Examples
    --------
    >>> rows = [{"kappa": 0.1, "seed": seed, "link_f1": 0.9 + seed / 100} for seed in range(3)]
    >>> found = summary_of(rows, ("kappa",))[0]
    >>> found["kappa"], found["seeds"], round(found["link_f1"], 3), round(found["link_f1_high"], 3)
    (0.1, 3, 0.91, 0.92)
    """
    found = []
    for key, those in grouped(rows, cell).items():
        summed: Row = dict(zip(cell, key, strict=True))
        summed["seeds"] = len(those)
        for name in those[0]:
            if name not in cell and name not in UNSEEN:
                mean, low, high = interval([float(row[name]) for row in those])
                summed |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        found.append(summed)
    return found


def grouped(rows: list[Row], columns: tuple[str, ...]) -> dict[tuple[float | int | str, ...], list[Row]]:
    """Rows grouped by their values in these columns; groups and rows keep their order.

    Examples
    --------
    >>> grouped([{"kappa": 0.2, "seed": 0}, {"kappa": 0.1, "seed": 0}], ("kappa",))
    {(0.2,): [{'kappa': 0.2, 'seed': 0}], (0.1,): [{'kappa': 0.1, 'seed': 0}]}
    """
    groups: dict[tuple[float | int | str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return groups
