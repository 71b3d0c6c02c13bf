"""Values that `outbid track` takes in forms of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from ..pins import Pin


class UnmatchedCost(click.ParamType):
    """``half`` or ``full``, of the cost at the gate, or a number."""

    name = "half|full|U"

    def convert(
        self, value: float | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | Literal["full"] | None:
        if value == "full":
            return "full"
        return None if value == "half" else float(click.FLOAT(value, param, ctx))


def known_values(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> dict[str, float | tuple[float, ...]]:
    """Parse NAME=VALUE and NAME=Z,Y,X to a mapping."""
    from ..settings.fixed import by_present_names, known_of

    return dict(by_present_names(known_of(given), partial(click.echo, err=True)))


class PinTable(click.ParamType):
    """A table of pins; of a run record, the pins themselves."""

    name = "file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Pin, ...]:
        from ..pins import Pin, pin_of, read_pins

        if isinstance(value, str | Path):
            return read_pins(value)
        if not isinstance(value, list | tuple):
            self.fail("Give the table of pins.", param, ctx)
        return tuple(one if isinstance(one, Pin) else pin_of(one) for one in value)


def _column_values(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Parse NAME and NAME:KIND to a mapping."""
    from ..settings.columns import columns_of

    return columns_of(given)


def column_of(column: dict[str, str], no_columns: bool) -> dict[str, str] | Literal["auto"] | None:
    """The setting `TrackingSettings.features`."""
    if column and no_columns:
        raise click.UsageError("--no-features leaves all out, also those of --features: give one of the two.")
    return None if no_columns else column or "auto"


_SEVERAL: dict[str, Any] = {"multiple": True, "default": (), "show_default": False}
TRACKING: dict[str, dict[str, Any]] = {
    "unmatched_cost": {
        "type": UnmatchedCost(), "default": "half", "metavar": "half|full|U",
        "help": "Cost of leaving a detection unlinked, for each side: half or full of the gate's cost, or a "
        "number. Only with --max-distance.  [default: half]",
    },
    "fixed": _SEVERAL | {"callback": known_values},
    "features": _SEVERAL | {"callback": _column_values},
    "pins": {"type": PinTable(), "default": (), "show_default": False},
}  # fmt: skip
"""Arguments of click for settings with such values, by name."""
