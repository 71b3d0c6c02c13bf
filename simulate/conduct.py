"""Conducting an experiment: its files are a table, a summary and a record, each complete at any moment."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path

from outbid.errors import SettingsError
from outbid.formats.outputs import write_whole
from outbid.formats.records import to_stand_beside

from .comparison import TUNING_SEEDS
from .experiment import Experiment, Row, Size, Trial, rows_of, summary_of

_RECORDED = ("outbid", "numpy", "scipy", "numba", "laptrack", "trackpy", "btrack", "byotrack")
"""Packages whose versions the record states."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Results of an experiment: rows for each seed, a summary for each cell, and conclusions.

    Parameters
    ----------
    rows, summary, findings : list of Row
        One row for each seed; one for each cell, with intervals; conclusions from them.
    """

    rows: list[Row]
    summary: list[Row]
    findings: list[Row]


@dataclass(frozen=True)
class Plan:
    """An experiment that is ready to run; all settings are checked.

    Parameters
    ----------
    name : str
        In `experiments.EXPERIMENTS`.
    experiment : Experiment
    size : Size
    trials : tuple of Trial
    left_out : tuple of str
        A sentence for every linker that cannot take part.
    folder : Path
    settings : dict
        The settings that the record states.
    kept : tuple of Row
        Rows of earlier runs.
    """

    name: str
    experiment: Experiment
    size: Size
    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]
    folder: Path
    settings: dict[str, object]
    kept: tuple[Row, ...] = ()

    def path(self, ending: str) -> Path:
        """A file of the folder."""
        return self.folder / f"{self.name}{ending}"


TABLE, SUMMARY, FINDINGS, PICTURE = ".csv", "_summary.csv", "_findings.csv", ".png"


def conduct(planned: Plan, *, jobs: int = 1, progress: Callable[[int, int], None] | None = None) -> Outcome:
    """Run a planned experiment.

    After every trial the table with all rows so far is written, so that an interrupted experiment keeps
    its rows; its record then says that it is not complete.

    Parameters
    ----------
    planned : Plan
    jobs : int
        Number of processes. It changes no column but `seconds`.
    progress : callable, optional
        Called with (trials done, trials in all).
    """
    if jobs < 1:
        raise SettingsError(f"jobs is {jobs}; it must be 1 or more.")
    planned.folder.mkdir(parents=True, exist_ok=True)
    for ending in (SUMMARY, FINDINGS, PICTURE):  # those of an earlier run do not belong to the new table
        planned.path(ending).unlink(missing_ok=True)
    rows = list(planned.kept)
    experiment, trials = planned.experiment, list(planned.trials)
    measured = rows_of(experiment.measure, trials, jobs=jobs, progress=progress)
    for done, those in enumerate(chain([[]], measured)):
        rows += those
        record = _record(planned, complete=done == len(trials))
        write_rows(planned.path(TABLE), rows, record)
    summary, findings = summary_of(rows, experiment.cell), experiment.findings(rows)
    write_rows(planned.path(SUMMARY), summary)
    if findings:
        write_rows(planned.path(FINDINGS), findings)
    return Outcome(rows, summary, findings)


def as_csv(rows: list[Row]) -> str:
    """Rows as a table in CSV; a cell is empty if its row lacks the column.

    Examples
    --------
    >>> print(as_csv([{"kappa": 0.1, "link_f1": 0.9}, {"kappa": 0.2, "rival": "nearest"}]))
    kappa,link_f1,rival
    0.1,0.9,
    0.2,,nearest
    <BLANKLINE>
    """
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({name: _shown(value) for name, value in row.items()})
    return text.getvalue()


def json_of(found: Outcome) -> str:
    """Summary and findings; JSON has no NaN, so a score that is 0 / 0 becomes null.

    Examples
    --------
    >>> json_of(Outcome([], [{"kappa": 0.1, "link_f1": float("nan")}], []))
    '{"summary": [{"kappa": 0.1, "link_f1": null}], "findings": []}'
    """
    tables = {"summary": found.summary, "findings": found.findings}
    return json.dumps(
        {
            name: [{key: None if value != value else value for key, value in row.items()} for row in rows]
            for name, rows in tables.items()
        }
    )


def as_text(rows: list[Row]) -> str:
    """Rows as a table for reading, with intervals next to their means.

    Examples
    --------
    >>> print(as_text([{"kappa": 0.1, "link_f1": 0.9, "link_f1_low": 0.89, "link_f1_high": 0.9123}]))
    kappa  link_f1
    0.1    0.9 [0.89, 0.9123]
    """
    table = []
    for row in rows:
        line = {}
        for name, value in row.items():
            low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
            if low is not None and high is not None:
                line[name] = f"{_short(value)} [{_short(low)}, {_short(high)}]"
            elif not name.endswith(("_low", "_high")):
                line[name] = _short(value)
        table.append(line)
    columns = list(dict.fromkeys(name for line in table for name in line))
    width = {name: max(len(name), *(len(line.get(name, "")) for line in table)) for name in columns}
    lines = [{name: name for name in columns}, *table]
    return "\n".join(
        "  ".join(f"{line.get(name, ''):<{width[name]}}" for name in columns).rstrip() for line in lines
    )


def _short(value: float | int | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown(value: float | int | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def write_rows(path: Path, rows: list[Row], record: dict[str, object] | None = None) -> None:
    """Write a table, whole or not at all, with its record beside it."""
    content = as_csv(rows).encode()
    beside = None if record is None else to_stand_beside(path, record)
    write_whole(path, lambda file: file.write(content), overwrite=True, beside=beside)


def _record(planned: Plan, *, complete: bool) -> dict[str, object]:
    """The run record: how the table was made."""
    return {
        "command": "experiment",
        "experiment": planned.name,
        "version": metadata.version("outbid"),
        "packages": {name: version for name in _RECORDED if (version := _version(name)) is not None},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device": "cpu",
        "input": None,
        "settings": planned.settings,
        "tuning_seeds": list(TUNING_SEEDS),
        "left_out": list(planned.left_out),
        "complete": complete,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
