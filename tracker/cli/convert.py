"""The command `outbid convert`: write detections or tracks in another format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import SettingsError
from .options import GroupedCommand
from .piped import InputFile, OutputFile, shown
from .several import Outputs, Several, run_several, several_options
from .terminal import columns_option, common_options, say

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..formats.images.frames import Images
    from ..particles.tracks import Tracks


@click.command(
    cls=GroupedCommand,
    no_args_is_help=True,
    help="""Convert tracks or detections between formats.

    \b
    Examples:
      outbid convert tracks.csv tracks.parquet
      outbid convert spots_from_imaris.csv spots.csv
      outbid convert other.xlsx spots.csv --columns z=depth,frame=slice
      outbid convert tracks.csv filled.csv --fill-gaps --frame-interval 0.5
      outbid convert tracks.csv tracks.xml --image movie.tif
      outbid convert tracks.csv still.csv --subtract-drift
      outbid convert tracks/*.csv --out-dir parquet/ --suffix .parquet --jobs 4
      outbid convert masks.tif tracks.csv relabelled.tif
      outbid convert masks.tif tracks.csv 01_RES
      outbid convert trackmate.xml labels.tif --image movie.tif

    The suffix of OUTPUT names the format: .csv, .tsv, .parquet, .xml (TrackMate), .isbi.xml or .geff; - is
    stdin or stdout. Tracks are renumbered 0, 1, 2, … by their first detections. The run record is copied.
    With label images and TRACKS of their objects, OUTPUT is a TIFF in which every object has the number of
    its track, plus 1; or a folder whose name ends in _RES, with the result files of the Cell Tracking
    Challenge. Contours of TrackMate are drawn as such labels, if OUTPUT is a TIFF and --image is given.
    """,
)
@click.argument("inputs", metavar="INPUT [TRACKS]", type=InputFile(), nargs=-1)
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
@click.option(
    "--subtract-drift",
    is_flag=True,
    help="Take the drift of whole frames that tracking learned out of TRACKS.",
)
@columns_option("--columns", "INPUT or TRACKS")
@several_options
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@common_options
def convert(
    inputs: tuple[Path, ...],
    output: Path,
    fill_gaps: bool,
    frame_interval: float | None,
    image: Path | None,
    subtract_drift: bool,
    columns: dict[str, str],
    several: Outputs,
    overwrite: bool,
) -> None:
    """Convert between formats."""
    from .. import formats
    from ..work.convert_job import ConvertJob

    job = ConvertJob(columns, fill_gaps, frame_interval, image, subtract_drift)
    if several:
        if image is not None:
            raise click.UsageError("--out-dir is of many tables: leave --image out.")
        run_several(job, [*inputs, output], Several(several, "", overwrite))
        return
    if not inputs:
        raise click.UsageError("Missing argument 'OUTPUT': the converted file.")
    source, *tracks = inputs
    if len(tracks) > 1:
        raise click.UsageError(
            "Give INPUT and OUTPUT; or label images, their TRACKS and OUTPUT; or --out-dir and many INPUTs."
        )
    if tracks:
        _relabel(source, tracks[0], output, columns, overwrite)
        return
    if _is_tiff(output):
        _draw(source, output, image, columns, overwrite)
        return
    formats.check_output(output, overwrite=overwrite, inputs=[source])
    if image is not None and formats.WRITTEN[".xml"].module != formats.format_of(output):
        raise SettingsError(f"--image is for TrackMate's XML; {output} is none. Let the output end in .xml.")
    summary = {**job.run(str(source), output, {}, overwrite=overwrite)}
    units = summary.pop("units")
    counted = ", ".join(f"{count} {name}" for name, count in summary.items())
    say(f"{counted}, {units}: {shown(output)}")


def _is_tiff(output: Path) -> bool:
    return output.suffix.lower() in (".tif", ".tiff")


def _relabel(masks: Path, tracks: Path, output: Path, columns: dict[str, str], overwrite: bool) -> None:
    """Write label images in which every object has the number of its track."""
    from ..edit.relabel import relabelled, without_gaps
    from ..formats.files.outputs import refuse_output
    from ..formats.graphs import ctc

    if not (_is_tiff(output) or output.name.upper().endswith("_RES")):
        raise SettingsError(
            f"Label images are written as TIFF, or as a folder of the Cell Tracking Challenge; {output} is "
            "neither. Let it end in .tif or _RES."
        )
    foreign = None if _is_tiff(output) else ctc.foreign
    refuse_output(output, overwrite=overwrite, inputs=[masks, tracks], foreign=foreign)
    movie, found = _in_voxels(masks, tracks, columns)
    if _is_tiff(output):
        _write(output, relabelled(movie.frames(), found), movie, found, overwrite)
        return
    number, rows = without_gaps(found)
    ctc.write_masks(output, relabelled(movie.frames(), found, number=number), rows, overwrite=overwrite)
    merges = int((found.predecessors > 1).sum())
    left_out = f" The links of {merges} merges are left out: the format has none." if merges else ""
    wide = f" They have 32 bits, for more labels than {ctc.MOST}." if len(rows) > ctc.MOST else ""
    counted = f"{movie.frame_count} masks, {len(rows)} rows in res_track.txt, in voxels and frames"
    say(f"{counted}: {output}.{left_out}{wide}{_measured_with(movie)}")


def _draw(source: Path, output: Path, image: Path | None, columns: dict[str, str], overwrite: bool) -> None:
    """Write label images of the contours of spots."""
    from ..edit.relabel import drawn_contours
    from ..formats import read_tracks
    from ..formats.files.outputs import refuse_output
    from ..formats.images.opening import open_images

    if image is None:
        raise SettingsError(
            "A TIFF of labels is drawn from contours, in the size of a movie: --image MOVIE; or give label "
            "images, TRACKS and OUTPUT."
        )
    refuse_output(output, overwrite=overwrite, inputs=[source, image])
    found = read_tracks(source, columns=columns)
    movie = _timed(open_images(image), found)
    drawn = drawn_contours(found, movie.shape, movie.frame_count, movie.calibration)
    _write(output, drawn, movie, found, overwrite)


def _in_voxels(image: Path, tracks: Path, columns: dict[str, str]) -> tuple[Images, Tracks]:
    """A movie, and tracks with voxels of it for positions."""
    from ..formats import read_tracks
    from ..formats.images.opening import open_images

    movie, found = open_images(image), read_tracks(tracks, columns=columns)
    found = replace(found, detections=found.detections.on_grid(movie.calibration))
    return _timed(movie, found), found


def _write(output: Path, frames: Iterator[NDArray], movie: Images, found: Tracks, overwrite: bool) -> None:
    """Write label images as TIFF."""
    from ..formats.images.tiff_write import write_like

    write_like(output, frames, movie, "uint32", overwrite)
    counted = f"{movie.frame_count} label images, {found.track_count} tracks"
    say(f"{counted}, {movie.calibration}: {output}")


def _timed(movie: Images, found: Tracks) -> Images:
    """The movie with the interval of the tracks if it states none."""
    return replace(movie, interval=movie.interval or found.detections.calibration.interval)


def _measured_with(movie: Images) -> str:
    """How to measure a folder that has no place for units; empty if there are none."""
    options = movie.calibration.as_options()
    return f" It has no place for units: give outbid measure {options}." if options else ""
