"""The command `outbid track`: link detections to tracks."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from .clusters import cluster_options, on_a_cluster
from .config import config_option
from .marks import column_of, marks_options
from .parts import box_option, part_options
from .piped import InputFile, OutputFile, default_output, refuse_json_beside_data, shown
from .several import Several, only_one, run_several, several_options
from .terminal import Stopwatch, columns_option, common_options, compilation_reported, progress_bar, say
from .values import PinTable, UnmatchedCost, known_values

if TYPE_CHECKING:
    from ..movies.jobs import TrackJob
    from ..pins import Pin
    from ..tracking import TrackingRun, TrackingSettings

_LOG = logging.getLogger("outbid")
_NOTHING = "Nothing could be learned, and nothing was linked. Is there something to link? Set --max-distance."
_NOTHING_SO = "Nothing was linked with {} as given. Give other values by --set, or leave out unknown ones."


@click.command(
    no_args_is_help=True,
    help="""Link detections to tracks by optimal assignment.

    \b
    Examples:
      outbid track spots.csv
      outbid track spots.csv -o tracks.csv --max-distance 5
      outbid track spots.csv -o tracks.parquet --max-distance 2 --spacing 0.8 0.2 0.2 --max-gap 2
      outbid track spots.csv --set noise=0.3,0.1,0.1 --set persistence=5
      outbid track cells.csv --column area --column theta:angle=180 --column type:label
      outbid track other.csv -o other_tracks.csv --config tracks.csv.json
      outbid track spots/*.csv --out-dir tracks/ --jobs 4 --model model.json
      outbid track huge.csv --dry-run
      outbid simulate -o - | outbid track - -o - | outbid filter - -o long.csv --min-length 10

    INPUT is a table (.csv, .tsv, .parquet, .xlsx) with columns frame, z, y, x, or a file of TrackMate, ISBI
    or GEFF; - is stdin. Column names of TrackMate, Imaris and trackpy are recognised; for other names use
    --columns. Track numbers in INPUT are ignored.

    Without --max-distance the model is learned from the detections: how particles move, how often they are
    missed, appear and disappear, and what columns say. It is printed and written to the run record. Use --set
    to fix values that you know: step, noise, gate, persistence, end, start, miss or clutter.
    """,
)
@click.argument("sources", metavar="INPUT...", nargs=-1, required=True, type=InputFile())
@click.option(
    "-o", "--output", type=OutputFile(),
    help="Tracks: .csv, .tsv, .parquet, .xml (TrackMate), .isbi.xml or .geff; - is stdout.  "
    "[default: INPUT_tracks.csv]",
)  # fmt: skip
@click.option(
    "--max-distance", type=float, metavar="D",
    help="Gate: the largest distance a particle moves between frames, in the unit of position x spacing.  "
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
@box_option
@click.option(
    "--max-gap", type=int, metavar="N",
    help="Largest number of consecutive frames in which a particle may be undetected.  "
    "[default: 0; learned without --max-distance, and frames that were not recorded do not count]",
)  # fmt: skip
@click.option(
    "--divisions/--no-divisions", default=True, show_default=True,
    help="Detect divisions where the movie gives evidence of them; only without --max-distance.",
)  # fmt: skip
@click.option(
    "--merges/--no-merges", default=False, show_default=True,
    help="Detect merges where the movie gives evidence of them; only without --max-distance.",
)  # fmt: skip
@click.option(
    "--set", "known", multiple=True, callback=known_values, metavar="NAME=VALUE",
    help="Set a value instead of learning it, NAME=VALUE or NAME=Z,Y,X; may be repeated.",
)  # fmt: skip
@click.option(
    "--model", type=click.Path(path_type=Path), metavar="FILE",
    help="Take all values from a model (outbid learn) instead of learning them; --set goes before it.",
)  # fmt: skip
@marks_options
@click.option(
    "--pins", type=PinTable(), default=(), metavar="FILE",
    help="Table of pins: links, ends and others that a person states, which hold exactly.",
)  # fmt: skip
@click.option("--min-length", type=click.IntRange(1), metavar="N", help="Leave out tracks shorter than N.")
@click.option(
    "--exact-margins", is_flag=True,
    help="Compute the exact margin of every link (cost increase without it) instead of a lower bound.",
)  # fmt: skip
@click.option("--gap-distance", type=float, metavar="D", help="Gate over gaps.  [default: --max-distance]")
@click.option(
    "--solver", default="bid_and_augment", show_default=True, metavar="NAME[:VARIANT][(SETTING=VALUE,…)]",
    help="Solver of the assignments: one of outbid assign --list.",
)  # fmt: skip
@click.option(
    "--device", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", show_default=True,
    help="auto uses a GPU for 3 million detections or more.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N",
    help="Threads; they do not change the result.  [default: one per core]",
)  # fmt: skip
@click.option(
    "--stream", is_flag=True,
    help="Process some frames at a time, for movies larger than the memory; Parquet in and out.",
)  # fmt: skip
@click.option(
    "--memory", type=click.FloatRange(min=0, min_open=True), metavar="GB",
    help="With --stream: how much memory to take, about; larger pieces are quicker.  [default: 4]",
)  # fmt: skip
@part_options("the unit of the positions")
@columns_option("--columns", "INPUT")
@click.option(
    "--dry-run", is_flag=True, help="Write nothing; print what would be done, with estimated time and memory."
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run with --stream or on a cluster.")
@several_options
@cluster_options
@click.option(
    "--parts", is_flag=True,
    help="With a cluster: leave the output in parts, a folder that all commands read as one file.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
@common_options
def track(
    sources: tuple[Path, ...],
    output: Path | None,
    max_distance: float | None,
    cost: str,
    unmatched_cost: float | Literal["full"] | None,
    spacing: tuple[float, float, float],
    periodic: tuple[float, float, float] | None,
    max_gap: int | None,
    divisions: bool,
    merges: bool,
    known: dict[str, float | tuple[float, ...]],
    model: Path | None,
    column: dict[str, str],
    no_columns: bool,
    pins: tuple[Pin, ...],
    min_length: int | None,
    exact_margins: bool,
    gap_distance: float | None,
    solver: str,
    device: str,
    workers: int | None,
    stream: bool,
    memory: float | None,
    region: str | None,
    frames: str | None,
    mask: str | None,
    columns: dict[str, str],
    dry_run: bool,
    resume: bool,
    out_dir: Path | None,
    jobs: int,
    suffix: str,
    cluster: str | None,
    scheduler: str | None,
    parts: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Link detections to tracks."""
    from .. import formats
    from .._cuda import driver_starting
    from .._timing import stages_timed
    from ..extent import Part
    from ..movies.jobs import TrackJob
    from ..settings import TrackingSettings as Settings
    from ..settings import cost_at_gate

    clock = Stopwatch()
    if max_distance is not None:
        _refuse_what_is_learned()
    if model is not None:
        from ..movies.pooled import read_model

        known = {**read_model(model), **known}
    settings = Settings(
        max_distance=max_distance, cost=cost, spacing=spacing, periodic=periodic, device=device,
        unmatched_cost=unmatched_cost if unmatched_cost != "full" else cost_at_gate(max_distance, cost),
        gap_distance=gap_distance, divisions=divisions, merges=merges, known=known, solver=solver,
        exact_margins=exact_margins, max_gap=max_gap, column=column_of(column, no_columns),
        pins=pins,
    )  # fmt: skip
    if memory is not None and not stream:
        raise click.UsageError("--memory is of --stream: the whole movie is in memory without.")
    if min_length and (stream or resume or cluster or scheduler):
        raise click.UsageError("--min-length needs the whole movie in memory. Afterwards: outbid filter.")
    job = TrackJob(settings, columns, Part(region, frames, mask), workers, min_length or 1)
    if out_dir is not None:
        if output or stream or resume or dry_run or parts or pins:
            raise click.UsageError(
                "--out-dir is of many movies: leave --output, --stream, --resume, --dry-run, --parts and "
                "--pins out."
            )
        gpus = device == "gpu"
        places = Several(out_dir, suffix, jobs, overwrite, as_json, cluster, scheduler, workers, gpus=gpus)
        run_several(job, sources, places)
        return
    source = Path(only_one(sources))
    if cluster or scheduler:
        from ..ranges.movie import track_in_ranges

        output = output or source.with_name(f"{source.stem}_tracks.parquet")
        with on_a_cluster(
            cluster, scheduler, workers, overwrite=overwrite, resume=resume, gpus=device == "gpu"
        ) as how:
            summary = track_in_ranges(source, output, job, how, parts=parts)
        _report(output, summary, clock, as_json)
        return
    output = output or default_output(source, "_tracks.csv")
    refuse_json_beside_data(as_json)
    formats.check_output(output, overwrite=overwrite, inputs=[source])
    if dry_run:
        _estimate(source, output, job, as_json)
        return
    with stages_timed() as (stages, beside), driver_starting(wanted=device == "gpu"):
        files = source, output, job, overwrite
        summary = _stream(*files, resume, memory) if stream or resume else _in_memory(*files)
    _LOG.info("Seconds: %s; beside these, in other threads: %s", json.dumps(stages), json.dumps(beside))
    _report(output, {**summary, "stages": stages, "beside": beside}, clock, as_json)


def _report(output: Path, summary: dict[str, object], clock: Stopwatch, as_json: bool) -> None:
    """Print a summary of the run."""
    from ..batches import sentence

    spoken = summary.pop("summary", "")
    report = {"output": shown(output), **summary, "seconds": clock.seconds}
    if as_json:
        click.echo(json.dumps(report))
    proved = "optimal for its costs" if not report["worst_gap"] else "optimality gap {worst_gap:g}"
    counted = "{links} links" if spoken else "{links} links, {tracks} tracks"
    line = f"{counted}, {proved}, {{device}}, {{seconds:.2f}} s: {{output}}"
    say(f"{line.format_map(report)}{sentence(report)}")
    if spoken:
        say(str(spoken))


def _refuse_what_is_learned() -> None:
    """Raise an error for given options that apply only to learned linking."""
    from ..errors import SettingsError

    ctx = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT
    for name in ("divisions", "merges"):
        if ctx.params[name] and ctx.get_parameter_source(name) in given:
            option = f"--{name.replace('_', '-')}"
            raise SettingsError(
                f"{option} needs what is learned from the movie, which --max-distance rules out. "
                "Leave out one of the two."
            )


def _estimate(source: Path, output: Path, job: TrackJob, as_json: bool) -> None:
    """Print what the command would do, with estimated time and memory."""
    from dataclasses import asdict

    from .. import formats
    from ..estimate import estimate

    settings = job.settings
    detections = formats.read_detections(source, columns=job.columns)
    with compilation_reported():
        expected = estimate(detections, settings, job.workers)
    if as_json:
        plan = {"output": shown(output), "settings": settings.as_dict(), **asdict(expected)}
        click.echo(json.dumps(plan))
        return
    gate = "all is learned" if settings.max_distance is None else f"max distance {settings.max_distance:g}"
    click.echo(f"Would link {source.name} to {shown(output)}; {gate}. Nothing was written.\n{expected}")


def _in_memory(source: Path, output: Path, job: TrackJob, overwrite: bool) -> dict[str, object]:
    """Link a file as a whole; the summary."""
    from .. import formats
    from .._threads import begun
    from .._timing import lap
    from ..batches import RECORDED
    from ..extent import track_part
    from ..remarks import at_first_sight, doubled, without_links

    settings = job.settings
    hashed = begun(job.origin, str(source))
    detections = formats.read_detections(source, columns=job.columns)
    lap("read")
    _LOG.info("%d detections in %d frames, %s", len(detections), detections.frame_count, detections.unit)
    twice = begun(doubled, detections)
    for remark in at_first_sight(
        detections, max_distance=settings.max_distance, max_gap=settings.max_gap, spacing=settings.spacing
    ):
        say(remark)
    with compilation_reported(), progress_bar("Linking") as progress:
        run = track_part(detections, settings, job.part, workers=job.workers, progress=progress)
    run = job.without_short(run)
    _LOG.info("%s", run.settings)
    origin = hashed.result()
    lap("hash")
    _warn_of_other_input(origin)
    gate = settings.max_distance, settings.max_gap or 0, settings.spacing
    for remark in [*twice.result().said(), *without_links(detections, run.stats["links"], *gate)]:
        say(remark)
    learned = {} if run.learned is None else {"learned": run.learned.as_dict()}
    counted = {name: run.stats[name] for name in RECORDED if name in run.stats}
    record = job.record(origin, run.settings) | counted | learned
    formats.write_tracks(output, run.tracks, record=record, overwrite=overwrite)
    lap("write")
    if run.learned is not None:
        merges = f" Merges: {run.stats['merges']}." if settings.merges else ""
        nothing = _NOTHING_SO.format(", ".join(settings.known)) if settings.known else _NOTHING
        learnt = run.learned if run.stats["links"] else nothing
        say(f"{learnt}\nDivisions: {run.stats['divisions']}.{merges}")
    if settings.pins:
        say(f"Pins: {run.stats['pins']}; left out: {run.stats['unmatched_pins']}.")
    return {**run.stats, **learned, **_trust(run)}


def _trust(run: TrackingRun) -> dict[str, object]:
    """The reliability of the tracks, as text and as numbers."""
    from ..reliability import reliability_of

    found = reliability_of(run.tracks)
    known = {} if found is None else {"expected_wrong_links": found.wrong, "doubtful_tracks": found.doubtful}
    return {"summary": run.summary, **known}


def _stream(
    source: Path, output: Path, job: TrackJob, overwrite: bool, resume: bool, memory: float | None
) -> dict[str, object]:
    """Link a file that may be larger than the memory; the summary."""
    from .. import formats
    from .._threads import begun
    from .._timing import lap
    from ..errors import SettingsError
    from ..stream import rows_for, track_stream

    if job.part:
        raise SettingsError("--stream links the whole movie: leave --region, --frames and --mask out.")
    hashed = begun(job.origin, str(source))
    formats.check_input(source, columns=job.columns)

    def record(used: TrackingSettings) -> dict[str, object]:
        origin = hashed.result()
        lap("hash")
        _warn_of_other_input(origin)
        return job.record(origin, used)

    with compilation_reported(), progress_bar("Linking") as progress:
        stats = track_stream(
            source, output, job.settings, columns=job.columns, record=record, overwrite=overwrite,
            resume=resume, workers=job.workers, progress=progress, rows=rows_for(memory),
        )  # fmt: skip
    if "remark" in stats:
        say(str(stats.pop("remark")))
    return dict(stats)


def _warn_of_other_input(origin: Mapping[str, str]) -> None:
    """Warn if the settings come from the record of a run on another input."""
    record = click.get_current_context().meta.get("outbid.record", {})
    before = record.get("input", {})
    if before and before.get("sha256") != origin["sha256"]:
        say(f"Settings of a run on another input ({before.get('name')}) are used for {origin['name']}.")
