"""The command `outbid report`."""

from __future__ import annotations

from pathlib import Path

import click

from outbid.tracker.terminal import Stopwatch, common_options, compilation_told, config_option, say

_FILE = click.Path(path_type=Path)


@click.command(
    no_args_is_help=True,
    help="""Write a page about TRACKS: what was run, scores, plots, and the links to look at.

    \b
    Examples:
      outbid report tracks.csv
      outbid report tracks.csv truth.csv -o report.html
      outbid report tracks.xml -o report.html --spacing 2 0.5 0.5

    The page is one HTML file with all its pictures inside. With TRUTH the tracks are scored as
    `outbid score` does.
    """,
)
@click.argument("tracks", type=_FILE)
@click.argument("truth", type=_FILE, required=False)
@click.option("-o", "--output", type=_FILE, help="The page.  [default: TRACKS_report.html]")
@click.option(
    "--gate", type=float, default=5.0, show_default=True, metavar="D",
    help="Detections this far apart or farther are never the same, in the unit of the positions.",
)  # fmt: skip
@click.option(
    "--spacing", type=click.FloatRange(min=0, min_open=True), nargs=3, metavar="Z Y X",
    help="Size of a voxel, by which lengths are multiplied.  [default: that of the run record, else 1 1 1]",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@config_option
@common_options
def report(
    tracks: Path,
    truth: Path | None,
    output: Path | None,
    gate: float,
    spacing: tuple[float, float, float] | None,
    overwrite: bool,
) -> None:
    """Write a page about tracks."""
    from outbid.tracker import formats
    from outbid.tracker.errors import InputError
    from outbid.tracker.formats.atomic import refuse_output, write_whole

    from .report import report as make_report

    clock = Stopwatch()
    output = output or tracks.with_name(f"{tracks.stem}_report.html")
    if output.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter("it is a page: let it end in .html.", param_hint="--output")
    refuse_output(output, overwrite=overwrite)
    found = formats.read_tracks(tracks)
    known = None if truth is None else formats.read_tracks(truth)
    try:
        record = formats.read_record(tracks)
    except InputError:
        record = None
    inputs = {"the tracks": formats.input_of(tracks)}
    if truth is not None:
        inputs["the truth"] = formats.input_of(truth)
    with compilation_told():
        page = make_report(
            found, known, title=tracks.name, record=record, inputs=inputs, gate=gate, spacing=spacing
        )
    content = page.encode("utf-8")
    write_whole(output, lambda file: file.write(content), overwrite=overwrite)
    say(f"{found.track_count} tracks, {clock.seconds:.2f} s: {output}")
