"""Conducting an experiment: its files are a table, a summary and a record, each complete at any moment."""

from __future__ import annotations

import platform
import time
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from math import inf
from pathlib import Path

from outbid.compute.arrays import gpu_names
from outbid.errors import ResourceError, SettingsError
from outbid.formats.files.outputs import refuse_output, write_whole
from outbid.formats.files.records import record_path, to_stand_beside

from .comparison import TUNING_SEEDS
from .experiment import Experiment, Progress, Row, Size, Study, Trial, chosen
from .experiments import study_named
from .linkers import linker_named
from .reuse import kept_rows, missing
from .rows import as_csv
from .settings import ExperimentSettings

_RECORDED = ("outbid", "numpy", "scipy", "numba", "laptrack", "trackpy", "btrack", "byotrack")
"""Packages whose versions the record states."""
_OFTEN = 2.0
"""Seconds after which the rows so far are written again."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Results of an experiment.

    Parameters
    ----------
    rows, summary, conclusions : list of Row
        One row for each seed; one for each cell; conclusions from them.
    """

    rows: list[Row]
    summary: list[Row]
    conclusions: list[Row]


@dataclass(frozen=True)
class Plan:
    """An experiment that is ready to run; all settings are checked.

    Parameters
    ----------
    name : str
        In `experiments.STUDIES`.
    study : Study
    size : Size
    folder : Path
    settings : ExperimentSettings
    trials : tuple of Trial
        Of an experiment with movies.
    left_out : tuple of str
        A sentence for every linker that cannot take part.
    kept : tuple of Row
        Rows of earlier runs.
    """

    name: str
    study: Study
    size: Size
    folder: Path
    settings: ExperimentSettings
    trials: tuple[Trial, ...] = ()
    left_out: tuple[str, ...] = ()
    kept: tuple[Row, ...] = ()

    def path(self, ending: str) -> Path:
        """A file of the folder."""
        return self.folder / f"{self.name}{ending}"

    @property
    def made_of_rows(self) -> tuple[Path, ...]:
        """Summary, conclusions and picture."""
        return tuple(map(self.path, ("_summary.csv", f"_{self.study.concluded}.csv", ".png")))

    @property
    def record(self) -> dict[str, object]:
        """The run record: how the table was made."""
        settings = asdict(self.size) | {
            "quick": self.settings.quick,
            "where": [f"{key}={value}" for key, value in self.settings.where.items()],
            "tables": [str(table) for table in self.settings.tables],
            "sizes": ",".join(map(str, self.size.sizes)),
        }
        return {
            "command": "experiment", "experiment": self.name, "version": metadata.version("outbid"),
            "packages": {name: version for name in _RECORDED if (version := _version(name)) is not None},
            "python": platform.python_version(), "platform": platform.platform(),
            "device": self.size.device, "card": gpu_names()[0] if self.size.device == "gpu" else "",
            "input": None, "tuning_seeds": list(TUNING_SEEDS), "left_out": list(self.left_out),
            "settings": {name: value for name, value in settings.items() if name not in self.study.others},
        }  # fmt: skip


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def plan(
    name: str, folder: Path, settings: ExperimentSettings | None = None, *, overwrite: bool = False
) -> Plan:
    """Plan an experiment.

    Parameters
    ----------
    name : str
        In `experiments.STUDIES`.
    folder : Path
        Folder of its files; created if it does not exist.
    settings : ExperimentSettings, optional
    overwrite : bool
        Whether to replace files of an earlier run.

    Raises
    ------
    SettingsError
        If there is no such experiment or cell, a setting does not concern it, or an output exists.
    ResourceError
        If none of the chosen linkers is installed, or there is no GPU and one is asked for.

    Examples
    --------
    >>> planned = plan("kappa", Path("found"), ExperimentSettings(quick=True, where={"linker": "nearest"}))
    >>> len(planned.trials), planned.size.particles
    (6, 200)
    """
    settings, study = settings or ExperimentSettings(), study_named(name)
    plain = ExperimentSettings()
    if wrong := [one for one in study.others if getattr(settings, one) != getattr(plain, one)]:
        raise SettingsError(f"{' and '.join(wrong)}: not for {name}. Leave it out.")
    if settings.device == "gpu":
        try:
            gpu_names()
        except RuntimeError as error:
            raise ResourceError(str(error)) from None
    size = study.usual(settings.device, quick=settings.quick)
    own = {one: value for one in asdict(size) if (value := getattr(settings, one)) not in (None, ())}
    planned = Plan(name, study, replace(size, **own), folder, settings)
    if isinstance(study, Experiment):
        planned = _with_trials(planned, study)
    elif min(planned.size.sizes) < 2:
        raise SettingsError(f"sizes are {list(planned.size.sizes)}; give numbers of 2 or more.")
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is no folder. Choose another name for the output.")
    if folder.is_dir():  # the table goes on from its own rows: all of them are kept
        table = planned.path(".csv")
        refuse_output(table, overwrite=overwrite, record=record_path(table))
        for path in planned.made_of_rows:
            refuse_output(path, overwrite=overwrite, inputs=settings.tables)
    return planned


def _with_trials(planned: Plan, experiment: Experiment) -> Plan:
    """The same with its trials, but for those that are kept or whose linker is not there."""
    settings, size = planned.settings, planned.size
    trials = experiment.trials(size)
    trials = chosen(experiment.quicker(trials) if settings.quick else trials, settings.where)
    kept = kept_rows(settings.tables, planned.name, experiment.cell, size)
    absent = {linker: linker_named(linker).missing() for linker in dict.fromkeys(t.linker for t in trials)}
    left_out = tuple(sentence for sentence in absent.values() if sentence is not None)
    there = missing([trial for trial in trials if absent[trial.linker] is None], kept, experiment.cell)
    if not there and not kept:
        raise ResourceError(" ".join(left_out))
    return replace(planned, trials=tuple(there), left_out=left_out, kept=tuple(kept))


def conduct(planned: Plan, *, progress: Progress = None) -> Outcome:
    """Run a planned experiment.

    The table with all rows so far is written every few seconds, and at the end for any reason: an
    interrupted experiment keeps its rows, and its record says that it is not complete.

    Parameters
    ----------
    planned : Plan
    progress : callable, optional
        Called with (trials done, trials in all).
    """
    planned.folder.mkdir(parents=True, exist_ok=True)
    for path in planned.made_of_rows:  # those of an earlier run do not belong to the new table
        path.unlink(missing_ok=True)
    study, rows, written, complete = planned.study, list(planned.kept), -inf, False
    record = planned.record
    try:
        for those in study.measured(planned.size, list(planned.trials), planned.settings.jobs, progress):
            rows += those
            if time.monotonic() - written >= _OFTEN:
                write_rows(planned.path(".csv"), rows, record | {"complete": False})
                written = time.monotonic()
        complete = True
    finally:
        write_rows(planned.path(".csv"), rows, record | {"complete": complete})
    summary = study.summarised(rows)
    conclusions = study.conclusions(rows, summary)
    for path, table in zip(planned.made_of_rows, (summary, conclusions), strict=False):
        if table:
            write_rows(path, table)
    return Outcome(rows, summary, conclusions)


def write_rows(path: Path, rows: list[Row], record: dict[str, object] | None = None) -> None:
    """Write a table, whole or not at all, with its record next to it."""
    content = as_csv(rows).encode()
    beside = None if record is None else to_stand_beside(path, record)
    write_whole(path, lambda file: file.write(content), overwrite=True, beside=beside)
