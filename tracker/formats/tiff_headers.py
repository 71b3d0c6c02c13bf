"""What the headers of ImageJ and OME state in a TIFF file: size of a voxel, unit, interval, channels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from .decimals import decimal
from .tiff_scenes import Scene
from .units import TIMES, unit_of


@dataclass(frozen=True)
class Header:
    """Metadata of a file.

    `depth`: whether the file states the distance between planes. `scenes`: all scenes, if there are several
    and none was chosen.
    """

    axes: str
    sizes: tuple[int, ...]
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    unit: str = "pixel"
    interval: float | None = None
    depth: bool = False
    scenes: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()


def with_imagej(header: Header, tiff: Any) -> Header:
    """The header with what ImageJ states."""
    known = tiff.imagej_metadata or {}
    unit = str(known.get("unit", "")).encode("latin-1", "replace").decode("unicode_escape", "replace")
    tags = tiff.pages[0].tags
    across = [_per_unit(tags, name) for name in ("YResolution", "XResolution")]
    interval, clock = known.get("finterval"), TIMES.get(str(known.get("tunit", "s")).strip().lower(), 1.0)
    seconds = float(interval) * (clock or 1.0) if isinstance(interval, int | float) and interval > 0 else None
    if not unit or unit == "pixel":
        return replace(header, interval=seconds)
    spacing = (abs(float(known.get("spacing", 1.0))) or 1.0, across[0], across[1])
    deep = "spacing" in known
    return replace(header, spacing=spacing, unit=unit_of(unit), interval=seconds, depth=deep)


def _per_unit(tags: Any, name: str) -> float:
    if name not in tags:
        return 1.0
    value = tags[name].value
    pixels, units = value if isinstance(value, tuple) else (value, 1)
    return float(units) / float(pixels) if pixels and units else 1.0


def with_ome(header: Header, tiff: Any, scene: Scene, path: Path, lost: Sequence[str] | None) -> Header:
    """The header with what OME states; `lost` are files of the movie that are not there, None for any."""
    from defusedxml import ElementTree

    try:
        root = ElementTree.fromstring(tiff.ome_metadata or "", forbid_dtd=True)
    except Exception as error:  # a parse error, or an attack that defusedxml detects
        raise InputError(f"{path}: its OME header cannot be read ({error}). Save the file again.") from None
    found = [each for each in root.iter() if each.tag.rpartition("}")[2] == "Pixels"]
    place = scene.number if len(found) == len(tiff.series) else 0  # some planes may be in other files
    known = dict(found[place].attrib) if found else {}
    needed = math.prod(int(known.get(f"Size{axis}", 1)) for axis in "TZCYX")
    if needed > math.prod(header.sizes) and lost is not None:
        others = f"; there is no {lost[0]} beside it" if lost else ""
        raise InputError(
            f"{path}: its header declares {needed} voxels, {math.prod(header.sizes)} are there{others}. Copy "
            "all files of the movie into one folder; for the frames that are there: --frames 0:N."
        )
    unit = unit_of(known.get("PhysicalSizeXUnit", "µm" if "PhysicalSizeX" in known else None))
    sizes = [_positive(known.get(f"PhysicalSize{axis}")) for axis in "ZYX"]
    spacing = (sizes[0] or 1.0, sizes[1] or 1.0, sizes[2] or 1.0)
    interval = (_positive(known.get("TimeIncrement")) or 0) * TIMES.get(
        known.get("TimeIncrementUnit", "s"), 1.0
    )
    inside = [(each.tag.rpartition("}")[2], each.attrib) for each in (found[place] if found else ())]
    names = tuple(of.get("Name", "") for tag, of in inside if tag == "Channel")
    interval = interval or _interval_of([of for _, of in inside])
    return replace(
        header, spacing=spacing, unit=unit, interval=interval or None, depth=sizes[0] is not None,
        channels=names if len(names) > 1 and any(names) else (),
    )  # fmt: skip


def _interval_of(planes: Sequence[Mapping[str, str]]) -> float:
    """Mean time in seconds between the planes of one channel and depth, from their times; 0 if unknown."""
    times = {
        int(plane["TheT"]): decimal(plane["DeltaT"]) * TIMES.get(plane.get("DeltaTUnit", "s"), 1.0)
        for plane in planes
        if plane.get("TheZ") == plane.get("TheC") == "0"
        and plane.get("TheT", "").isdigit()
        and "DeltaT" in plane
        if _positive(plane["DeltaT"]) or plane["TheT"] == "0"
    }
    first, last = min(times, default=0), max(times, default=0)
    return max((times[last] - times[first]) / (last - first), 0.0) if last > first else 0.0


def _positive(text: str | None) -> float | None:
    try:
        value = decimal(text or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None
