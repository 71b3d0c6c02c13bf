"""The command `outbid score`: compare tracks with true tracks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .clusters import DaskCluster, cluster_options, executor_on
from .config import config_option
from .options import GroupedCommand
from .piped import InputFile
from .several import Outputs, Several, done_to_each, end_if_failed, one_pair, out_dir_options
from .terminal import columns_option, common_options, compilation_reported, say

if TYPE_CHECKING:
    from ..scoring import Scores
    from ..work.score_job import ScoreJob


def _limits(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """NAME=VALUE pairs as a mapping."""
    pairs = [limit.partition("=") for limit in given]
    try:
        return {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        raise click.BadParameter("it must be NAME=NUMBER, for example link_f1=0.99.") from None


@click.command(
    cls=GroupedCommand,
    no_args_is_help=True,
    help="""Score TRACKS against TRUTH.

    \b
    Examples:
      outbid score tracks.csv truth.csv
      outbid score tracks.csv truth.csv --gate 2 --json
      outbid score tracks.csv truth.csv --fail-under link_f1=0.99 --fail-under idf1=0.9
      outbid score tracks/*.csv --truth truth/ --out-dir scores/ --jobs 4

    Both are tables with columns track_id, frame, z, y, x, or tracks in any format that is read. Detections
    of the truth that are not those of TRACKS are paired with them by distance, up to the gate. With
    --out-dir there is a JSON file for each of many TRACKS.
    """,
)
@click.argument("files", metavar="TRACKS... [TRUTH]", nargs=-1, required=True, type=InputFile())
@click.option(
    "--truth", type=click.Path(path_type=Path), metavar="PATH",
    help="Truth of all TRACKS, or a folder with one of the same name for each.",
)  # fmt: skip
@click.option(
    "--gate", type=float, metavar="D",
    help="Largest distance at which detections are paired, in the unit of the positions.  "
    "[default: half of the median nearest-neighbour distance in the truth]",
)  # fmt: skip
@click.option(
    "--link-rule", type=click.Choice(("particle", "edge")), default="particle", show_default=True,
    help="Which links are right: of one particle, also over frames in which TRACKS lack it; or as challenges "
    "count, only links that TRUTH has.",
)  # fmt: skip
@click.option(
    "--fail-under", multiple=True, metavar="NAME=VALUE", callback=_limits,
    help="Exit with code 1 if a score is lower; may be repeated.",
)  # fmt: skip
@columns_option("--columns", "TRACKS")
@columns_option("--truth-columns", "TRUTH")
@out_dir_options
@cluster_options
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Of --cluster.  [default: 2]"
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace outputs in DIR.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print scores and provenance as JSON.")
@common_options
def score(
    files: tuple[Path, ...],
    truth: Path | None,
    gate: float | None,
    link_rule: str,
    fail_under: dict[str, float],
    columns: dict[str, str],
    truth_columns: dict[str, str],
    several: Outputs,
    cluster: DaskCluster,
    workers: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Score tracks against the truth."""
    from .. import formats
    from ..work.score_job import ScoreJob, Truth, too_low, values_in_json

    tracks = files[0]
    if not several:
        tracks, truth = one_pair(files, truth)
    if truth is None:
        raise click.UsageError("Missing argument 'TRUTH': what the tracks are scored against.")
    job = ScoreJob(Truth(str(truth.absolute()), truth_columns), gate, columns, link_rule)
    if several:
        _many(job, files, Several(several, ".json", overwrite, as_json, cluster, workers), fail_under)
        return
    with compilation_reported():
        scores = _scores(job, str(tracks.absolute()), cluster, workers)
    _refuse_unknown(fail_under, scores.values)
    if as_json:
        sides = {"tracks": (tracks, columns), "truth": (truth, truth_columns)}
        inputs = {name: formats.input_of(*side) for name, side in sides.items()}
        provenance = {**scores.provenance, "inputs": inputs}
        click.echo(json.dumps({"values": values_in_json(scores), "provenance": provenance}))
    else:
        click.echo(str(scores))
    if gate is None:
        say(str(scores.gate))
    remark = scores.provenance.get("unmatched_because") if as_json else scores.remark
    if remark:
        say(remark)
    _end_if_low(too_low(scores.values, fail_under))


def _scores(job: ScoreJob, tracks: str, cluster: DaskCluster, workers: int | None) -> Scores:
    """Scores of one pair, computed here or by a worker of a cluster."""
    if not cluster:
        return job.scores(tracks)
    with executor_on(cluster, workers) as executor:
        return executor.submit(job.scores, tracks).result()


def _many(job: ScoreJob, files: Sequence[Path], how: Several, fail_under: dict[str, float]) -> None:
    """Score many files, and compare each score that is defined with its limit."""
    from .. import formats
    from ..work.score_job import too_low

    found = done_to_each(job, files, how)
    low = []
    for outcome in found:
        if outcome.state != "failed":
            values = formats.read_record(outcome.output)["values"]
            _refuse_unknown(fail_under, values)
            low += [f"{outcome.source}: {said}" for said in too_low(values, fail_under)]
    end_if_failed(found)
    _end_if_low(low)


def _refuse_unknown(limits: dict[str, float], values: Iterable[str]) -> None:
    unknown = [name for name in limits if name not in values]
    if unknown:
        raise click.BadParameter(f"there is no score {unknown[0]!r}. Known are: {', '.join(values)}.")


def _end_if_low(said: Sequence[str]) -> None:
    for line in said:
        click.echo(line, err=True)
    if said:
        raise click.exceptions.Exit(1)
