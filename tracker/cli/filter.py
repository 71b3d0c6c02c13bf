"""The command `outbid filter`: keep the tracks that meet conditions."""

from __future__ import annotations

from pathlib import Path

import click

from .config import config_option
from .piped import InputFile, OutputFile, default_output, shown
from .terminal import columns_option, common_options, say


@click.command(
    "filter",
    no_args_is_help=True,
    help="""Keep the tracks that meet all conditions.

    \b
    Examples:
      outbid filter tracks.csv -o long.csv --min-length 10
      outbid filter tracks.csv -o safe.csv --cut-below 0.5 --min-length 5
      outbid filter tracks.csv -o sure.csv --min-confidence 0.9
      outbid filter tracks.csv -o bright.csv --where "mean(quality) > 20" --where "z < 40"
      outbid filter tracks.csv -o a.csv --where "type == A"

    Conditions are applied in the order of the list below. A track that is cut becomes two. A condition of
    --where applies to single detections, or with mean(), min() or max() to whole tracks. Columns are frame,
    z, y, x, length, link_probability and those of INPUT.
    """,
)
@click.argument("source", metavar="INPUT", type=InputFile())
@click.option("-o", "--output", type=OutputFile(), help="Tracks.  [default: INPUT_filtered.csv]")
@click.option(
    "--cut-below", type=click.FloatRange(0, 1), metavar="P", help="Cut links with a probability below P."
)
@click.option(
    "--where", "conditions", multiple=True, metavar="CONDITION",
    help="Condition on a column, as in the examples; may be repeated.",
)  # fmt: skip
@click.option(
    "--min-confidence", type=click.FloatRange(0, 1), metavar="P",
    help="Keep tracks whose links all have at least this probability.",
)  # fmt: skip
@click.option(
    "--min-length", type=click.IntRange(1), metavar="N", help="Keep tracks of N detections or more."
)
@click.option(
    "--max-length", type=click.IntRange(1), metavar="N", help="Keep tracks of at most N detections."
)
@columns_option("--columns", "INPUT")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@config_option
@common_options
def filter_tracks(
    source: Path,
    output: Path | None,
    cut_below: float | None,
    conditions: tuple[str, ...],
    min_confidence: float | None,
    min_length: int | None,
    max_length: int | None,
    columns: dict[str, str],
    overwrite: bool,
) -> None:
    """Keep some tracks."""
    from .. import formats
    from ..edit import filter as filtering
    from ..work.jobs import run_record

    output = output or default_output(source, "_filtered.csv")
    for text in conditions:
        filtering.condition_from(text)
    formats.check_output(output, overwrite=overwrite, inputs=[source])
    tracks = formats.read_tracks(source, columns=columns)
    kept = filtering.filter(
        tracks, cut_below=cut_below, where=conditions, min_confidence=min_confidence,
        min_length=min_length or 1, max_length=max_length,
    )  # fmt: skip
    settings = {
        "cut_below": cut_below, "conditions": list(conditions), "min_confidence": min_confidence,
        "min_length": min_length, "max_length": max_length,
    }  # fmt: skip
    record = run_record("filter", formats.input_of(source, columns)) | {"settings": settings, "seed": None}
    formats.write_tracks(output, kept, record=record, overwrite=overwrite)
    say(
        f"{kept.track_count:,} of {tracks.track_count:,} tracks, {len(kept.detections):,} of "
        f"{len(tracks.detections):,} detections, {kept.detections.calibration}: {shown(output)}"
    )
