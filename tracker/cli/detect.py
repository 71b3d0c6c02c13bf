"""The command `outbid detect`: find spots in image stacks."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..settings.declare import Setting, check_values, declare
from ..settings.detection import DetectionSettings
from .clusters import DaskCluster, cluster_options, on_a_cluster
from .config import config_option
from .options import GroupedCommand, options_of
from .parts import DRY_RUN, PathOrUrl, crop_options, opening_options
from .piped import OutputFile, refuse_json_beside_data, shown
from .several import Outputs, Several, only_one, run_several, several_options
from .terminal import Stopwatch, common_options, compilation_reported, progress_bar, say

if TYPE_CHECKING:
    from ..edit.crop import Crop
    from ..formats.images.frames import Images
    from ..work.jobs import DetectJob

_LOG = logging.getLogger("outbid")


@dataclass(frozen=True)
class _Detect:
    """How `detect` runs."""

    labels: bool = declare(False, Setting("MOVIE consists of label images: find their centroids."))
    intensity: str | None = declare(None, Setting(
        "With `labels`: write mean and maximum of each object in each channel of this movie.",
        metavar="IMAGES",
    ))  # fmt: skip
    preview: bool = declare(False, Setting(
        "Print the number of spots for several thresholds, and the automatic choice."
    ))  # fmt: skip
    preview_frames: tuple[int, ...] = declare((), Setting(
        "Frame of the preview.", automatic="the first, the middle and the last", option="--frame",
        metavar="N",
    ))  # fmt: skip
    dry_run: bool = declare(False, DRY_RUN)
    workers: int = declare(2, Setting("Threads; they do not change the result.", least=1, metavar="N"))
    resume: bool = declare(False, Setting("Continue an interrupted run on a cluster."))
    overwrite: bool = declare(False, Setting("Replace the output if it exists."))
    as_json: bool = declare(False, Setting("Print a summary as JSON on stdout.", option="--json"))

    def __post_init__(self) -> None:
        check_values(self)


@click.command(
    cls=GroupedCommand,
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
@click.argument("sources", metavar="MOVIE...", nargs=-1, required=True, type=PathOrUrl())
@click.option("-o", "--output", type=OutputFile(), help="Table of detections, .geff or .xml; - is stdout.")
@options_of(DetectionSettings, "values", make=dict, without=("spacing",))
@opening_options
@crop_options("voxels")
@options_of(_Detect, "how", special={"preview_frames": {"multiple": True, "show_default": False}})
@several_options
@cluster_options
@config_option
@common_options
def detect(
    sources: tuple[Path | str, ...],
    output: Path | None,
    values: dict[str, Any],
    opened: dict[str, Any],
    crop: Crop,
    how: _Detect,
    several: Outputs,
    cluster: DaskCluster,
) -> None:
    """Find spots in a movie."""
    from ..work.jobs import DetectJob, Opening

    clock = Stopwatch()
    _refuse_contradictions(output, how, several, cluster)
    settings = DetectionSettings(**values)
    job = DetectJob(settings, how.labels, Opening(**opened), crop, how.workers, intensity=how.intensity)
    gpus = settings.device == "gpu"
    if several:
        run_several(
            job, sources, Several(several, "", how.overwrite, how.as_json, cluster, how.workers, gpus)
        )
        return
    source = str(only_one(sources))
    if cluster:
        _on_a_cluster(job, source, output, clock, how, cluster)
        return
    _here(job, source, output, how, clock)


def _refuse_contradictions(output: Path | None, how: _Detect, several: Outputs, cluster: DaskCluster) -> None:
    """Raise an error for options that exclude each other."""
    if how.preview and (how.labels or output):
        raise click.UsageError("--preview shows spots and writes nothing: leave --labels and --output out.")
    if how.intensity and (not how.labels or several):
        raise click.UsageError("--intensity is of one movie of --labels: add --labels, or leave it out.")
    if several and (how.preview or output or how.resume or how.dry_run):
        raise click.UsageError(
            "--out-dir is of many movies: leave --preview, --output, --resume and --dry-run out."
        )
    if how.dry_run and (how.preview or cluster):
        raise click.UsageError("--dry-run is of this machine: leave --preview, --cluster, --scheduler out.")
    if not how.preview and output is None and not several:
        raise click.UsageError("Missing option '-o' / '--output': where the detections go.")
    refuse_json_beside_data(how.as_json)


def _here(job: DetectJob, source: str, output: Path | None, how: _Detect, clock: Stopwatch) -> None:
    """Detect in this process, or show a preview, or say what it would take."""
    from .. import formats
    from ..detection.frames import expected_noise, null_of
    from ..detection.suited import radius_said

    labels, as_json = job.labels, how.as_json
    if output is not None:
        formats.check_output(output, overwrite=how.overwrite, inputs=[Path(source)])
    movie = job.open(source)
    _LOG.info("axes %s, sizes %s, voxel %s %s", movie.axes, movie.sizes, movie.spacing, movie.unit)
    for remark in job.remarks(movie):
        say(remark)
    if how.dry_run and output is not None:
        _estimate(job, movie, shown(output), as_json)
        return
    if output is None:
        _preview(movie, replace(job.settings, spacing=movie.spacing), how.preview_frames, as_json)
        return
    with progress_bar("Detecting") as bar:
        found, settings = job.write(movie, source, output, overwrite=how.overwrite, progress=bar)
    summary = {
        "output": shown(output), "detections": len(found), "frames": job.frame_count(movie),
        "axes": movie.axes, "radius": settings.radius, "radius_z": settings.radius_z, "unit": movie.unit,
        "device": settings.device, "expected_noise": None if labels else expected_noise(found),
        "null": None if labels else null_of(settings), "seconds": clock.seconds,
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(summary))
    _LOG.info("%d frames (%s), %.2f s.", summary["frames"], movie.axes, clock.seconds)
    if not labels:
        _LOG.info("%s", null_of(settings))
    counted = f"{len(found):,} {'objects' if labels else 'spots'} in {summary['frames']:,} frames"
    sure = [] if labels else [
        f"about {expected_noise(found):.0f} of them noise", radius_said(settings, movie).removesuffix(".")
    ]  # fmt: skip
    line = "; ".join([counted, *(sure if len(found) else []), str(found.calibration)])
    following = f" Next: outbid track {output}." if len(found) and shown(output) != "stdout" else ""
    say(f"{shown(output)}: {line}.{following}")
    if not len(found):
        why = "" if labels or settings.radius is not None else f" {radius_said(settings, movie)}"
        say(f"Nothing was found.{why} To see what there is: outbid detect --preview, with the same options.")


def _on_a_cluster(
    job: DetectJob,
    source: str,
    output: Path | None,
    clock: Stopwatch,
    how: _Detect,
    cluster: DaskCluster,
) -> None:
    """Detect spots chunk by chunk, in other processes or on other machines."""
    from ..work.chunks.movie import detect_in_chunks

    if output is None:
        raise click.UsageError("--preview is of one frame: leave --cluster and --scheduler out.")
    gpus = job.settings.device == "gpu"
    with on_a_cluster(cluster, job.workers, overwrite=how.overwrite, resume=how.resume, gpus=gpus) as runs:
        summary = detect_in_chunks(source, output, job, runs)
    report = {"output": shown(output), **summary, "seconds": clock.seconds}
    if how.as_json:
        click.echo(json.dumps(report))
    _LOG.info("%d chunks, %.2f s.", report["ranges"], clock.seconds)
    counted = "{detections:,} {of} in {frames:,} frames; {units}".format_map(
        {**report, "of": "objects" if job.labels else "spots"}
    )
    say(f"{shown(output)}: {counted}. Next: outbid track {output}.")


def _estimate(job: DetectJob, movie: Images, output: str, as_json: bool) -> None:
    """Print what the command would do, with estimated time and memory."""
    from ..detection.suited import radius_said
    from ..work.estimate import estimate_detection

    with compilation_reported():
        expected, settings = estimate_detection(job, movie)
    if as_json:
        click.echo(json.dumps({"output": output, "settings": asdict(settings), **asdict(expected)}))
        return
    how = "centroids of labels" if job.labels else radius_said(settings, movie).removesuffix(".")
    click.echo(f"Would detect in {movie.name} to {output}; {how}. Nothing was written.\n{expected}")


def _preview(movie: Images, settings: DetectionSettings, chosen: tuple[int, ...], as_json: bool) -> None:
    """Print the number of spots in some frames for several thresholds."""
    from ..detection.frames import learn_from
    from ..detection.model import OTHER_SIGN
    from ..detection.preview import preview, preview_numbers
    from ..detection.suited import radius_said

    numbers = list(chosen) or preview_numbers(movie.frame_count)
    learned = learn_from(movie.frames, movie.frame_count, settings)
    seen = preview(list(movie.frames(numbers)), settings, learned=learned)
    steps = seen.thresholds()
    summary = {
        "frames": numbers, "radius": seen.settings.radius, "radius_z": seen.settings.radius_z,
        "unit": movie.unit, "automatic": seen.automatic,
        "spots": int(seen.count_above(seen.threshold)),
        "expected_noise": float(seen.false_above(seen.threshold)),
        "thresholds": steps.tolist(), "spots_above": seen.count_above(steps).tolist(),
    }  # fmt: skip
    click.echo(json.dumps(summary) if as_json else seen.table())
    shown = ", ".join(map(str, numbers))
    say(
        "Frames {shown}: {spots} spots, about {expected_noise:.0f} expected to be noise; quality above "
        "{automatic:.4g}. To take another: --threshold Q.".format_map({**summary, "shown": shown})
    )
    say(radius_said(seen.settings, movie).capitalize())
    if seen.other_sign:
        say(OTHER_SIGN[settings.dark])
