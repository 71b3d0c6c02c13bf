"""Options of commands for images and for parts of movies, and types for files and URLs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..settings.declare import Setting, declare
from .options import options_of
from .terminal import Function

if TYPE_CHECKING:
    from ..edit.crop import Crop


class PathOrUrl(click.ParamType):
    """A path, or a URL as it is written."""

    name = "file or URL"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | Path:
        if "://" in str(value):
            return value
        path: Path = click.Path(path_type=Path).convert(value, param, ctx)
        return path


DRY_RUN = Setting("Write nothing; print what would be done, with estimated time and memory.")


@dataclass(frozen=True)
class _CropTexts:
    """Part of a movie; the region is in {}."""

    region: str | None = declare(None, Setting(
        "Only this region, in {}; ':' is all.", metavar="Z0:Z1,Y0:Y1,X0:X1"
    ))  # fmt: skip
    frames: str | None = declare(None, Setting(
        "Only these frames: from A to before B; either may be left out.", metavar="A:B"
    ))  # fmt: skip
    mask: str | None = declare(None, Setting(
        "Only where this image, of one frame or of all, is not 0.", metavar="FILE"
    ))  # fmt: skip


@dataclass(frozen=True)
class _Opened:
    """How images are opened."""

    axes: str | None = declare(None, Setting(
        "Axes of MOVIE, if the file states none or wrong ones: TZYX, TYX, …", metavar="AXES"
    ))  # fmt: skip
    channel: int = declare(0, Setting("Channel to use.", metavar="N"))
    scene: int | None = declare(None, Setting("Image to use if MOVIE contains several, from 0.", metavar="N"))
    level: int = declare(0, Setting("Level of resolution, 0 is the finest (OME-Zarr, Imaris).", metavar="N"))
    spacing: tuple[float, float, float] | None = declare(None, Setting(
        "Size of a voxel.", automatic="as MOVIE states", metavar="Z Y X"
    ))  # fmt: skip


def _crop(region: str | None, frames: str | None, mask: str | None) -> Crop:
    from ..edit.crop import Crop

    return Crop(region, frames, mask)


def crop_options(unit: str) -> Callable[[Function], Function]:
    """Add ``--region``, ``--frames`` and ``--mask``; the region is in `unit`."""
    return options_of(_CropTexts, "crop", make=_crop, said=unit)


opening_options = options_of(_Opened, "opened", make=dict)
"""Decorator that adds the options that determine how images are opened."""
