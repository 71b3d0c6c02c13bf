"""Options of commands for many movies, and the report of failures at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ..errors import InputError
from .clusters import executor_on
from .terminal import progress_bar, say

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ..movies.jobs import Job
    from ..movies.many import Outcome

_Function = TypeVar("_Function", bound=Callable[..., object])


@dataclass(frozen=True)
class Several:
    """Options by which a command processes several movies.

    Parameters
    ----------
    out_dir : Path
    suffix : str
        Format of the outputs.
    jobs : int
        Processes of this machine.
    overwrite, as_json : bool
    cluster, scheduler : str or None
        Cluster that is used instead of these processes.
    workers : int or None
        Of a cluster that is started; each works on a movie.
    gpus : bool
        Whether each of them gets a GPU of its own.
    """

    out_dir: Path
    suffix: str
    jobs: int = 1
    overwrite: bool = False
    as_json: bool = False
    cluster: str | None = None
    scheduler: str | None = None
    workers: int | None = None
    gpus: bool = False


def several_options(function: _Function) -> _Function:
    """Add ``--out-dir``, ``--jobs`` and ``--suffix``."""
    suffix = click.option(
        "--suffix", default=".csv", show_default=True, metavar="SUFFIX",
        help="Format of the outputs in DIR.",
    )  # fmt: skip
    return out_dir_options(suffix(function))


def out_dir_options(function: _Function) -> _Function:
    """Decorator that adds the options ``--out-dir`` and ``--jobs`` to a command."""
    for option in (
        click.option(
            "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
            help="Movies processed at the same time, each in its own process.",
        ),
        click.option(
            "--out-dir", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
            help="Folder for the outputs of many inputs, one each. An output of the same input, settings and "
            "version is kept; if a movie fails, the others continue.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


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
    from ..movies.many import run_many

    with _executor(how) as executor, progress_bar("Movies") as progress:
        found = run_many(
            job, [str(source) for source in sources], how.out_dir, suffix=how.suffix, executor=executor,
            jobs=how.jobs, overwrite=how.overwrite, progress=progress,
        )  # fmt: skip
    states = [outcome.state for outcome in found]
    if how.as_json:
        click.echo(json.dumps([asdict(outcome) for outcome in found]))
    counts = {state: states.count(state) for state in ("done", "kept", "failed")}
    line = "{done} done, {kept} kept, {failed} failed: {out_dir}"
    say(line.format_map({**counts, "out_dir": how.out_dir}))
    for outcome in found:
        if outcome.state == "failed":
            click.echo(f"{outcome.source}: {outcome.why}", err=True)
    return found


def end_if_failed(found: Sequence[Outcome]) -> None:
    """End with exit code 3 if a movie failed."""
    if any(outcome.state == "failed" for outcome in found):
        raise click.exceptions.Exit(InputError.exit_code)


@contextmanager
def _executor(how: Several) -> Iterator[Executor | None]:
    if how.cluster is None and how.scheduler is None:
        yield None
        return
    with executor_on(how.cluster, how.scheduler, how.workers, gpus=how.gpus) as executor:
        yield executor
