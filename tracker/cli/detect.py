"""The command `outbid detect`: find spots in image stacks."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .clusters import cluster_options, on_a_cluster
from .config import config_option
from .parts import Place, opening_options, part_options
from .piped import OutputFile, refuse_json_beside_data, shown
from .several import Several, only_one, run_several, several_options
from .terminal import Stopwatch, common_options, compilation_reported, progress_bar, say

if TYPE_CHECKING:
    from ..detection.spots import DetectionSettings
    from ..formats.frames import Images
    from ..movies.jobs import DetectJob

_LOG = logging.getLogger("outbid")
_FILE = click.Path(path_type=Path)


@click.command(
    no_args_is_help=True,
    help="""Find spots, or centroids of labels, in a movie.

    \b
    Examples:
      outbid detect movie.tif -o points.csv
      outbid detect movie.tif --preview
      outbid detect movie.tif -o points.csv --dry-run
      outbid detect stacks/ -o points.parquet --spacing 5 1 1
      outbid detect movie.tif -o points.csv --axes TYX --radius 3 --threshold 20
      outbid detect masks/ -o points.csv --labels
      outbid detect movie.ome.zarr -o points.parquet --channel 1 --region :,0:500,0:500
      outbid detect *.nd2 --out-dir spots/ --jobs 4

    MOVIE is a TIFF file (ImageJ, OME or plain), a folder with an image for each frame, OME-Zarr (a folder
    or a URL), Zarr, HDF5, Imaris (.ims), ND2, CZI or LIF. Positions are in the unit of the voxel size.
    --preview shows how the number of spots depends on the threshold.
    """,
)
@click.argument("sources", metavar="MOVIE...", nargs=-1, required=True, type=Place())
@click.option("-o", "--output", type=OutputFile(), help="Table of detections, .geff or .xml; - is stdout.")
@click.option(
    "--radius", type=float, metavar="R",
    help="Radius of a spot, in the unit of the voxel size.  [default: measured]",
)  # fmt: skip
@click.option("--radius-z", type=float, metavar="R", help="Radius along z.  [default: measured]")
@click.option(
    "--threshold", type=float, metavar="Q",
    help="Least quality of a spot, in standard deviations.  [default: the most spots for the fewest errors]",
)  # fmt: skip
@click.option("--fdr", type=float, metavar="Q", help="Largest share of false spots, instead of a threshold.")
@click.option(
    "--bodies/--no-bodies", default=None,
    help="Find bodies without a common profile, such as nuclei.  [default: spots]",
)  # fmt: skip
@click.option("--gain", type=float, metavar="G", help="Grey values per photon.  [default: noise is measured]")
@click.option("--offset", type=float, metavar="G", help="Grey value without light, with --gain.")
@click.option("--read-noise", type=float, metavar="G", help="Read noise in grey values, with --gain.")
@click.option("--dark", is_flag=True, help="Spots are dark on a bright background.")
@click.option("--labels", is_flag=True, help="MOVIE consists of label images: find their centroids.")
@click.option(
    "--intensity", metavar="IMAGES",
    help="With --labels: write mean and maximum of each object in each channel of this movie.",
)  # fmt: skip
@click.option(
    "--spacing", type=float, nargs=3, metavar="Z Y X", help="Size of a voxel.  [default: as MOVIE states]"
)
@opening_options
@part_options("voxels")
@click.option(
    "--preview", is_flag=True,
    help="Print the number of spots for several thresholds, and the automatic choice.",
)  # fmt: skip
@click.option(
    "--frame", "preview_frames", type=int, multiple=True, metavar="N",
    help="Frame of the preview; may be repeated.  [default: the first, the middle and the last]",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True, help="Write nothing; print what would be done, with estimated time and memory."
)
@click.option(
    "--device", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", show_default=True,
    help="Where to filter.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), default=2, show_default=True, metavar="N",
    help="Threads; they do not change the result.",
)  # fmt: skip
@several_options
@cluster_options
@click.option("--resume", is_flag=True, help="Continue an interrupted run on a cluster.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
@common_options
def detect(
    sources: tuple[Path | str, ...],
    output: Path | None,
    radius: float | None,
    radius_z: float | None,
    threshold: float | None,
    fdr: float | None,
    bodies: bool | None,
    gain: float | None,
    offset: float | None,
    read_noise: float | None,
    dark: bool,
    labels: bool,
    intensity: str | None,
    spacing: tuple[float, float, float] | None,
    axes: str | None,
    channel: int,
    scene: int | None,
    level: int,
    region: str | None,
    frames: str | None,
    mask: str | None,
    preview: bool,
    preview_frames: tuple[int, ...],
    dry_run: bool,
    device: str,
    workers: int,
    out_dir: Path | None,
    jobs: int,
    suffix: str,
    cluster: str | None,
    scheduler: str | None,
    resume: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Find spots in a movie."""
    from .. import formats
    from ..detection import expected_noise, null_of
    from ..detection.spots import DetectionSettings
    from ..extent import Part
    from ..movies.jobs import DetectJob, Opening

    clock = Stopwatch()
    if preview and (labels or output):
        raise click.UsageError("--preview shows spots and writes nothing: leave --labels and --output out.")
    if intensity and (not labels or out_dir):
        raise click.UsageError("--intensity is of one movie of --labels: add --labels, or leave it out.")
    if out_dir is not None and (preview or output or resume or dry_run):
        raise click.UsageError(
            "--out-dir is of many movies: leave --preview, --output, --resume and --dry-run out."
        )
    if dry_run and (preview or cluster or scheduler):
        raise click.UsageError("--dry-run is of this machine: leave --preview, --cluster, --scheduler out.")
    if not preview and output is None and out_dir is None:
        raise click.UsageError("Missing option '-o' / '--output': where the detections go.")
    refuse_json_beside_data(as_json)
    job = DetectJob(
        DetectionSettings(
            radius, radius_z, threshold, dark=dark, device=device, fdr=fdr, gain=gain, offset=offset,
            read_noise=read_noise, bodies=bodies,
        ), labels, Opening(axes, channel, scene, level, spacing), Part(region, frames, mask), workers,
        intensity=intensity,
    )  # fmt: skip
    if out_dir is not None:
        gpus = device == "gpu"
        places = Several(out_dir, suffix, jobs, overwrite, as_json, cluster, scheduler, workers, gpus=gpus)
        run_several(job, sources, places)
        return
    source = only_one(sources)
    if cluster or scheduler:
        _on_a_cluster(job, str(source), output, clock, as_json, (cluster, scheduler, overwrite, resume))
        return
    if output is not None:
        formats.check_output(output, overwrite=overwrite, inputs=[Path(source)])
    movie = job.opening.open(str(source), partial=frames is not None)
    _LOG.info("axes %s, sizes %s, voxel %s %s", movie.axes, movie.sizes, movie.spacing, movie.unit)
    for doubt in movie.doubts:
        say(doubt)
    if dry_run and output is not None:
        _estimate(job, movie, shown(output), as_json)
        return
    if output is None:
        _preview(movie, replace(job.settings, spacing=movie.spacing), preview_frames, as_json)
        return
    with progress_bar("Detecting") as progress:
        found, settings = job.detect(movie, progress)
    record = job.record(job.origin(str(source)), settings, movie.interval)
    formats.write_detections(output, found, record=record, overwrite=overwrite)
    summary = {
        "output": shown(output), "detections": len(found), "frames": job.frame_count(movie),
        "axes": movie.axes, "radius": settings.radius, "radius_z": settings.radius_z, "unit": movie.unit,
        "device": settings.device, "expected_noise": None if labels else expected_noise(found),
        "null": None if labels else null_of(settings), "seconds": clock.seconds,
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(summary))
    if not labels:
        say(f"{_radius_of(settings, movie)} {null_of(settings)}")
    noise = "" if labels else ", about {expected_noise:.0f} expected to be noise".format_map(summary)
    say("{detections} detections in {frames} frames ({axes}){noise}, {seconds:.2f} s: {output}".format_map(
        {**summary, "noise": noise}
    ))  # fmt: skip
    if not len(found):
        say("Nothing was found. To see what there is: outbid detect --preview, with the same options.")


