"""The command `outbid score`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click

from .piped import InputFile
from .terminal import columns_option, common_options, compilation_reported, config_option, say


def _limits(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """NAME=VALUE pairs as a mapping."""
    pairs = [limit.partition("=") for limit in given]
    try:
        return {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        raise click.BadParameter("it must be NAME=NUMBER, for example link_f1=0.99.") from None


@click.command(
    no_args_is_help=True,
    help="""Score TRACKS against TRUTH.

    \b
    Examples:
      outbid score tracks.csv truth.csv
      outbid score tracks.csv truth.csv --gate 2 --json
      outbid score tracks.csv truth.csv --fail-under link_f1=0.99 --fail-under idf1=0.9

    Both are tables with columns track_id, frame, z, y, x, or tracks in any format that is read. Detections
    of the truth that are not those of TRACKS are paired with them by distance, up to the gate.
    """,
)
@click.argument("tracks", type=InputFile())
@click.argument("truth", type=InputFile())
@click.option(
    "--gate", type=float, metavar="D",
    help="Largest distance at which detections are paired, in the unit of the positions.  "
    "[default: half of the median nearest-neighbour distance in the truth]",
)  # fmt: skip
@click.option(
    "--fail-under", multiple=True, metavar="NAME=VALUE", callback=_limits,
    help="Exit with code 1 if a score is lower; may be repeated.",
)  # fmt: skip
@columns_option("--columns", "TRACKS")
@columns_option("--truth-columns", "TRUTH")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print scores and provenance as JSON.")
@common_options
def score(
    tracks: Path,
    truth: Path,
    gate: float | None,
    fail_under: dict[str, float],
    columns: dict[str, str],
    truth_columns: dict[str, str],
    as_json: bool,
) -> None:
    """Score tracks against the truth."""
    from .. import formats
    from ..scoring import score as run_score

    with compilation_reported():
        found = formats.read_tracks(tracks, columns=columns)
        known = formats.read_tracks(truth, columns=truth_columns)
        scores = run_score(found, known, gate=gate)
    unknown = [name for name in fail_under if name not in scores.values]
    if unknown:
        raise click.BadParameter(f"there is no score {unknown[0]!r}. Known are: {', '.join(scores.values)}.")
    if as_json:
        # JSON has no NaN: a score that is 0 / 0 becomes null.
        values = {name: None if math.isnan(value) else value for name, value in scores.values.items()}
        inputs = {
            "tracks": formats.input_of(tracks, columns),
            "truth": formats.input_of(truth, truth_columns),
        }
        click.echo(json.dumps({"values": values, "provenance": {**scores.provenance, "inputs": inputs}}))
    else:
        click.echo(str(scores))
    if gate is None:
        say(str(scores.gate))
    remark = scores.provenance.get("unmatched_because") if as_json else scores.remark
    if remark:
        say(remark)
    low = [name for name, limit in fail_under.items() if not scores.values[name] >= limit]
    for name in low:
        click.echo(f"{name} is {scores.values[name]:.6g}, under {fail_under[name]:.6g}.", err=True)
    if low:
        raise click.exceptions.Exit(1)
