"""The command `outbid experiment`: measure tracking accuracy on simulated movies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from outbid.cli.config import config_option
from outbid.cli.terminal import (
    Stopwatch,
    common_options,
    compilation_reported,
    progress_bar,
    say,
)

if TYPE_CHECKING:
    from .experiment import Panel


class _Listed(click.Command):
    """A command whose help ends with a list of the experiments."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        formatter.write(f"\nExperiments:\n\n{_listed()}\n")


def _listed() -> str:
    """List of all experiments as text, with those that repeat tables of papers in a second part."""
    from .experiments import described
    from .experiments.papers import described as of_papers

    return f"{described()}\n\nTables and figures of papers:\n\n{of_papers()}"


def _list(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(_listed())
        ctx.exit()


def _pairs(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE pairs as a mapping."""
    split = [one.partition("=") for one in given]
    if not all(name and sign and value for name, sign, value in split):
        raise click.BadParameter("it must be NAME=VALUE, for example kappa=0.3 or linker=outbid,laptrack.")
    return {name.strip(): value.strip() for name, _, value in split}


def _sizes(_ctx: click.Context, _param: click.Parameter, given: str | None) -> tuple[int, ...] | None:
    """Numbers with commas between them."""
    try:
        return None if given is None else tuple(int(one) for one in given.split(","))
    except ValueError:
        raise click.BadParameter("it must be numbers with commas between them, such as 500,1000.") from None


def _drawn(path: Path, panels: list[Panel]) -> str:
    """Draw the picture; returns a message about it."""
    try:
        from outbid.viewers.panels import picture
    except ModuleNotFoundError as error:
        return f"No picture: {error.name} is not installed (pip install 'outbid[report]')."
    from outbid.formats.outputs import write_whole

    write_whole(path, lambda file: file.write(picture(panels)), overwrite=True)
    return f"Picture: {path}"


class _Wanted(NamedTuple):
    """Options of the command for an experiment that repeats a table of a paper."""

    device: str
    quick: bool
    sizes: tuple[int, ...] | None
    instances: int | None


def _refuse_for_papers(options: list[str]) -> None:
    if options:
        raise click.UsageError(f"{options[0]} is for movies; a paper's table takes --sizes and --seeds.")


def _paper(name: str, output: Path, wanted: _Wanted, overwrite: bool, as_json: bool) -> None:
    """Measure a table or a figure of a paper."""
    from .conduct import as_text
    from .experiments.papers import paper_named
    from .paper import check_outputs, conduct_paper

    clock, paper = Stopwatch(), paper_named(name)
    problems = paper.problems(wanted.device, quick=wanted.quick)
    problems = replace(
        problems, sizes=wanted.sizes or problems.sizes, instances=wanted.instances or problems.instances
    )
    check_outputs(name, output, overwrite=overwrite)
    with compilation_reported():
        found = conduct_paper(name, paper, problems, output)
    if as_json:
        click.echo(json.dumps({"summary": found.summary, "claims": found.claims}))
    else:
        click.echo(as_text(found.summary))
        click.echo("")
        click.echo(as_text(found.claims))
    say(_drawn(output / f"{name}.png", paper.panels(found.summary)))
    table = output / f"{name}.csv"
    say(f"{len(found.rows)} rows, {clock.seconds:.1f} s: {table}")


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
      outbid experiment date-nagi-table1 --sizes 500,1000

    Writes NAME.csv (one row for each seed), its record NAME.csv.json, NAME_summary.csv (means with bootstrap
    intervals), NAME.png and, for some experiments, NAME_findings.csv (Outbid against the best of the others).
    Findings, or else the summary, are printed. A paper's table has NAME_claims.csv: its claims, and whether
    they hold here. An interrupted run keeps its rows; --with continues from them.
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
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="Movies of each scene, or instances.")
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
    help="Processes that run trials in parallel; they do not change the result.",
)  # fmt: skip
@click.option(
    "--device", type=click.Choice(["cpu", "gpu"]), default="cpu", show_default=True,
    help="For tables of papers: CPU with sizes for minutes, or GPU with the paper's sizes.",
)  # fmt: skip
@click.option(
    "--sizes", callback=_sizes, metavar="N,N,…", help="For tables of papers: sizes n of the problems."
)
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
    device: str,
    sizes: tuple[int, ...] | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Measure how accurate tracking is on simulated movies."""
    from .conduct import PICTURE, as_text, conduct, json_of
    from .experiments.papers import PAPERS
    from .plans import plan

    if name in PAPERS:
        movies = {"--frames": frames, "--particles": particles, "--where": where, "--with": tables}
        _refuse_for_papers([option for option, given in movies.items() if given])
        _paper(name, output, _Wanted(device, quick, sizes, seeds), overwrite, as_json)
        return
    if device != "cpu" or sizes is not None:
        raise click.UsageError(f"--device and --sizes are for tables of papers; {name} has movies.")
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
