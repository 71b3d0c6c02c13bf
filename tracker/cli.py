"""The commands `outbid track`, `score` and `convert`, and the group that all commands join."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from .terminal import Commands, Stopwatch, common_options, compilation_told, config_option, progress_bar, say

if TYPE_CHECKING:
    from .track import TrackingSettings

_LOG = logging.getLogger("outbid")
_FILE = click.Path(path_type=Path)
_NOTHING = "Nothing could be learned, and nothing was linked. Is there something to link? Set --max-distance."
_NOTHING_SO = (
    "Nothing was linked with {} as told. Tell --set other values, or leave out those that you do not know."
)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "OUTBID"},
    no_args_is_help=True,
    help="""Follow particles in 3D microscopy by exact assignment.

    \b
    Examples:
      outbid detect movie.tif -o spots.csv
      outbid track spots.csv -o tracks.csv
      outbid score tracks.csv truth.csv
      outbid convert tracks.csv tracks.parquet
      outbid track -h
    """,
    epilog="""\b
    Every option can also be set in the environment (OUTBID_TRACK_MAX_DISTANCE=5).
    Completion of commands and options with the tab key, for bash (or zsh, fish):
      eval "$(_OUTBID_COMPLETE=bash_source outbid)"
    """,
)
@click.version_option(package_name="outbid")
def main() -> None:
    """Run a command."""


class UnmatchedCost(click.ParamType):
    """``half`` or ``full``, of the cost at the gate, or a number."""

    name = "half|full|U"

    def convert(
        self, value: float | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | Literal["full"] | None:
        if value == "full":
            return "full"
        return None if value == "half" else float(click.FLOAT(value, param, ctx))


def _known(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> dict[str, float | tuple[float, ...]]:
    """NAME=VALUE and NAME=Z,Y,X as a mapping."""
    from .calibrate.known import known_of

    return known_of(given)


@click.command(
    no_args_is_help=True,
    help="""Link detections to tracks, proved optimal.

    \b
    Examples:
      outbid track spots.csv
      outbid track spots.csv -o tracks.csv --max-distance 5
      outbid track spots.csv -o tracks.parquet --max-distance 2 --spacing 0.8 0.2 0.2 --max-gap 2
      outbid track spots.csv --set noise=0.3,0.1,0.1 --set persistence=5
      outbid track other.csv -o other_tracks.csv --config tracks.csv.json

    INPUT is a table (.csv, .tsv, .parquet) with columns frame, z, y, x, or a file of TrackMate, ISBI or
    GEFF; the names that TrackMate, Imaris and trackpy use are understood. Track numbers are ignored.

    Without --max-distance all is learned from the detections: how particles move, how often they are
    missed, begin and end; it is told, and written to the run record. What you know better, --set: step,
    noise, gate, persistence, end, start, miss or clutter.
    """,
)
@click.argument("source", metavar="INPUT", type=_FILE)
@click.option(
    "-o", "--output", type=_FILE,
    help="Tracks: .csv, .tsv, .parquet, .xml (TrackMate), .isbi.xml or .geff.  [default: INPUT_tracks.csv]",
)  # fmt: skip
@click.option(
    "--max-distance", type=float, metavar="D",
    help="Gate: the farthest a particle moves from a frame to the next, in the unit of position x spacing.  "
    "[default: learned]",
)  # fmt: skip
@click.option(
    "--cost", type=click.Choice(["euclidean", "squared"]), default="euclidean", show_default=True,
    help="Cost of a link: its length, or its length squared.",
)  # fmt: skip
@click.option(
    "--unmatched-cost", type=UnmatchedCost(), default="half", show_default=True, metavar="half|full|U",
    help="Cost of leaving a detection unlinked, for each side: half or full of the gate's cost, or a number.",
)  # fmt: skip
@click.option(
    "--spacing", type=float, nargs=3, default=(1.0, 1.0, 1.0), show_default=True, metavar="Z Y X",
    help="Size of a voxel: positions are multiplied by it.",
)  # fmt: skip
@click.option(
    "--max-gap", type=int, metavar="N",
    help="Frames that a particle may be missing, those that were not recorded included.  "
    "[default: 0; learned if all is, and what was not recorded does not count]",
)  # fmt: skip
@click.option(
    "--divisions/--no-divisions", default=True, show_default=True,
    help="Join starts to mothers where the movie gives evidence of divisions, if all is learned.",
)  # fmt: skip
@click.option(
    "--merges/--no-merges", default=False, show_default=True,
    help="Join ends to what they fused with where the movie gives evidence of that, if all is learned.",
)  # fmt: skip
@click.option(
    "--set", "known", multiple=True, callback=_known, metavar="NAME=VALUE",
    help="Tell a value instead of learning it, NAME=VALUE or NAME=Z,Y,X; may be repeated.",
)  # fmt: skip
@click.option(
    "--forward-only", is_flag=True, help="Link by the past alone, as live data must, if all is learned."
)
@click.option(
    "--exact-margins", is_flag=True,
    help="Tell of each link how much worse the whole would be without it, instead of a lower bound of that.",
)  # fmt: skip
@click.option("--gap-distance", type=float, metavar="D", help="Gate over gaps.  [default: --max-distance]")
@click.option("--solver", default="bid_and_augment", show_default=True, help="Solver of the assignments.")
@click.option(
    "--device", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", show_default=True,
    help="auto takes a GPU from 3 million detections on.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N",
    help="Threads; they do not change the result.  [default: one a core]",
)  # fmt: skip
@click.option(
    "--stream", is_flag=True,
    help="Read, link and write some frames at a time, for movies larger than the memory: Parquet in and out.",
)  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on where an interrupted run with --stream stopped.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
@common_options
def track(
    source: Path,
    output: Path | None,
    max_distance: float | None,
    cost: str,
    unmatched_cost: float | Literal["full"] | None,
    spacing: tuple[float, float, float],
    max_gap: int | None,
    divisions: bool,
    merges: bool,
    known: dict[str, float | tuple[float, ...]],
    forward_only: bool,
    exact_margins: bool,
    gap_distance: float | None,
    solver: str,
    device: str,
    workers: int | None,
    stream: bool,
    resume: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Link detections to tracks."""
    from ._arrays import stages_timed
    from .batches import sentence
    from .track import TrackingSettings as Settings
    from .track import cost_at_gate

    clock = Stopwatch()
    settings = Settings(
        max_distance=max_distance, cost=cost,
        unmatched_cost=unmatched_cost if unmatched_cost != "full" else cost_at_gate(max_distance, cost),
        spacing=spacing, max_gap=max_gap, gap_distance=gap_distance, divisions=divisions, merges=merges,
        known=known, forward_only=forward_only, exact_margins=exact_margins, solver=solver, device=device,
    )  # fmt: skip
    output = output or source.with_name(f"{source.stem}_tracks.csv")
    with stages_timed() as (stages, beside):
        files = source, output, settings, workers, overwrite
        summary = _stream(*files, resume) if stream or resume else _in_memory(*files)
    told = {"output": str(output), **summary, "seconds": clock.seconds, "stages": stages, "beside": beside}
    if as_json:
        click.echo(json.dumps(told))
    _LOG.info("Seconds: %s; beside these, in other threads: %s", json.dumps(stages), json.dumps(beside))
    line = "{links} links, {tracks} tracks, worst gap {worst_gap:g}, {device}, {seconds:.2f} s: {output}"
    say(f"{line.format_map(told)}{sentence(told)}")


