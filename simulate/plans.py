"""Plan an experiment: trials, rows kept from earlier runs, and existing output files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from outbid.errors import ResourceError, SettingsError
from outbid.formats.outputs import refuse_output
from outbid.formats.records import record_path

from .conduct import FINDINGS, PICTURE, SUMMARY, TABLE, Plan
from .experiment import Size, chosen
from .experiments import experiment_named
from .kept import kept_rows, missing
from .linkers import linker_named


def plan(
    name: str,
    folder: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    frames: int | None = None,
    particles: int | None = None,
    where: dict[str, str] | None = None,
    tables: Sequence[Path] = (),
    overwrite: bool = False,
) -> Plan:
    """Plan an experiment.

    Parameters
    ----------
    name : str
    folder : Path
        Folder of its files; created if it does not exist.
    quick : bool
        Few cells and small movies.
    seeds, frames, particles : int, optional
        Default: those of the experiment.
    where : dict of str to str, optional
        As for `chosen`.
    tables : sequence of Path
        Tables of earlier runs: their rows are used and not measured again.
    overwrite : bool
        Whether to replace files of an earlier run.

    Raises
    ------
    SettingsError
        If there is no such experiment or cell, a number is out of range, or an output exists.
    ResourceError
        If none of the chosen linkers is installed.

    Examples
    --------
    >>> planned = plan("kappa", Path("found"), quick=True, where={"linker": "nearest"})
    >>> len(planned.trials), planned.size
    (6, Size(seeds=2, frames=8, particles=200))
    """
    experiment = experiment_named(name)
    usual = experiment.quick if quick else experiment.size
    size = Size(seeds or usual.seeds, frames or usual.frames, particles or usual.particles)
    trials = experiment.trials(size)
    trials = chosen(experiment.quicker(trials) if quick else trials, where or {})
    kept = kept_rows(tables, name, experiment.cell, size)
    absent = {linker: linker_named(linker).missing() for linker in dict.fromkeys(t.linker for t in trials)}
    left_out = tuple(sentence for sentence in absent.values() if sentence is not None)
    there = tuple(missing([trial for trial in trials if absent[trial.linker] is None], kept, experiment.cell))
    if not there and not kept:
        raise ResourceError(" ".join(left_out))
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is no folder. Choose another name for the output.")
    settings = {
        **asdict(size),
        "quick": quick,
        "where": [f"{key}={value}" for key, value in (where or {}).items()],
        "tables": [str(table) for table in tables],
    }
    planned = Plan(name, experiment, size, there, left_out, folder, settings, tuple(kept))
    for ending in (TABLE, SUMMARY, FINDINGS, PICTURE):
        if folder.is_dir():
            path = planned.path(ending)
            if ending == TABLE:  # which goes on from its own rows: all of them are kept
                refuse_output(path, overwrite=overwrite, record=record_path(path))
            else:
                refuse_output(path, overwrite=overwrite, inputs=tables)
    return planned
