"""The commands `outbid report` and `outbid view`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from outbid.cli.config import config_option
from outbid.cli.options import GroupedCommand
from outbid.cli.piped import InputFile
from outbid.cli.several import Outputs, Several, one_pair, out_dir_options, run_several
from outbid.cli.terminal import Stopwatch, columns_option, common_options, compilation_reported, say

if TYPE_CHECKING:
    from outbid.work.jobs import Opening

_FILE = click.Path(path_type=Path)


@click.command(
    cls=GroupedCommand,
    no_args_is_help=True,
    help="""Write a page about TRACKS: their reliability, scores, pictures, and links to check.

    \b
    Examples:
      outbid report tracks.csv
      outbid report tracks.csv truth.csv -o report.html
      outbid report tracks.xml -o report.html --spacing 2 0.5 0.5
      outbid report tracks/*.csv --truth truth/ --out-dir reports/ --jobs 4

    The page is one HTML file with all its pictures inside; it needs no network. With TRUTH the tracks are
    scored as `outbid score` does.
    """,
)
@click.argument("files", metavar="TRACKS... [TRUTH]", nargs=-1, required=True, type=InputFile())
@click.option(
    "--truth", type=_FILE, metavar="PATH",
    help="One truth for all TRACKS, or a folder with a truth of the same name for each.",
)  # fmt: skip
@click.option("-o", "--output", type=_FILE, help="The page.  [default: TRACKS_report.html]")
@click.option(
    "--gate", type=float, metavar="D",
    help="Largest distance at which detections are paired, in the unit of the positions.  "
    "[default: half of the median nearest-neighbour distance in the truth]",
)  # fmt: skip
@click.option(
    "--spacing", type=click.FloatRange(min=0, min_open=True), nargs=3, metavar="Z Y X",
    help="Size of a voxel; positions are multiplied by it.  [default: that of the run record, else 1 1 1]",
)  # fmt: skip
@click.option("--movie", type=_FILE, help="Movie of the tracks, shown around each uncertain link.")
@columns_option("--columns", "TRACKS")
@columns_option("--truth-columns", "TRUTH")
@out_dir_options
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@config_option
@common_options
def report(
    files: tuple[Path, ...],
    truth: Path | None,
    output: Path | None,
    gate: float | None,
    spacing: tuple[float, float, float] | None,
    movie: Path | None,
    columns: dict[str, str],
    truth_columns: dict[str, str],
    several: Outputs,
    overwrite: bool,
) -> None:
    """Write a page about tracks."""
    from outbid.formats.files.outputs import refuse_output, write_whole
    from outbid.work.score_job import Truth

    from .report_job import ReportJob

    clock = Stopwatch()
    tracks = files[0]
    if not several:
        tracks, truth = one_pair(files, truth)
    known = None if truth is None else Truth(str(truth.absolute()), truth_columns)
    shown = None if movie is None else str(movie.absolute())
    job = ReportJob(known, gate, spacing, columns, shown)
    if several:
        if output is not None:
            raise click.UsageError("--out-dir is of many tracks: leave --output out.")
        run_several(job, files, Several(several, ".html", overwrite))
        return
    output = output or tracks.with_name(f"{tracks.stem}_report.html")
    if output.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter("the output is a page: let its name end in .html.", param_hint="--output")
    sources = [path for path in (tracks, truth, movie) if path is not None]
    refuse_output(output, overwrite=overwrite, inputs=sources)
    with compilation_reported():
        page = job.page(str(tracks))
    if page.gate is not None and gate is None:
        say(str(page.gate))
    content = page.text.encode("utf-8", "backslashreplace")  # names of files need not be UTF-8
    write_whole(output, lambda file: file.write(content), overwrite=overwrite)
    say(f"{page.tracks} tracks, {clock.seconds:.2f} s: {output}")


@click.command(
    no_args_is_help=True,
    help="""Show FILES together in napari: a movie, points, tracks.

    \b
    Examples:
      outbid view movie.tif spots.csv tracks.csv
      outbid view stacks/ tracks.csv --spacing 5 1 1
      outbid view movie.tif tracks.csv --truth truth.csv
      outbid view movie.tif tracks.csv --screenshot picture.png
      outbid view images/ tracks.parquet --live

    A movie is a TIFF file or a folder of images; its frames are read when you look at them. With a truth,
    links are green if they are true, red if false, blue if missed. With --screenshot no window opens, and no
    display is needed. With --live, FILES are the source and the output of an outbid watch that goes on.
    """,
)
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--truth", type=_FILE, help="True tracks, which the first tracks of FILES are compared with.")
@click.option(
    "--spacing", type=click.FloatRange(min=0, min_open=True), nargs=3, metavar="Z Y X",
    help="Size of a voxel.  [default: that of the movie]",
)  # fmt: skip
@click.option("--axes", metavar="AXES", help="Axes of the movie if it does not state them: TZYX, TYX …")
@click.option("--channel", type=int, default=0, show_default=True, metavar="N", help="Channel to show.")
@click.option(
    "--scene", type=int, metavar="N", help="Image to show where a file holds several, counted from 0."
)
@click.option(
    "--positions", type=click.Choice(["auto", "voxels", "units"]), default="auto", show_default=True,
    help="Whether positions are in voxels or in the unit of the voxel size; auto decides by their unit.",
)  # fmt: skip
@click.option(
    "--gate", type=float, metavar="D",
    help="Detections at this distance or farther apart are never the same, in the unit of the voxel size.  "
    "[default: half of the median nearest-neighbour distance in the truth]",
)  # fmt: skip
@click.option(
    "--frames", type=click.IntRange(min=0), nargs=2, metavar="FIRST LAST",
    help="Frames of points and tracks.  [default: all, or as many as napari can show]",
)  # fmt: skip
@click.option("--screenshot", type=_FILE, metavar="PNG", help="Write a picture instead of opening a window.")
@click.option("--live", is_flag=True, help="Show what outbid watch follows, as it comes.")
@click.option(
    "--frame", type=click.IntRange(min=0), metavar="N",
    help="Frame of the picture.  [default: the last one, with all tracks]",
)  # fmt: skip
@columns_option("--columns", "all tables of FILES")
@columns_option("--truth-columns", "the truth")
@click.option("--overwrite", is_flag=True, help="Replace the picture if it exists.")
@config_option
@common_options
def view(
    files: tuple[Path, ...],
    truth: Path | None,
    spacing: tuple[float, float, float] | None,
    axes: str | None,
    channel: int,
    scene: int | None,
    positions: str,
    gate: float | None,
    frames: tuple[int, int] | None,
    screenshot: Path | None,
    live: bool,
    frame: int | None,
    columns: dict[str, str],
    truth_columns: dict[str, str],
    overwrite: bool,
) -> None:
    """Show files in napari: images, detections and tracks."""
    from outbid.formats.files.outputs import refuse_output, write_whole

    from .opened import open_files, scene_of
    from .scene import LAST_FRAME, refuse_frame
    from .screen import find_screen

    clock = Stopwatch()
    if screenshot is not None and screenshot.suffix.lower() != ".png":
        raise click.BadParameter(
            "the output is a picture: let its name end in .png.", param_hint="--screenshot"
        )
    if screenshot is None and frame is not None:
        raise click.BadParameter("it is the frame of a picture: give --screenshot.", param_hint="--frame")
    if live:
        from outbid.work.jobs import Opening

        _view_live(files, Opening(axes, channel, scene, spacing=spacing))
        return
    if screenshot is not None:
        sources = files if truth is None else [*files, truth]
        refuse_output(screenshot, overwrite=overwrite, inputs=sources)
    found = open_files(
        files, truth, spacing=spacing, axes=axes, channel=channel, scene=scene, columns=columns,
        truth_columns=truth_columns,
    )  # fmt: skip
    in_voxels = {"auto": None, "voxels": True, "units": False}[positions]
    around = 0 if screenshot is None else LAST_FRAME if frame is None else frame
    with compilation_reported():
        drawn = scene_of(found, spacing=spacing, in_voxels=in_voxels, gate=gate, frames=frames, around=around)
    refuse_frame(frame, drawn.layers, found.movie[1] if found.movie else None)
    for doubt in found.movie[1].doubts if found.movie else ():
        say(doubt)
    if drawn.cut:
        say(drawn.cut)
    if drawn.gate is not None and gate is None:
        say(str(drawn.gate))
    find_screen(virtual=screenshot is not None)

    from .window import open_window, png_of, show_until_closed

    viewer = open_window(", ".join(map(str, files)), drawn, found.movie)
    if screenshot is None:
        show_until_closed()
        return
    content = png_of(viewer, drawn, frame)
    write_whole(screenshot, lambda file: file.write(content), overwrite=overwrite)
    shown = ", ".join(layer.name for layer in viewer.layers if layer.visible)
    viewer.close()
    say(f"{shown}; {clock.seconds:.2f} s: {screenshot}")


def _view_live(files: tuple[Path, ...], opening: Opening) -> None:
    """Show what a watch follows, until the window is closed."""
    from .screen import find_screen

    if len(files) > 2 or files[-1].suffix != ".parquet":
        raise click.UsageError("--live takes the source and the output of outbid watch, a .parquet file.")
    find_screen(virtual=False)

    from .window import show_live

    show_live(str(files[0]) if len(files) > 1 else "", files[-1], opening)
