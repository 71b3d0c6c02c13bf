"""The command `outbid convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .piped import InputFile, OutputFile, shown
from .terminal import columns_option, common_options, say

if TYPE_CHECKING:
    from ..tracks import Tracks


@click.command(
    no_args_is_help=True,
    help="""Convert tracks or detections between formats.

    \b
    Examples:
      outbid convert tracks.csv tracks.parquet
      outbid convert spots_from_imaris.csv spots.csv
      outbid convert other.xlsx spots.csv --columns z=depth,frame=slice
      outbid convert tracks.csv filled.csv --fill-gaps --frame-interval 0.5
      outbid convert tracks.csv tracks.xml --image movie.tif
      outbid convert masks.tif tracks.csv relabelled.tif

    The suffix of OUTPUT names the format: .csv, .tsv, .parquet, .xml (TrackMate), .isbi.xml or .geff; - is
    stdin or stdout. Tracks are renumbered 0, 1, 2, … by their first detections. The run record is copied.
    With label images and TRACKS of their objects, OUTPUT is a TIFF in which every object has the number of
    its track, plus 1.
    """,
)
@click.argument("inputs", metavar="INPUT [TRACKS]", type=InputFile(), nargs=-1, required=True)
@click.argument("output", type=OutputFile())
@click.option(
    "--fill-gaps", is_flag=True, help="Add interpolated positions in gaps, flagged in column filled."
)
@click.option(
    "--frame-interval", type=float, metavar="T",
    help="Add a column time: frame number times T, in seconds or any other unit.",
)  # fmt: skip
@click.option(
    "--image", type=click.Path(path_type=Path), metavar="MOVIE",
    help="Movie that TrackMate shows under the tracks, for an OUTPUT in .xml.",
)  # fmt: skip
@columns_option("--columns", "INPUT or TRACKS")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@common_options
def convert(
    inputs: tuple[Path, ...],
    output: Path,
    fill_gaps: bool,
    frame_interval: float | None,
    image: Path | None,
    columns: dict[str, str],
    overwrite: bool,
) -> None:
    """Convert between formats."""
    from dataclasses import replace

    from .. import formats
    from ..errors import InputError, SettingsError
    from ..filling import with_gaps_filled, with_time
    from ..movies.jobs import run_record

    source, *tracks = inputs
    if len(tracks) > 1:
        raise click.UsageError("Give INPUT and OUTPUT; or label images, their TRACKS and OUTPUT.")
    if tracks:
        _relabel(source, tracks[0], output, columns, overwrite)
        return
    formats.check_output(output, overwrite=overwrite, inputs=[source])
    if image is not None and formats.FORMATS.get(".xml") != formats.format_of(output):
        raise SettingsError(f"--image is for TrackMate's XML; {output} is none. Let the output end in .xml.")
    try:
        record = formats.read_record(source)
    except InputError:
        record = run_record("convert", formats.input_of(source, columns))
    if formats.holds_tracks(source, columns=columns):
        found = formats.read_tracks(source, columns=columns)
        if fill_gaps:
            found = with_gaps_filled(found)
        if frame_interval is not None:
            found = replace(found, detections=with_time(found.detections, frame_interval))
        if image is None:
            formats.write_tracks(output, found, record=record, overwrite=overwrite)
        else:
            _with_image(output, found, image, record, overwrite)
        say(f"{len(found.detections)} detections, {found.track_count} tracks: {shown(output)}")
        return
    if fill_gaps or image is not None:
        raise SettingsError(f"--fill-gaps and --image are for tracks; {source} holds detections alone.")
    detections = formats.read_detections(source, columns=columns)
    if frame_interval is not None:
        detections = with_time(detections, frame_interval)
    formats.write_detections(output, detections, record=record, overwrite=overwrite)
    say(f"{len(detections)} detections: {shown(output)}")


def _with_image(
    output: Path, tracks: Tracks, image: Path, record: dict[str, object], overwrite: bool
) -> None:
    """Write TrackMate's XML, which opens with its image."""
    from ..formats.trackmate_write import write_with_image
    from ..images import open_images

    write_with_image(output, tracks, image, open_images(image), record=record, overwrite=overwrite)


def _relabel(masks: Path, tracks: Path, output: Path, columns: dict[str, str], overwrite: bool) -> None:
    """Write label images in which every object has the number of its track."""
    from .. import formats
    from ..errors import SettingsError
    from ..formats.outputs import refuse_output
    from ..formats.tiff_write import write_like
    from ..images import open_images
    from ..relabel import relabelled

    if output.suffix.lower() not in (".tif", ".tiff"):
        raise SettingsError(f"Label images are written as TIFF; {output} is none. Let it end in .tif.")
    refuse_output(output, overwrite=overwrite, inputs=[masks, tracks])
    movie, found = open_images(masks), formats.read_tracks(tracks, columns=columns)
    size = (1.0, 1.0, 1.0) if found.detections.unit == "pixel" else movie.spacing
    write_like(output, relabelled(movie.frames(), found, size), movie, "uint32", overwrite)
    say(f"{movie.frame_count} label images, {found.track_count} tracks: {output}")