def _on_a_cluster(
    job: DetectJob,
    source: str,
    output: Path | None,
    clock: Stopwatch,
    as_json: bool,
    where: tuple[str | None, str | None, bool, bool],
) -> None:
    """Detect spots range by range, in other processes or on other machines."""
    from ..ranges.movie import detect_in_ranges

    if output is None:
        raise click.UsageError("--preview is of one frame: leave --cluster and --scheduler out.")
    cluster, scheduler, overwrite, resume = where
    gpus = job.settings.device == "gpu"
    with on_a_cluster(cluster, scheduler, job.workers, overwrite=overwrite, resume=resume, gpus=gpus) as how:
        summary = detect_in_ranges(source, output, job, how)
    report = {"output": shown(output), **summary, "seconds": clock.seconds}
    if as_json:
        click.echo(json.dumps(report))
    line = "{detections} detections in {frames} frames, {ranges} ranges, {seconds:.2f} s: {output}"
    say(line.format_map(report))


def _estimate(job: DetectJob, movie: Images, output: str, as_json: bool) -> None:
    """Print what the command would do, with estimated time and memory."""
    from dataclasses import asdict

    from ..movies.estimate import estimate_detection

    with compilation_reported():
        expected, settings = estimate_detection(job, movie)
    if as_json:
        click.echo(json.dumps({"output": output, "settings": asdict(settings), **asdict(expected)}))
        return
    how = "centroids of labels" if job.labels else _radius_of(settings, movie).removesuffix(".")
    click.echo(f"Would detect in {movie.name} to {output}; {how}. Nothing was written.\n{expected}")


