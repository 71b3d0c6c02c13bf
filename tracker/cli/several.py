"""Options of commands for many movies, and the report of failures at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from ..settings.declare import Setting, check_values, declare
from .clusters import DaskCluster, executor_on
from .options import options_of
from .terminal import progress_bar, say

if TYPE_CHECKING:
    from ..work.jobs import Job
    from ..work.many import Outcome


@dataclass(frozen=True)
class Outputs:
    """Where the outputs of many inputs go."""

    out_dir: Path | None = declare(None, Setting(
        "Folder for the outputs of many inputs, one each. An output of the same input, settings and "
        "version is kept; if a movie fails, the others continue.",
        metavar="DIR",
    ))  # fmt: skip
    jobs: int = declare(1, Setting(
        "Movies processed at the same time, each in its own process.", least=1, metavar="N"
    ))  # fmt: skip
    suffix: str = declare(".csv", Setting("Format of the outputs in DIR.", metavar="SUFFIX"))

    def __post_init__(self) -> None:
        check_values(self)

    def __bool__(self) -> bool:
        return self.out_dir is not None


_FOLDER = {"out_dir": {"type": click.Path(path_type=Path, file_okay=False)}}
several_options = options_of(Outputs, "several", special=_FOLDER)
"""Decorator that adds ``--out-dir``, ``--jobs`` and ``--suffix``."""
out_dir_options = options_of(Outputs, "several", special=_FOLDER, without=("suffix",))
"""Decorator that adds the options ``--out-dir`` and ``--jobs``."""


@dataclass(frozen=True)
class Several:
    """How a command processes several movies.

    Parameters
    ----------
    outputs : Outputs
    suffix : str, optional
        Format of the outputs, where it is no option.
    overwrite, as_json : bool
    cluster : DaskCluster
        That is used instead of processes of this machine.
    workers : int or None
        Of a cluster that is started; each works on a movie.
    gpus : bool
        Whether each of them gets a GPU of its own.
    """

    outputs: Outputs
    suffix: str = ""
    overwrite: bool = False
    as_json: bool = False
    cluster: DaskCluster = DaskCluster()
    workers: int | None = None
    gpus: bool = False


def only_one(sources: Sequence[Path | str]) -> Path | str:
    """The single input of a command without ``--out-dir``."""
    if len(sources) > 1:
        raise click.UsageError(f"There are {len(sources)} inputs: give --out-dir DIR for their outputs.")
    return sources[0]


def one_pair(files: Sequence[Path], truth: Path | None) -> tuple[Path, Path | None]:
    """The tracks and the truth of a command without ``--out-dir``."""
    tracks, *others = [*files, *([] if truth is None else [truth])]
    if len(others) > 1:
        raise click.UsageError("Give TRACKS and one TRUTH; or --out-dir DIR, many TRACKS and --truth.")
    return tracks, others[0] if others else None


def run_several(job: Job, sources: Sequence[Path | str], how: Several) -> None:
    """Run a job on each input and report failures; after a failure the exit code is 3."""
    end_if_failed(done_to_each(job, sources, how))


def done_to_each(job: Job, sources: Sequence[Path | str], how: Several) -> list[Outcome]:
    """Run a job on each input and report failures with their reasons."""
    from ..work.many import run_many

    outputs = how.outputs
    assert outputs.out_dir is not None
    cluster = executor_on(how.cluster, how.workers, gpus=how.gpus) if how.cluster else nullcontext()
    with cluster as executor, progress_bar("Movies") as progress:
        found = run_many(
            job, [str(source) for source in sources], outputs.out_dir, suffix=how.suffix or outputs.suffix,
            executor=executor, jobs=outputs.jobs, overwrite=how.overwrite, progress=progress,
        )  # fmt: skip
    states = [outcome.state for outcome in found]
    if how.as_json:
        click.echo(json.dumps([asdict(outcome) for outcome in found]))
    counts = {state: states.count(state) for state in ("done", "kept", "failed")}
    line = f"{counts['done']} done, {counts['kept']} kept, {counts['failed']} failed"
    units = sorted({str(one.summary["units"]) for one in found if one.summary and "units" in one.summary})
    say(f"{'; '.join([line, *units])}: {outputs.out_dir}")
    for outcome in found:
        if outcome.state == "failed":
            click.echo(f"{outcome.source}: {outcome.why}", err=True)
    return found


def end_if_failed(found: Sequence[Outcome]) -> None:
    """End with exit code 3 if a movie failed."""
    if any(outcome.state == "failed" for outcome in found):
        raise click.exceptions.Exit(InputError.exit_code)
