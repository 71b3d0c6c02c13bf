"""Options of commands for images and for parts of movies, and types for files and URLs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., object])


class Place(click.ParamType):
    """A path, or a URL as it is written."""

    name = "file or URL"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | Path:
        if "://" in str(value):
            return value
        path: Path = click.Path(path_type=Path).convert(value, param, ctx)
        return path


def part_options(unit: str) -> Callable[[_Function], _Function]:
    """Add ``--region``, ``--frames`` and ``--mask``; the region is in `unit`."""

    def add(function: _Function) -> _Function:
        for names, metavar, text in (
            (["--mask"], "FILE", "Only where this image, of one frame or of all, is not 0."),
            (["--frames"], "A:B", "Only these frames: from A to before B; either may be left out."),
            (["--region"], "Z0:Z1,Y0:Y1,X0:X1", f"Only this region, in {unit}; ':' is all."),
        ):
            function = click.option(*names, metavar=metavar, help=text)(function)
        return function

    return add


def box_option(function: _Function) -> _Function:
    """Add ``--periodic``."""
    return click.option(
        "--periodic", type=float, nargs=3, metavar="Z Y X",
        help="Size of a periodic box, as simulations have, in the unit of position x spacing; 0 along an "
        "axis that is not periodic.",
    )(function)  # fmt: skip


def opening_options(function: _Function) -> _Function:
    """Add the options that determine how images are opened."""
    for names, kind, default, metavar, text in (
        (["--level"], int, 0, "N", "Level of resolution, 0 is the finest (OME-Zarr, Imaris)."),
        (["--scene"], int, None, "N", "Image to use if MOVIE contains several, from 0."),
        (["--channel"], int, 0, "N", "Channel to use."),
        (["--axes"], str, None, "AXES", "Axes of MOVIE, if the file states none or wrong ones: TZYX, TYX, …"),
    ):
        function = click.option(
            *names, type=kind, default=default, show_default=default is not None, metavar=metavar, help=text
        )(function)
    return function