def _radius_of(settings: DetectionSettings, movie: Images) -> str:
    """The spot radii that were used."""
    along = "" if settings.radius_z is None else f", along z {settings.radius_z:.3g}"
    if settings.radius is None:
        return "Nothing stands out of the noise at any radius. To look for one: --radius R."
    what = ", of bodies without a common profile" if settings.bodies else ""
    return f"Radius {settings.radius:.3g} {movie.unit}{along}{what}."


def _preview(movie: Images, settings: DetectionSettings, chosen: tuple[int, ...], as_json: bool) -> None:
    """Print the number of spots in some frames for several thresholds."""
    from ..detection import learn_from, preview_numbers
    from ..detection.preview import preview
    from ..detection.sign import OTHER_SIGN

    numbers = list(chosen) or preview_numbers(movie.frame_count)
    learned = learn_from(movie.frames, movie.frame_count, settings)
    seen = preview(list(movie.frames(numbers)), settings, learned=learned)
    steps = seen.thresholds()
    summary = {
        "frames": numbers, "radius": seen.settings.radius, "radius_z": seen.settings.radius_z,
        "unit": movie.unit, "automatic": seen.automatic, "spots": int(seen.count_above(seen.threshold)),
        "expected_noise": float(seen.false_above(seen.threshold)),
        "thresholds": steps.tolist(), "spots_above": seen.count_above(steps).tolist(),
    }  # fmt: skip  # fmt: skip
    click.echo(json.dumps(summary) if as_json else seen.table())
    shown = ", ".join(map(str, numbers))
    say(
        "Frames {shown}: {spots} spots, about {expected_noise:.0f} expected to be noise; quality above "
        "{automatic:.4g}. To take another: --threshold Q.".format_map({**summary, "shown": shown})
    )
    say(_radius_of(seen.settings, movie))
    if seen.other_sign:
        say(OTHER_SIGN[settings.dark])
