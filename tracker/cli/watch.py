"""The command `outbid watch`: follow a movie while it is recorded."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..settings.declare import Setting, check_values, declare
from ..settings.detection import DetectionSettings
from ..settings.tracking import TrackingSettings
from .config import config_option
from .options import GroupedCommand, options_of
from .parts import PathOrUrl, opening_options
from .terminal import columns_option, common_options, compilation_reported, progress_bar, say

_LOG = logging.getLogger("outbid")


@dataclass(frozen=True)
class _Watch:
    """How `watch` runs."""

    detections: Path | None = declare(None, Setting(
        "Detections of the last pass.", automatic="OUTPUT_detections.parquet", metavar="FILE"
    ))  # fmt: skip
    idle: float = declare(60.0, Setting(
        "The recording has ended when no frame comes for so long.", least=0, above=True, metavar="SECONDS"
    ))  # fmt: skip
    until: int | None = declare(None, Setting(
        "The recording has ended after frame N, counted from 0.", automatic="none", least=0, metavar="N"
    ))  # fmt: skip
    stop_file: Path | None = declare(None, Setting(
        "The recording has ended when this file appears.", automatic="OUTPUT.stop", metavar="FILE"
    ))  # fmt: skip
    wait: float = declare(5.0, Setting(
        "How long a frame is waited for that others have overtaken; then it counts as missing.",
        least=0, metavar="SECONDS",
    ))  # fmt: skip
    poll: float = declare(0.1, Setting("Time from look to look.", least=0, above=True, metavar="SECONDS"))
    learn: int = declare(20, Setting("Frames from which motion is learned.", least=2, metavar="N"))
    show: bool = declare(False, Setting(
        "Show it in napari meanwhile; when its window is closed, the recording has ended."
    ))  # fmt: skip
    keep: bool = declare(False, Setting("Keep the tracks as they were linked live: OUTPUT.live.parquet."))
    workers: int = declare(2, Setting("Threads; they do not change the result.", least=1, metavar="N"))
    overwrite: bool = declare(False, Setting("Replace the output if it exists."))
    as_json: bool = declare(False, Setting("Print the record as JSON on stdout at the end.", option="--json"))

    def __post_init__(self) -> None:
        check_values(self)


@click.command(
    cls=GroupedCommand,
    no_args_is_help=True,
    help="""Detect, link and act on a movie while it is recorded.

    \b
    Examples:
      outbid watch images/ -o tracks.parquet
      outbid watch movie.ome.zarr -o tracks.parquet --idle 30
      outbid watch images/ -o tracks.parquet --when "speed > 2" --when division
      outbid watch images/ -o tracks.parquet --when "enters :,0:50,0:50" --do "python move_stage.py"
      outbid watch images/ -o tracks.parquet --show
      tail -f spots.csv | outbid watch - -o tracks.parquet

    SOURCE is a folder to which files are added, one a frame, a TIFF file, OME-Zarr or a table that grows;
    - is rows from stdin. Until the recording ends, OUTPUT has the current tracks. Then the whole movie is
    detected and linked again, with the future of each particle, as outbid detect and outbid track do. A run
    that was killed goes on when the same command is given again.
    """,
)
@click.argument("source", type=PathOrUrl())
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Tracks, a .parquet file."
)  # fmt: skip
@click.option(
    "--when", "conditions", multiple=True, metavar="CONDITION",
    help="Print a line of JSON when a track meets this: a condition as of outbid filter, also on speed and "
    "lost; division; enters REGION; leaves REGION. May be repeated.",
)  # fmt: skip
@click.option("--do", metavar="COMMAND", help="Run this at each event, with its JSON on stdin, instead.")
@options_of(_Watch, "how")
@options_of(DetectionSettings, "values", make=dict, without=("spacing",))
@options_of(TrackingSettings, "linked", make=dict, only=("divisions", "merges", "max_gap", "features"))
@opening_options
@columns_option("--columns", "a table")
@config_option
@common_options
def watch(
    source: Path | str,
    output: Path,
    conditions: tuple[str, ...],
    do: str | None,
    how: _Watch,
    values: dict[str, Any],
    linked: dict[str, Any],
    opened: dict[str, Any],
    columns: dict[str, str],
) -> None:
    """Follow a movie while it is recorded."""
    from ..watching.account import How
    from ..watching.ending import sentence_of
    from ..watching.watch import watch as follow
    from ..work.jobs import Opening

    if do is not None and not conditions:
        raise click.UsageError("--do is of events: state them with --when.")
    if how.show:
        from .. import formats
        from ..watching.apart import show
        from ..watching.parts import live_folder

        formats.check_output(output, overwrite=how.overwrite or live_folder(output).is_dir())
        show(str(source), output, opened)
    watched = How(how.idle, how.wait, how.poll, how.learn, how.until, how.stop_file, how.keep, how.workers)
    _LOG.info(
        "Following %s. The recording ends when %s appears, after %g s without a frame, or at Ctrl-C. Until "
        "then %s has the tracks so far.", source, watched.stop_of(output), how.idle, output,
    )  # fmt: skip
    with compilation_reported(), progress_bar("Waiting for frames") as bar:
        record = follow(
            str(source), output, DetectionSettings(**values), tracking=TrackingSettings(**linked),
            how=watched, when=conditions, do=do, opening=Opening(**opened), columns=columns,
            detections=how.detections, overwrite=how.overwrite, progress=bar,
        )  # fmt: skip
    summary = record.pop("summary")
    if how.as_json:
        click.echo(json.dumps(record))
    live = record["live"]
    _LOG.info("%s", live)
    say(f"{output}: {summary} Events: {live['events']}. {sentence_of(record, output)}")