def _in_memory(
    source: Path, output: Path, settings: TrackingSettings, workers: int | None, overwrite: bool
) -> Mapping[str, object]:
    """Link a file as a whole; the summary."""
    from . import formats
    from ._arrays import begun, lap
    from .batches import TOLD
    from .track import track as run_track

    formats.check_output(output, overwrite=overwrite)
    detections = formats.read_detections(source)
    lap("read")
    hashed = begun(formats.input_of, source)
    _LOG.info("%d detections in %d frames, %s", len(detections), detections.frame_count, detections.unit)
    with compilation_told(), progress_bar("Linking") as progress:
        run = run_track(detections, settings, workers=workers, progress=progress)
    _LOG.info("%s", run.settings)
    origin = hashed.result()
    lap("hash")
    _tell_other_input(origin)
    learned = {} if run.learned is None else {"learned": run.learned.as_dict()}
    told = {name: run.stats[name] for name in TOLD if name in run.stats}
    record = _track_record(origin, run.settings) | told | learned
    formats.write_tracks(output, run.tracks, record=record, overwrite=overwrite)
    lap("write")
    if run.learned is not None:
        merges = f" Merges: {run.stats['merges']}." if settings.merges else ""
        nothing = _NOTHING_SO.format(", ".join(settings.known)) if settings.known else _NOTHING
        learnt = run.learned if run.stats["links"] else nothing
        say(f"{learnt}\nDivisions: {run.stats['divisions']}.{merges}")
    return {**run.stats, **learned}


