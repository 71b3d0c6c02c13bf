"""The command `outbid detect`."""

from __future__ import annotations

import json
import logging
from importlib import metadata
from pathlib import Path

import click

from .terminal import Stopwatch, common_options, config_option, progress_bar, say

_LOG = logging.getLogger("outbid")
_FILE = click.Path(path_type=Path)


@click.command(
    no_args_is_help=True,
    help="""Find spots, or centroids of labels, in a movie.

    \b
    Examples:
      outbid detect movie.tif -o points.csv
      outbid detect stacks/ -o points.parquet --spacing 5 1 1
      outbid detect movie.tif -o points.csv --axes TYX --radius 3 --threshold 20
      outbid detect masks/ -o points.csv --labels

    MOVIE is a TIFF file (ImageJ, OME or plain), or a folder with an image for each frame. Positions are
    in the unit of the voxel size.
    """,
)
@click.argument("source", metavar="MOVIE", type=_FILE)
@click.option("-o", "--output", type=_FILE, required=True, help="Table of detections, or .geff or .xml.")
@click.option(
    "--radius", type=float, metavar="R",
    help="Radius of a spot, in the unit of the voxel size.  [default: estimated from the first frame]",
)  # fmt: skip
@click.option("--radius-z", type=float, metavar="R", help="Radius along z.  [default: --radius]")
@click.option(
    "--threshold", type=float, metavar="Q", help="Least quality of a spot.  [default: found for each frame]"
)
@click.option(
    "--filter",
    "kind",
    type=click.Choice(["log", "dog"]),
    default="dog",
    show_default=True,
    help="Difference of Gaussians, or their Laplacian.",
)
@click.option("--labels", is_flag=True, help="MOVIE is of label images: take the centroids of the labels.")
@click.option(
    "--spacing", type=float, nargs=3, metavar="Z Y X", help="Size of a voxel.  [default: as MOVIE tells]"
)
@click.option("--axes", metavar="AXES", help="Axes of MOVIE where it does not tell or is wrong: TZYX, TYX …")
@click.option("--channel", type=int, default=0, show_default=True, metavar="N", help="Channel to look at.")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, metavar="N")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
@common_options
def detect(
    source: Path,
    output: Path,
    radius: float | None,
    radius_z: float | None,
    threshold: float | None,
    kind: str,
    labels: bool,
    spacing: tuple[float, float, float] | None,
    axes: str | None,
    channel: int,
    workers: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Find spots in a movie."""
    from dataclasses import asdict

    from . import formats
    from .detect import DetectionSettings, detect_labels
    from .detect import detect as run_detect
    from .formats.images import open_movie

    clock = Stopwatch()
    formats.check_output(output, overwrite=overwrite)
    movie = open_movie(source, axes=axes, channel=channel, spacing=spacing)
    settings = DetectionSettings(radius, radius_z, threshold, movie.spacing, kind)
    _LOG.info("axes %s, sizes %s, voxel %s %s", movie.axes, movie.sizes, movie.spacing, movie.unit)
    with progress_bar("Detecting") as progress:
        if labels:
            found = detect_labels(
                movie.frames(), spacing=movie.spacing, unit=movie.unit, count=movie.frame_count,
                progress=progress,
            )  # fmt: skip
        else:
            found, settings = run_detect(
                movie.frames(), settings, unit=movie.unit, workers=workers, count=movie.frame_count,
                progress=progress,
            )  # fmt: skip
    resolved = asdict(settings) | {"labels": labels, "axes": axes, "channel": channel}
    record = {
        "command": "detect", "version": metadata.version("outbid"), "input": formats.input_of(source),
        "settings": resolved, "seed": None, "device": "cpu",
    }  # fmt: skip
    formats.write_detections(output, found, record=record, overwrite=overwrite)
    summary = {
        "output": str(output), "detections": len(found), "frames": movie.frame_count, "axes": movie.axes,
        "radius": settings.radius, "radius_z": settings.radius_z, "unit": movie.unit,
        "seconds": clock.seconds,
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(summary))
    say("{detections} detections in {frames} frames ({axes}), {seconds:.2f} s: {output}".format_map(summary))
