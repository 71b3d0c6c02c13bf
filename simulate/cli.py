"""The command `outbid simulate`: write simulated tracks, and on request their detections and images."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import click

from outbid.cli.config import config_option
from outbid.cli.options import GroupedCommand, options_of
from outbid.cli.piped import OutputFile, refuse_json_beside_data, shown
from outbid.cli.terminal import Stopwatch, common_options, say

from .settings import SimulationSettings

_FILE = click.Path(path_type=Path)


@click.command(
    cls=GroupedCommand,
    no_args_is_help=True,
    help="""Simulate particles whose tracks are known.

    \b
    Examples:
      outbid simulate -o truth.csv
      outbid simulate -o truth.csv --detections seen.csv --miss 0.05 --clutter 0.02 --noise 0.3 0.1 0.1
      outbid simulate -o truth.parquet --particles 100000 --frames 5 --box 100 100 100 \\
          --motion brownian --step 0.3 --birth-rate 0.05 --death-rate 0.05
      outbid simulate -o truth.csv --box 9 127 127 --frames 20 --movie movie.ome.tif --snr 4
      outbid simulate -o again.csv --config truth.csv

    Writes a table with columns track_id, frame, z, y, x: all detections, with the true identities. A
    false detection is a track of its own.
    """,
)
@click.option(
    "-o", "--output", type=OutputFile(), required=True,
    help="True tracks: .csv, .tsv, .parquet, .xml or .geff; - is stdout.",
)  # fmt: skip
@click.option("--detections", type=_FILE, metavar="FILE", help="The same rows without identities, to track.")
@options_of(SimulationSettings, "settings")
@click.option("--movie", type=_FILE, metavar="FILE", help="Also render the true particles as OME-TIFF.")
@click.option("--overwrite", is_flag=True, help="Replace the outputs if they exist.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
@common_options
def simulate(
    output: Path,
    detections: Path | None,
    settings: SimulationSettings,
    movie: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Simulate a movie."""
    from outbid import formats
    from outbid.formats.files.outputs import refuse_one_for_two, refuse_output
    from outbid.particles.detections import with_time

    from .microscope import observe
    from .walks import walk

    clock = Stopwatch()
    walks, microscope, seed = settings.walks(), settings.microscope(), settings.seed
    refuse_json_beside_data(as_json)
    formats.check_output(output, overwrite=overwrite)
    if detections is not None:
        formats.check_output(detections, overwrite=overwrite)
    camera = None
    if movie is not None:
        if movie.suffix.lower() not in (".tif", ".tiff"):
            raise click.BadParameter("it is a TIFF: let it end in .ome.tif.", param_hint="--movie")
        from .camera import write_movie

        camera = settings.camera()
        refuse_output(movie, overwrite=overwrite)
    refuse_one_for_two({"--output": output, "--detections": detections, "--movie": movie})
    truth = walk(walks)
    seen = observe(truth, microscope, box=settings.box, seed=seed)
    if settings.frame_interval is not None:
        seen = replace(seen, detections=with_time(seen.detections, settings.frame_interval))
    record: dict[str, object] = {"command": "simulate", "input": None, "seed": seed, "device": "cpu"}
    record |= {"version": metadata.version("outbid"), "settings": settings.as_dict()}
    if movie is not None and camera is not None:
        saturated = write_movie(movie, truth.detections, camera, seed=seed, overwrite=overwrite)
        if saturated:
            say(f"{saturated} voxels of the movie are saturated, at 65535. To have none, lower --snr.")
    formats.write_tracks(output, seen, record=record, overwrite=overwrite)
    if detections is not None:
        formats.write_detections(detections, seen.detections, record=record, overwrite=overwrite)
    summary = {
        "output": shown(output), "detections": len(seen.detections), "links": len(seen.links),
        "true_tracks": truth.track_count, "frames": settings.frames, "seed": seed, "seconds": clock.seconds,
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(summary))
    line = (
        "{detections} detections, {true_tracks} true tracks, {frames} frames, {seconds:.2f} s, {of}: {output}"
    )
    say(line.format_map(summary | {"of": seen.detections.calibration}))
