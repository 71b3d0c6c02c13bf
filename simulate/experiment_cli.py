"""The command `outbid experiment`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from outbid.cli.terminal import (
    Stopwatch,
    common_options,
    compilation_reported,
    config_option,
    progress_bar,
    say,
)

if TYPE_CHECKING:
    from .experiment import Panel


class _Listed(click.Command):
    """A command whose help ends with a list of the experiments."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from .experiments import described

        super().format_epilog(ctx, formatter)
        formatter.write(f"\nExperiments:\n\n{described()}\n")


def _list(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from .experiments import described

        click.echo(described())
        ctx.exit()


def _pairs(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE pairs as a mapping."""
    split = [one.partition("=") for one in given]
    if not all(name and sign and value for name, sign, value in split):
        raise click.BadParameter("it must be NAME=VALUE, for example kappa=0.3 or linker=outbid,laptrack.")
    return {name.strip(): value.strip() for name, _, value in split}


def _drawn(path: Path, panels: list[Panel]) -> str:
    """Draw the picture; returns a message about it."""
    try:
        from outbid.viewers.panels import picture
    except ModuleNotFoundError as error:
        return f"No picture: {error.name} is not installed (pip install 'outbid[report]')."
    from outbid.formats.atomic import write_whole

    write_whole(path, lambda file: file.write(picture(panels)), overwrite=True)
    return f"Picture: {path}"


@click.command(
    cls=_Listed,
    no_args_is_help=True,
    help="""Measure how accurate tracking is on simulated movies: NAME is one of the experiments below.

    \b
    Examples:
      outbid experiment --list
      outbid experiment kappa --quick
      outbid experiment rivals --where kappa=0.3 --where persistence=0,10 --seeds 3 --jobs 2
      outbid experiment rivals --with experiments/rivals.csv -o more

    Writes NAME.csv (one row for each seed), its record NAME.csv.json, NAME_summary.csv (means with bootstrap
    intervals), NAME.png and, for some experiments, NAME_findings.csv (Outbid against the best of the others).
    Findings, or else the summary, are printed. An interrupted run keeps its rows; --with continues from them.
    """,
)
@click.argument("name")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the experiments."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default="experiments", show_default=True,
    metavar="FOLDER", help="Folder of the files.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer cells and smaller movies: takes seconds to minutes.")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="Movies of each scene.")
@click.option("--frames", type=click.IntRange(min=3), metavar="N", help="Frames of each movie.")
@click.option("--particles", type=click.IntRange(min=20), metavar="N", help="Particles in the first frame.")
@click.option(
    "--where", multiple=True, metavar="NAME=VALUE", callback=_pairs,
    help="Only trials with this value of kappa, persistence, miss, …, linker or given (what the linker is "
    "given: nothing, the truth); several values with commas; may be repeated.",
)  # fmt: skip
@click.option(
    "--with", "tables", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
    help="Table of an earlier run: its rows are used and not measured again; may be repeated.",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="Processes that run trials side by side; they do not change the result.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the files of an earlier run.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print summary and findings as JSON.")
@common_options
def experiment(
    name: str,
    output: Path,
    quick: bool,
    seeds: int | None,
    frames: int | None,
    particles: int | None,
    where: dict[str, str],
    tables: tuple[Path, ...],
    jobs: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Measure how accurate tracking is on simulated movies."""
    from .conduct import PICTURE, as_text, conduct, json_of, plan

    clock = Stopwatch()
    planned = plan(
        name, output, quick=quick, seeds=seeds, frames=frames, particles=particles, where=where,
        tables=tables, overwrite=overwrite,
    )  # fmt: skip
    for sentence in planned.left_out:
        say(sentence)
    with compilation_reported(), progress_bar("Experiment") as progress:
        found = conduct(planned, jobs=jobs, progress=progress)
    if as_json:
        click.echo(json_of(found))
    else:
        click.echo(as_text(found.findings or found.summary))
    say(_drawn(planned.path(PICTURE), planned.experiment.panels(found.summary, planned.size)))
    say(f"{len(found.rows)} rows, {clock.seconds:.1f} s: {planned.path('.csv')}")
