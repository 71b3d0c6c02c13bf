"""Commands on many movies: their options, and what is said of each at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ..errors import InputError
from .terminal import progress_bar, say

if TYPE_CHECKING:
    from ..movies.jobs import Job

_Function = TypeVar("_Function", bound=Callable[..., object])


def several_options(function: _Function) -> _Function:
    """Add ``--out-dir``, ``--jobs`` and ``--suffix``."""
    for option in (
        click.option(
            "--suffix", default=".csv", show_default=True, metavar="SUFFIX",
            help="Format of the outputs in DIR.",
        ),
        click.option(
            "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
            help="Movies at the same time, each in a process of its own.",
        ),
        click.option(
            "--out-dir", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
            help="Many inputs: a folder for an output each. What is there of the same input, settings and "
            "version is kept; a movie that fails does not end the others.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def only_one(sources: Sequence[Path | str]) -> Path | str:
    """The one input of a command without ``--out-dir``."""
    if len(sources) > 1:
        raise click.UsageError(f"There are {len(sources)} inputs: give --out-dir DIR for their outputs.")
    return sources[0]


def run_several(
    job: Job,
    sources: Sequence[Path | str],
    out_dir: Path,
    *,
    suffix: str,
    jobs: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Do a job to each input, and say at the end what failed and why; then the exit code is 3."""
    from ..movies.many import run_many

    with progress_bar("Movies") as progress:
        found = run_many(
            job, [str(source) for source in sources], out_dir, suffix=suffix, jobs=jobs, overwrite=overwrite,
            progress=progress,
        )  # fmt: skip
    states = [outcome.state for outcome in found]
    if as_json:
        click.echo(json.dumps([asdict(outcome) for outcome in found]))
    counts = {state: states.count(state) for state in ("done", "kept", "failed")}
    line = "{done} done, {kept} kept, {failed} failed: {out_dir}"
    say(line.format_map({**counts, "out_dir": out_dir}))
    for outcome in found:
        if outcome.state == "failed":
            click.echo(f"{outcome.source}: {outcome.why}", err=True)
    if counts["failed"]:
        raise click.exceptions.Exit(InputError.exit_code)