def _stream(
    source: Path, output: Path, settings: TrackingSettings, workers: int | None, overwrite: bool, resume: bool
) -> Mapping[str, object]:
    """Link a file that may be larger than the memory; the summary."""
    from . import formats
    from ._arrays import begun, lap
    from .stream import settings_for, track_stream

    formats.check_input(source)
    hashed = begun(formats.input_of, source)
    used = settings_for(source, output, settings)
    origin = hashed.result()
    lap("hash")
    _tell_other_input(origin)
    with compilation_told(), progress_bar("Linking") as progress:
        return track_stream(
            source, output, used, record=_track_record(origin, used), overwrite=overwrite, resume=resume,
            workers=workers, progress=progress,
        )  # fmt: skip


def _track_record(origin: Mapping[str, str], used: TrackingSettings) -> dict[str, object]:
    """The run record of tracks."""
    return _record("track", origin) | {"settings": used.as_dict(), "seed": None, "device": used.device}


def _record(command: str, origin: Mapping[str, str]) -> dict[str, object]:
    """What every run record tells."""
    return {"command": command, "version": metadata.version("outbid"), "input": dict(origin)}


def _tell_other_input(origin: Mapping[str, str]) -> None:
    """Say if the settings come from the record of a run on another input."""
    record = click.get_current_context().meta.get("outbid.record", {})
    before = record.get("input", {})
    if before and before.get("sha256") != origin["sha256"]:
        say(f"Settings of a run on another input ({before.get('name')}) are used for {origin['name']}.")


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
@click.argument("tracks", type=_FILE)
@click.argument("truth", type=_FILE)
@click.option(
    "--gate", type=float, default=5.0, show_default=True, metavar="D",
    help="Detections this far apart or farther are never the same, in the unit of the positions.",
)  # fmt: skip
@click.option(
    "--fail-under", multiple=True, metavar="NAME=VALUE", callback=_limits,
    help="Exit with 1 if a score is lower; may be given several times.",
)  # fmt: skip
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print scores and provenance as JSON.")
@common_options
def score(tracks: Path, truth: Path, gate: float, fail_under: dict[str, float], as_json: bool) -> None:
    """Score tracks against the truth."""
    from . import formats
    from .score import score as run_score

    with compilation_told():
        scores = run_score(formats.read_tracks(tracks), formats.read_tracks(truth), gate=gate)
    unknown = [name for name in fail_under if name not in scores.values]
    if unknown:
        raise click.BadParameter(f"there is no score {unknown[0]!r}. Known are: {', '.join(scores.values)}.")
    if as_json:
        # JSON has no NaN: a score that is 0 / 0 becomes null.
        values = {name: None if math.isnan(value) else value for name, value in scores.values.items()}
        inputs = {"tracks": formats.input_of(tracks), "truth": formats.input_of(truth)}
        click.echo(json.dumps({"values": values, "provenance": {**scores.provenance, "inputs": inputs}}))
    else:
        click.echo(str(scores))
        if scores.remark:
            say(scores.remark)
    low = [name for name, limit in fail_under.items() if not scores.values[name] >= limit]
    for name in low:
        click.echo(f"{name} is {scores.values[name]:.6g}, under {fail_under[name]:.6g}.", err=True)
    if low:
        raise click.exceptions.Exit(1)


@click.command(
    no_args_is_help=True,
    help="""Convert tracks or detections between formats.

    \b
    Examples:
      outbid convert tracks.csv tracks.parquet
      outbid convert spots_from_imaris.csv spots.csv
      outbid convert tracks.csv tracks.xml

    The suffix of OUTPUT says the format: .csv, .tsv, .parquet, .xml (TrackMate), .isbi.xml or .geff. Tracks
    are numbered anew, 0, 1, 2, … by their first detections. A run record goes along.
    """,
)
@click.argument("source", metavar="INPUT", type=_FILE)
@click.argument("output", type=_FILE)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@common_options
def convert(source: Path, output: Path, overwrite: bool) -> None:
    """Convert between formats."""
    from . import formats
    from .errors import InputError

    formats.check_output(output, overwrite=overwrite)
    try:
        record = formats.read_record(source)
    except InputError:
        record = _record("convert", formats.input_of(source))
    if formats.holds_tracks(source):
        tracks = formats.read_tracks(source)
        formats.write_tracks(output, tracks, record=record, overwrite=overwrite)
        say(f"{len(tracks.detections)} detections, {tracks.track_count} tracks: {output}")
    else:
        detections = formats.read_detections(source)
        formats.write_detections(output, detections, record=record, overwrite=overwrite)
        say(f"{len(detections)} detections: {output}")
