"""The command `outbid advise`: predict from detections how well they can be linked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from outbid.cli.options import GroupedCommand, options_of
from outbid.cli.piped import InputFile
from outbid.cli.several import Outputs, Several, only_one, out_dir_options, run_several
from outbid.cli.terminal import columns_option, common_options, compilation_reported
from outbid.cli.values import TRACKING
from outbid.settings.tracking import TrackingSettings


@click.command(
    cls=GroupedCommand,
    no_args_is_help=True,
    help="""Preview the effect of a linking distance, before linking.

    \b
    Examples:
      outbid advise spots.csv
      outbid advise spots.csv --spacing 0.8 0.2 0.2 --max-distance 2 --max-distance 3
      outbid advise spots.csv --json
      outbid advise spots/*.csv --out-dir advice/

    INPUT is a table of detections. For several linking distances (gates) the table shows how many
    candidates each particle has, how large the largest connected group of particles is, and the expected
    shares of wrong and missing links. These shares are counted on frames of INPUT whose particles are moved
    by random steps. The last lines recommend what to change in the recording, and say how much each of
    --features says about links, learned from the first frames. With --out-dir there is a JSON file for each
    input.
    """,
)
@click.argument("sources", metavar="INPUT...", nargs=-1, required=True, type=InputFile())
@options_of(TrackingSettings, "values", make=dict, only=("spacing", "features"), special=TRACKING)
@click.option(
    "--max-distance", "max_distances", type=click.FloatRange(0, min_open=True), multiple=True, metavar="D",
    help="A gate to preview; may be repeated.  [default: several around the recommended one]",
)  # fmt: skip
@columns_option("--columns", "INPUT")
@out_dir_options
@click.option("--overwrite", is_flag=True, help="Replace outputs in DIR.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON on stdout.")
@common_options
def advise(
    sources: tuple[Path, ...],
    values: dict[str, Any],
    max_distances: tuple[float, ...],
    columns: dict[str, str],
    several: Outputs,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Preview the effect of a linking distance."""
    from .advise_job import AdviseJob

    spacing, column = values["spacing"], values["features"] or None
    TrackingSettings(spacing=spacing, features=column)  # refuses what makes no sense
    job = AdviseJob(spacing, max_distances, columns, column)
    if several:
        run_several(job, sources, Several(several, ".json", overwrite, as_json))
        return
    source = str(only_one(sources))
    with compilation_reported():
        advice = job.advice(source)
    click.echo(json.dumps(advice.as_dict()) if as_json else str(advice))
