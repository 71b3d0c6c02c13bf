"""The command `outbid learn`: fit one motion model to several movies."""

from __future__ import annotations

from pathlib import Path

import click

from .config import config_option
from .terminal import columns_option, common_options, compilation_reported, say

_FILE = click.Path(path_type=Path)


@click.command(
    no_args_is_help=True,
    help="""Learn one model from many movies.

    \b
    Examples:
      outbid learn control/*.csv treated/*.csv -o model.json
      outbid track treated/*.csv --out-dir tracks/ --model model.json

    INPUTS are tables of detections in one unit. The motion of particles and the rates of misses, starts
    and ends are learned from each movie; the model has the median of each value. Compare conditions only
    under one model: otherwise a difference may be due to the models.
    """,
)
@click.argument("sources", metavar="INPUTS", nargs=-1, required=True, type=_FILE)
@click.option("-o", "--output", type=_FILE, required=True, help="The model, as JSON.")
@click.option(
    "--spacing", type=float, nargs=3, default=(1.0, 1.0, 1.0), show_default=True, metavar="Z Y X",
    help="Size of a voxel: positions are multiplied by it.",
)  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Threads.  [default: one a core]")
@columns_option("--columns", "all INPUTS")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@config_option
@common_options
def learn(
    sources: tuple[Path, ...],
    output: Path,
    spacing: tuple[float, float, float],
    workers: int | None,
    columns: dict[str, str],
    overwrite: bool,
) -> None:
    """Learn one model from many movies."""
    from .. import formats
    from ..formats.files.outputs import refuse_output
    from ..tracking import TrackingSettings
    from ..work.pooled import learn_many, write_model

    refuse_output(output, overwrite=overwrite, inputs=list(sources))
    with compilation_reported():
        model = learn_many(sources, TrackingSettings(spacing=spacing), columns=columns, workers=workers)
    origins = [formats.input_of(source, columns) for source in sources]
    write_model(output, model, origins, overwrite=overwrite)
    say(f"{model}\n{output}")
