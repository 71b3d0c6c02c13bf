"""The command `outbid measure`: from tracks to tables of motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outbid.cli.config import config_option
from outbid.cli.piped import InputFile
from outbid.cli.terminal import columns_option, common_options, say

_FILE = click.Path(path_type=Path)


@click.command(
    no_args_is_help=True,
    help="""Measure the motion of TRACKS: speeds, diffusion, persistence, cycle times, with errors.

    \b
    Examples:
      outbid measure tracks.csv -o table.csv
      outbid measure tracks.csv -o table.xlsx --spacing 2 0.5 0.5 --interval 30
      outbid measure tracks.csv -o table.parquet --groups groups.csv --curves curves.csv --plot motion.png
      outbid measure control.csv treated.csv -o table.csv --comparison difference.csv
      outbid measure control/*.csv drug/*.csv -o table.xlsx --condition control=control --condition drug=drug
      outbid measure tracks.csv -o table.csv --group cell_type

    The table has one row for each track. Every column has its unit in its name: micrometers and seconds if
    the file, its run record, or --spacing and --interval state them. An Excel workbook contains all tables.
    Each of several TRACKS is a condition, or a movie of one by --condition: movies are then what is compared.
    Errors include those of linking if links have probabilities.
    """,
)
@click.argument("files", metavar="TRACKS...", nargs=-1, required=True, type=InputFile())
@click.option("-o", "--output", type=_FILE, required=True, help="Tracks: .csv, .tsv, .parquet or .xlsx.")
@click.option("--groups", type=_FILE, metavar="FILE", help="Also a table with a row for each group.")
@click.option("--movies", type=_FILE, metavar="FILE", help="Also a table with a row for each movie.")
@click.option("--curves", type=_FILE, metavar="FILE", help="Also mean square displacement and distributions.")
@click.option(
    "--detections", type=_FILE, metavar="FILE",
    help="Also a table of tracks with the velocity of each detection, its neighbours, and the drift.",
)  # fmt: skip
@click.option("--regions", type=_FILE, metavar="FILE", help="Also a table of stays in each --region.")
@click.option(
    "--region", "places", multiple=True, metavar="NAME=PLACE",
    help="A region: ranges of y,x or z,y,x (10:20,:50), centre and radius (15,25,8), or a file of labels; "
    "in the unit of the tables. May be repeated.",
)  # fmt: skip
@click.option(
    "--contact", type=click.FloatRange(min=0, min_open=True), metavar="R",
    help="Measure contacts: pairs of particles nearer than R.",
)  # fmt: skip
@click.option("--comparison", type=_FILE, metavar="FILE", help="Also the differences between groups.")
@click.option(
    "--condition", "conditions", multiple=True, metavar="NAME=PATTERN",
    help="Which TRACKS are movies of a condition: a folder, or a pattern of their paths. May be repeated.",
)  # fmt: skip
@click.option("--plot", type=_FILE, metavar="PNG", help="Also a picture of the curves, with fit.")
@click.option(
    "--group",
    metavar="COLUMN",
    help="Column of TRACKS that divides the tracks into groups, by its most frequent value in each.  "
    "[default: condition, if there is one; column movie then names its movies]",
)
@click.option(
    "--spacing", type=click.FloatRange(min=0, min_open=True), nargs=3, metavar="Z Y X",
    help="Size of a voxel in micrometers; positions are multiplied by it.  [default: the unit of TRACKS]",
)  # fmt: skip
@click.option(
    "--interval", type=click.FloatRange(min=0, min_open=True), metavar="S",
    help="Seconds between frames.  [default: that of the run record; else times are in frames]",
)  # fmt: skip
@click.option(
    "--drift", default="learned", show_default=True, metavar="learned|tracks|smooth|rigid|none",
    help="Drift that is subtracted: what tracking learned, the mean step of all tracks, this step smoothed "
    "over frames, or their shift and rotation. tracks=3,8 takes that of some tracks, such as beads.",
)  # fmt: skip
@click.option("--axes", metavar="AXES", help="Axes that count, such as yx.  [default: all that vary]")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap and of the draws of links."
)
@columns_option("--columns", "TRACKS")
@click.option("--overwrite", is_flag=True, help="Replace outputs if they exist.")
@config_option
@common_options
def measure(
    files: tuple[Path, ...],
    output: Path,
    groups: Path | None,
    movies: Path | None,
    curves: Path | None,
    detections: Path | None,
    regions: Path | None,
    places: tuple[str, ...],
    contact: float | None,
    comparison: Path | None,
    conditions: tuple[str, ...],
    plot: Path | None,
    group: str | None,
    spacing: tuple[float, float, float] | None,
    interval: float | None,
    drift: str,
    axes: str | None,
    seed: int,
    columns: dict[str, str],
    overwrite: bool,
) -> None:
    """Measure tracks."""
    from outbid import formats
    from outbid.formats.files.outputs import refuse_one_for_two, refuse_output
    from outbid.measuring import Surroundings
    from outbid.measuring import measure as measured
    from outbid.measuring.labels import column_of_conditions
    from outbid.measuring.tables import refuse_table, write_table
    from outbid.measuring.whole import named_patterns, read_with_records
    from outbid.work.jobs import run_record

    wanted = {
        "tracks": output, "groups": groups, "movies": movies, "curves": curves, "comparison": comparison,
        "detections": detections, "regions": regions,
    }  # fmt: skip
    tables = {name: path for name, path in wanted.items() if path is not None}
    refuse_one_for_two({f"--{name}": path for name, path in {**wanted, "plot": plot}.items()})
    for path in tables.values():
        refuse_table(path, overwrite=overwrite, inputs=files)
    if plot is not None:
        refuse_output(plot, overwrite=overwrite, inputs=files)
    read = read_with_records(files, columns, named_patterns(conditions))
    if group is None and not conditions:
        group = column_of_conditions([one.tracks for movies_of in read.values() for one in movies_of])
    settings: dict[str, Any] = {
        "group": group, "spacing": spacing, "interval": interval, "drift": drift, "axes": axes, "seed": seed,
    }  # fmt: skip
    if regions is not None and not places:
        raise click.UsageError("--regions is a table of stays in regions: name them by --region.")
    around = Surroundings.of(named_patterns(places, "--region"), contact)
    found = measured(read, **settings, around=around)
    record = {
        **run_record("measure", formats.input_of(files[0], columns)), "seed": seed, "settings": settings,
        "conditions": list(conditions), "regions": list(places), "contact": contact,
        "inputs": [formats.input_of(file, columns) for file in files], "remarks": list(found.remarks),
    }  # fmt: skip
    for name, path in tables.items():
        sheets = found.sheets if name == "tracks" else {name: getattr(found, name)}
        write_table(path, sheets, record=record, overwrite=overwrite)
    if plot is not None:
        from .motion import write_plot

        write_plot(plot, found, overwrite=overwrite)
    for remark in found.remarks:
        say(remark)
    say(f"{found}: {output}")
