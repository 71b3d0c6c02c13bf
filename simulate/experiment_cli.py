"""The command `outbid experiment`: measure tracking accuracy on simulated movies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from outbid.cli.config import config_option
from outbid.cli.options import GroupedCommand, options_of
from outbid.cli.terminal import Stopwatch, common_options, compilation_reported, progress_bar, say

from .settings import ExperimentSettings

if TYPE_CHECKING:
    from .experiment import Panel


class _Listed(GroupedCommand):
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


def _sizes(_ctx: click.Context, _param: click.Parameter, given: str | None) -> tuple[int, ...]:
    """Numbers with commas between them."""
    try:
        return tuple(int(one) for one in given.split(",")) if given else ()
    except ValueError:
        raise click.BadParameter("it must be numbers with commas between them, such as 500,1000.") from None


def _drawn(path: Path, panels: list[Panel]) -> str:
    """Draw the picture; returns a message about it."""
    try:
        from outbid.viewers.panels import picture
    except ModuleNotFoundError as error:
        return f"No picture: {error.name} is not installed (pip install 'outbid[report]')."
    from outbid.formats.files.outputs import write_whole

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
@options_of(ExperimentSettings, "settings", special={
    "where": {"multiple": True, "callback": _pairs, "default": None, "show_default": False},
    "tables": {"multiple": True, "type": click.Path(path_type=Path), "default": None, "show_default": False},
    "sizes": {"callback": _sizes, "type": str, "default": None, "show_default": False},
})  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the files of an earlier run.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print summary and findings as JSON.")
@common_options
def experiment(name: str, output: Path, settings: ExperimentSettings, overwrite: bool, as_json: bool) -> None:
    """Measure how accurate tracking is on simulated movies."""
    from .conduct import conduct, plan
    from .rows import as_text, json_of

    clock = Stopwatch()
    planned = plan(name, output, settings, overwrite=overwrite)
    for sentence in planned.left_out:
        say(sentence)
    with compilation_reported(), progress_bar("Experiment") as progress:
        found = conduct(planned, progress=progress)
    what = planned.study.concluded
    if as_json:
        click.echo(json_of({"summary": found.summary, what: found.conclusions}))
    else:
        shown = (
            [found.summary, found.conclusions] if what == "claims" else [found.conclusions or found.summary]
        )
        click.echo("\n\n".join(map(as_text, shown)))
    say(_drawn(planned.path(".png"), planned.study.panels(found.summary, planned.size)))
    say(f"{len(found.rows)} rows, {clock.seconds:.1f} s: {planned.path('.csv')}")
