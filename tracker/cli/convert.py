"""The command `outbid convert`."""

from __future__ import annotations

from pathlib import Path

import click

from .terminal import columns_option, common_options, run_record, say

_FILE = click.Path(path_type=Path)


@click.command(
    no_args_is_help=True,
    help="""Convert tracks or detections between formats.

    \b
    Examples:
      outbid convert tracks.csv tracks.parquet
      outbid convert spots_from_imaris.csv spots.csv
      outbid convert other.csv spots.csv --columns z=depth,frame=slice
      outbid convert tracks.csv tracks.xml

    The suffix of OUTPUT says the format: .csv, .tsv, .parquet, .xml (TrackMate), .isbi.xml or .geff. Tracks
    are numbered anew, 0, 1, 2, … by their first detections. A run record goes along.
    """,
)
@click.argument("source", metavar="INPUT", type=_FILE)
@click.argument("output", type=_FILE)
@columns_option("--columns", "INPUT")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@common_options
def convert(source: Path, output: Path, columns: dict[str, str], overwrite: bool) -> None:
    """Convert between formats."""
    from .. import formats
    from ..errors import InputError

    formats.check_output(output, overwrite=overwrite, inputs=[source])
    try:
        record = formats.read_record(source)
    except InputError:
        record = run_record("convert", formats.input_of(source, columns))
    if formats.holds_tracks(source, columns=columns):
        tracks = formats.read_tracks(source, columns=columns)
        formats.write_tracks(output, tracks, record=record, overwrite=overwrite)
        say(f"{len(tracks.detections)} detections, {tracks.track_count} tracks: {output}")
    else:
        detections = formats.read_detections(source, columns=columns)
        formats.write_detections(output, detections, record=record, overwrite=overwrite)
        say(f"{len(detections)} detections: {output}")
