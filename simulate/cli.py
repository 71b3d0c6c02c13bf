"""The command `outbid simulate`: write simulated tracks, and on request their detections and images."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import click

from outbid.cli.config import config_option
from outbid.cli.piped import OutputFile, refuse_json_beside_data, shown
from outbid.cli.terminal import Stopwatch, common_options, say

_FILE = click.Path(path_type=Path)


@click.command(
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
    "-o",
    "--output",
    type=OutputFile(),
    required=True,
    help="True tracks: .csv, .tsv, .parquet, .xml or .geff; - is stdout.",
)
@click.option("--detections", type=_FILE, metavar="FILE", help="The same rows without identities, to track.")
@click.option("--particles", type=int, default=500, show_default=True, help="Particles in the first frame.")
@click.option("--frames", type=int, default=50, show_default=True, help="Number of frames.")
@click.option(
    "--box", type=float, nargs=3, default=(64.0, 64.0, 64.0), show_default=True, metavar="Z Y X",
    help="Lengths of the box.",
)  # fmt: skip
@click.option(
    "--unit", type=click.Choice(["pixel", "nanometer", "micrometer", "millimeter"]), default="micrometer",
    show_default=True, help="Unit of all lengths; the outputs state it.",
)  # fmt: skip
@click.option(
    "--motion", type=click.Choice(["persistent", "brownian", "ornstein-uhlenbeck"]), default="persistent",
    show_default=True, help="How particles move.",
)  # fmt: skip
@click.option(
    "--step", type=float, default=1.0, show_default=True, metavar="S",
    help="Per frame: largest step (persistent), standard deviation along each axis (brownian), "
    "root mean square speed (ornstein-uhlenbeck).",
)  # fmt: skip
@click.option(
    "--persistence", type=float, default=0.8, show_default=True, metavar="P",
    help="For persistent: from 0, every step in a random direction, to 1, straight ahead.",
)  # fmt: skip
@click.option(
    "--persistence-time", type=float, default=5.0, show_default=True, metavar="T",
    help="For ornstein-uhlenbeck: decay time of the autocorrelation of the velocity, in frames.",
)  # fmt: skip
@click.option(
    "--boundary", type=click.Choice(["reflect", "periodic", "open", "absorb"]), default="reflect",
    show_default=True, help="Effect of the walls; periodic ends a track there, absorb replaces the particle.",
)  # fmt: skip
@click.option(
    "--birth-rate", type=float, default=0.0, show_default=True, metavar="B",
    help="Births in a frame, as a fraction of --particles.",
)  # fmt: skip
@click.option(
    "--death-rate", type=float, default=0.0, show_default=True, metavar="D",
    help="Probability that a particle dies in a frame.",
)  # fmt: skip
@click.option(
    "--noise", type=float, nargs=3, default=(0.0, 0.0, 0.0), show_default=True, metavar="Z Y X",
    help="Standard deviation of the localisation error.",
)  # fmt: skip
@click.option(
    "--miss", type=float, default=0.0, show_default=True, metavar="M",
    help="Probability that a particle is not detected in a frame.",
)  # fmt: skip
@click.option(
    "--clutter", type=float, default=0.0, show_default=True, metavar="C",
    help="False detections for each particle and frame.",
)  # fmt: skip
@click.option(
    "--movie", type=_FILE, metavar="FILE", help="Also render the true particles as OME-TIFF (.tif)."
)
@click.option("--snr", type=float, default=4.0, show_default=True, help="For the movie: signal to noise.")
@click.option(
    "--psf", type=float, nargs=3, default=(1.0, 1.5, 1.5), show_default=True, metavar="Z Y X",
    help="For the movie: standard deviation of a spot.",
)  # fmt: skip
@click.option(
    "--voxel", type=float, nargs=3, default=(1.0, 1.0, 1.0), show_default=True, metavar="Z Y X",
    help="For the movie: size of a voxel.",
)  # fmt: skip
@click.option(
    "--frame-interval",
    type=float,
    metavar="S",
    help="For the movie: seconds between frames, stated in the file.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same movie.")
@click.option("--overwrite", is_flag=True, help="Replace the outputs if they exist.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
@common_options
def simulate(
    output: Path,
    detections: Path | None,
    particles: int,
    frames: int,
    box: tuple[float, float, float],
    unit: str,
    motion: str,
    step: float,
    persistence: float,
    persistence_time: float,
    boundary: str,
    birth_rate: float,
    death_rate: float,
    noise: tuple[float, float, float],
    miss: float,
    clutter: float,
    movie: Path | None,
    snr: float,
    psf: tuple[float, float, float],
    voxel: tuple[float, float, float],
    frame_interval: float | None,
    seed: int,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Simulate a movie."""
    from outbid import formats
    from outbid.formats.outputs import refuse_one_for_two, refuse_output

    from .microscope import Microscope, observe
    from .motions import BrownianWalk, OrnsteinUhlenbeckWalk, PersistentWalk
    from .walks import WalkSettings, walk

    clock = Stopwatch()
    motions = {
        "persistent": PersistentWalk(step, persistence),
        "brownian": BrownianWalk(step),
        "ornstein-uhlenbeck": OrnsteinUhlenbeckWalk(step, persistence_time),
    }
    settings = WalkSettings(
        motions[motion], particles, frames, box, boundary, birth_rate, death_rate, seed, unit
    )
    microscope = Microscope(noise, miss, clutter)
    refuse_json_beside_data(as_json)
    formats.check_output(output, overwrite=overwrite)
    if detections is not None:
        formats.check_output(detections, overwrite=overwrite)
    camera = None
    if movie is not None:
        if movie.suffix.lower() not in (".tif", ".tiff"):
            raise click.BadParameter("it is a TIFF: let it end in .ome.tif.", param_hint="--movie")
        from .camera import Camera, write_movie

        camera = replace(Camera.looking_at(box, psf=psf, snr=snr, spacing=voxel), interval=frame_interval)
        refuse_output(movie, overwrite=overwrite)
    refuse_one_for_two({"--output": output, "--detections": detections, "--movie": movie})
    truth = walk(settings)
    seen = observe(truth, microscope, box=box, seed=seed)
    record = {
        "command": "simulate", "version": metadata.version("outbid"), "input": None, "seed": seed,
        "device": "cpu", "settings": {
            "particles": particles, "frames": frames, "box": box, "unit": unit, "motion": motion,
            "step": step, "persistence": persistence, "persistence_time": persistence_time,
            "boundary": boundary, "birth_rate": birth_rate, "death_rate": death_rate, "noise": noise,
            "miss": miss, "clutter": clutter, "snr": snr, "psf": psf, "voxel": voxel, "seed": seed,
            **({} if frame_interval is None else {"frame_interval": frame_interval}),
        },
    }  # fmt: skip
    if movie is not None and camera is not None:
        saturated = write_movie(movie, truth.detections, camera, seed=seed, overwrite=overwrite)
        if saturated:
            say(f"{saturated} voxels of the movie are saturated, at 65535. To have none, lower --snr.")
    formats.write_tracks(output, seen, record=record, overwrite=overwrite)
    if detections is not None:
        formats.write_detections(detections, seen.detections, record=record, overwrite=overwrite)
    summary = {
        "output": shown(output), "detections": len(seen.detections), "links": len(seen.links),
        "true_tracks": truth.track_count, "frames": frames, "seed": seed, "seconds": clock.seconds,
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(summary))
    line = "{detections} detections, {true_tracks} true tracks, {frames} frames, {seconds:.2f} s: {output}"
    say(line.format_map(summary))
