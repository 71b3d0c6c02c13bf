"""The command `outbid track`: link detections to tracks."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, SettingsError
from ..settings.declare import Setting, check_values, declare
from ..settings.tracking import TrackingSettings
from .clusters import DaskCluster, cluster_options, on_a_cluster
from .config import config_option
from .options import GroupedCommand, option_of, options_of
from .parts import DRY_RUN, crop_options
from .piped import InputFile, OutputFile, default_output, refuse_json_beside_data, shown
from .several import Outputs, Several, only_one, run_several, several_options
from .terminal import Stopwatch, columns_option, common_options, compilation_reported, progress_bar, say
from .values import TRACKING, column_of

if TYPE_CHECKING:
    from ..edit.crop import Crop
    from ..tracking import TrackingRun
    from ..work.jobs import TrackJob

_LOG = logging.getLogger("outbid")
_NOTHING = "Nothing could be learned, and nothing was linked. Is there something to link? Set --max-distance."
_NOTHING_SO = "Nothing was linked with {} as given. Give other values by --fixed, or leave out unknown ones."


@dataclass(frozen=True)
class _Track:
    """How `track` runs; only `model` and `no_features` and `min_length` change a result."""

    model: Path | None = declare(None, Setting(
        "Take all values from a model (outbid learn) instead of learning them; --fixed goes before it.",
        metavar="FILE",
    ))  # fmt: skip
    no_features: bool = declare(False, Setting("Link by positions alone.", former="no_columns --no-columns"))
    min_length: int | None = declare(None, Setting("Leave out tracks shorter than N.", least=1, metavar="N"))
    workers: int | None = declare(None, Setting(
        "Threads; they do not change the result.", automatic="one per core", least=1, metavar="N"
    ))  # fmt: skip
    stream: bool = declare(False, Setting(
        "Process some frames at a time, for movies larger than the memory; Parquet in and out."
    ))  # fmt: skip
    memory: float | None = declare(None, Setting(
        "With `stream`: how much memory to take, about, of a GPU if one learns; larger pieces are quicker.",
        automatic="4",
        least=0, above=True, metavar="GB",
    ))  # fmt: skip
    dry_run: bool = declare(False, DRY_RUN)
    resume: bool = declare(False, Setting("Continue an interrupted run with `stream` or on a cluster."))
    parts: bool = declare(False, Setting(
        "With a cluster: leave the output in parts, a folder that all commands read as one file."
    ))  # fmt: skip
    overwrite: bool = declare(False, Setting("Replace the output if it exists."))
    as_json: bool = declare(False, Setting("Print a summary as JSON on stdout.", option="--json"))

    def __post_init__(self) -> None:
        check_values(self)


@click.command(
    cls=GroupedCommand,
    no_args_is_help=True,
    help="""Link detections to tracks by optimal assignment.

    \b
    Examples:
      outbid track spots.csv
      outbid track spots.csv -o tracks.csv --max-distance 5
      outbid track spots.csv -o tracks.parquet --max-distance 2 --spacing 0.8 0.2 0.2 --max-gap 2
      outbid track spots.csv --fixed noise=0.3,0.1,0.1 --fixed persistence_frames=5
      outbid track cells.csv --features area --features theta:angle=180 --features type:label
      outbid track other.csv -o other_tracks.csv --config tracks.csv.json
      outbid track spots/*.csv --out-dir tracks/ --jobs 4 --model model.json
      outbid track huge.csv --dry-run
      outbid simulate -o - | outbid track - -o - | outbid filter - -o long.csv --min-length 10

    INPUT is a table (.csv, .tsv, .parquet, .xlsx) with columns frame, z, y, x, or a file of TrackMate, ISBI
    or GEFF; - is stdin. Column names of TrackMate, Imaris and trackpy are recognised; for other names use
    --columns. Track numbers in INPUT are ignored.

    Without --max-distance the model is learned from the detections: how particles move, how often they are
    missed, appear and disappear, and what columns say. It is in the run record, and -v prints it. Use --fixed
    to fix values that you know: step, noise, gate, persistence_frames, end, start, miss or clutter.
    """,
)
@click.argument("sources", metavar="INPUT...", nargs=-1, required=True, type=InputFile())
@click.option(
    "-o", "--output", type=OutputFile(),
    help="Tracks: .csv, .tsv, .parquet, .xml (TrackMate), .isbi.xml or .geff; - is stdout.  "
    "[default: INPUT_tracks.csv]",
)  # fmt: skip
@options_of(TrackingSettings, "values", make=dict, special=TRACKING)
@options_of(_Track, "how")
@crop_options("the unit of the positions")
@columns_option("--columns", "INPUT")
@several_options
@cluster_options
@config_option
@common_options
def track(
    sources: tuple[Path, ...],
    output: Path | None,
    values: dict[str, Any],
    how: _Track,
    crop: Crop,
    columns: dict[str, str],
    several: Outputs,
    cluster: DaskCluster,
) -> None:
    """Link detections to tracks."""
    from ..work.jobs import TrackJob

    clock = Stopwatch()
    settings = _settings(values, how)
    if how.memory is not None and not how.stream:
        raise click.UsageError("--memory is of --stream: the whole movie is in memory without.")
    if how.min_length and (how.stream or how.resume or cluster):
        raise click.UsageError("--min-length needs the whole movie in memory. Afterwards: outbid filter.")
    job = TrackJob(settings, columns, crop, how.workers, how.min_length or 1)
    gpus = settings.device == "gpu"
    if several:
        if output or how.stream or how.resume or how.dry_run or how.parts or settings.pins:
            raise click.UsageError(
                "--out-dir is of many movies: leave --output, --stream, --resume, --dry-run, --parts and "
                "--pins out."
            )
        places = Several(several, "", how.overwrite, how.as_json, cluster, how.workers, gpus)
        run_several(job, sources, places)
        return
    source = Path(only_one(sources))
    if cluster:
        from ..work.chunks.movie import track_in_chunks

        output = output or source.with_name(f"{source.stem}_tracks.parquet")
        with on_a_cluster(
            cluster, how.workers, overwrite=how.overwrite, resume=how.resume, gpus=gpus
        ) as runs:
            summary = track_in_chunks(source, output, job, runs, parts=how.parts)
        _report(output, summary, clock, how.as_json)
        return
    _here(job, source, output or default_output(source, "_tracks.csv"), how, clock)


def _settings(values: dict[str, Any], how: _Track) -> TrackingSettings:
    """The settings, with what a model, the words for costs and ``--no-features`` say."""
    from ..settings.tracking import cost_at_gate

    if values["max_distance"] is not None:
        _refuse_what_is_learned(values)
    if how.model is not None:
        from ..work.pooled import read_model

        values["fixed"] = {**read_model(how.model), **values["fixed"]}
    if values["unmatched_cost"] == "full":
        values["unmatched_cost"] = cost_at_gate(values["max_distance"], values["cost"])
    return TrackingSettings(**values | {"features": column_of(values["features"], how.no_features)})


def _here(job: TrackJob, source: Path, output: Path, how: _Track, clock: Stopwatch) -> None:
    """Link a movie in this process, or say what that would take."""
    from .. import formats
    from ..compute.cuda import driver_starting
    from ..compute.timing import stages_timed

    refuse_json_beside_data(how.as_json)
    formats.check_output(output, overwrite=how.overwrite, inputs=[source])
    if how.dry_run:
        _estimate(source, output, job, how.as_json)
        return
    wanted = job.settings.device == "gpu"
    with stages_timed() as (stages, beside), driver_starting(wanted=wanted):
        files = source, output, job, how.overwrite
        if not (how.stream or how.resume):
            summary = _in_memory(*files)
        elif job.settings.max_distance is None or job.settings.max_gap:
            summary = _in_chunks(*files, how)
        else:
            summary = _stream(*files, how.resume, how.memory)
    _LOG.info("Seconds: %s; beside these, in other threads: %s", json.dumps(stages), json.dumps(beside))
    _report(output, {**summary, "stages": stages, "beside": beside}, clock, how.as_json)


def _report(output: Path, summary: dict[str, object], clock: Stopwatch, as_json: bool) -> None:
    """Print a summary of the run."""
    from ..gated.batches import sentence

    counted = summary.pop("summary", None) or "{tracks:,} tracks, {links:,} links".format_map(summary)
    written = summary.pop("written", None) or _written(output)
    following = summary.pop("next", f"Next: outbid report {output}.")
    report = {"output": shown(output), **summary, "seconds": clock.seconds}
    if as_json:
        click.echo(json.dumps(report))
    gap = f"optimality gap {report['worst_gap']:g}" if report["worst_gap"] else ""
    details = "%s links, %s, %s, %.2f s.%s"
    solved = report["links"], gap or "optimal for its costs", report["device"], clock.seconds
    _LOG.info(details, *solved, sentence(report))
    events = [f"{report[name]} {name}" for name in ("divisions", "merges") if report.get(name)]
    found = "; ".join(filter(None, [str(counted).removesuffix("."), gap, *events, str(written)]))
    say(f"{shown(output)}: {found}.{'' if shown(output) == 'stdout' else f' {following}'}")


def _written(output: Path) -> str:
    """In which units an output was written that was never in memory as a whole."""
    from ..formats.tables.parquet import calibration_in

    with suppress(InputError, OSError):
        return str(calibration_in(output))
    return "as the input"


def _refuse_what_is_learned(values: Mapping[str, Any]) -> None:
    """Refuse options that were given, with values that are their defaults, beside a gate."""
    from ..settings.declare import bound_by, excluded
    from ..settings.tracking import TrackingSettings

    ctx = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT
    for name, one in bound_by(TrackingSettings, "max_distance").items():
        if one.setting.excludes and values[name] and ctx.get_parameter_source(name) in given:
            raise SettingsError(excluded(option_of(one), "--max-distance"))


def _estimate(source: Path, output: Path, job: TrackJob, as_json: bool) -> None:
    """Print what the command would do, with estimated time and memory."""
    from .. import formats
    from ..work.estimate import estimate

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
    from ..particles.reliability import next_step

    with compilation_reported(), progress_bar("Linking") as bar:
        run, record = job.link(str(source), output, overwrite=overwrite, say=say, progress=bar)
    _warn_of_other_input(record["input"])
    settings = job.settings
    if run.learned is not None:
        _LOG.info("%s", run.learned)
        if not run.stats["links"]:
            say(_NOTHING_SO.format(", ".join(settings.fixed)) if settings.fixed else _NOTHING)
    if settings.pins:
        say(f"Pins: {run.stats['pins']}; left out: {run.stats['unmatched_pins']}.")
    learned = {name: record[name] for name in ("learned",) if name in record}
    following = next_step(run.tracks, source.name, output.name)
    added = {"written": run.tracks.detections.calibration, "next": following}
    return {**run.stats, **learned, **_trust(run), **added}


def _trust(run: TrackingRun) -> dict[str, object]:
    """The reliability of the tracks, as text and as numbers."""
    from ..particles.reliability import reliability_of

    found = reliability_of(run.tracks)
    if found is None:
        return {"summary": run.summary}
    wrong = {"expected_wrong_links": found.wrong, "wrong_links_within": list(found.within)}
    return {"summary": run.summary, **wrong, "doubtful_tracks": found.doubtful}


def _stream(
    source: Path, output: Path, job: TrackJob, overwrite: bool, resume: bool, memory: float | None
) -> dict[str, object]:
    """Link a file that may be larger than the memory; the summary."""
    from .. import formats
    from ..compute.threads import begun
    from ..compute.timing import lap
    from ..work.stream import rows_for, track_stream

    if job.crop:
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


def _in_chunks(source: Path, output: Path, job: TrackJob, overwrite: bool, how: _Track) -> dict[str, object]:
    """Link a file that may be larger than the memory, with a model or gaps, chunk by chunk; the summary."""
    from ..work.chunks.learned import rows_within
    from ..work.chunks.movie import How, track_in_chunks

    rows, threads = rows_within(how.memory), how.workers or os.cpu_count() or 1
    with compilation_reported(), progress_bar("Chunks") as bar:
        runs = How(rows=rows, overwrite=overwrite, resume=how.resume, threads=threads, progress=bar)
        return track_in_chunks(source, output, job, runs)


def _warn_of_other_input(origin: Any) -> None:
    """Warn if the settings come from the record of a run on another input."""
    record = click.get_current_context().meta.get("outbid.record", {})
    before = record.get("input", {})
    if before and before.get("sha256") != origin["sha256"]:
        say(f"Settings of a run on another input ({before.get('name')}) are used for {origin['name']}.")
