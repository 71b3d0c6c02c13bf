"""Options that name columns which help to link."""

from __future__ import annotations

from typing import Literal

import click

from .terminal import Function


def _parsed(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Parse NAME and NAME:KIND to a mapping."""
    from ..columns import columns_of

    return columns_of(given)


column_option = click.option(
    "--column", multiple=True, callback=_parsed, metavar="NAME[:KIND]",
    help="Column that may help to link, beside those of outbid detect; may be repeated. KIND is number, "
    "angle=PERIOD, label, vector (NAME is a pattern, 'emb_*') or none.  [default: by its values]",
)  # fmt: skip


def marks_options(function: Function) -> Function:
    """Add ``--column`` and ``--no-columns``; `column_of` makes the setting of them."""
    alone = click.option("--no-columns", is_flag=True, help="Link by positions alone.")
    return column_option(alone(function))


def column_of(column: dict[str, str], no_columns: bool) -> dict[str, str] | Literal["auto"] | None:
    """The setting `TrackingSettings.column`."""
    if column and no_columns:
        raise click.UsageError("--no-columns leaves all out, also those of --column: give one of the two.")
    return None if no_columns else column or "auto"
