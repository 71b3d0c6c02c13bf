"""Types of values that `outbid track` takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

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
    from ..known import known_of

    return known_of(given)


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
