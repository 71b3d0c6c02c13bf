"""Which images of a TIFF file are read, and what the headers of ImageJ and OME state of them.

tifffile groups the pages of a file into series and reads the first one. Here each series is a scene. Scenes
that are not read are reported, and images that were written one by one are joined to a movie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.calibration import Calibration
from ..files.decimals import decimal, decimal_or_nan
from ..files.units import TIMES, unit_of
from .stacks import listed, refuse_absent

_BY_LIKENESS = {"generic", "uniform", "shaped"}
"""Kinds of series that are not named as separate images by a header."""


@dataclass(frozen=True, eq=False)
class TiffImage:
    """The part of a file that is read."""

    series: tuple[Any, ...]  # of tifffile, of one kind and size; several of them form a first axis, called I
    number: int = 0  # of the first series
    choice: tuple[str, ...] = ()  # all scenes, if the file has more than `series` and none was chosen

    @property
    def axes(self) -> str:
        """As tifffile names them."""
        return "I" * (len(self.series) > 1) + str(self.series[0].axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Length of each of the axes."""
        own = tuple(int(size) for size in self.series[0].shape)
        return (len(self.series), *own) if len(self.series) > 1 else own


def scene_of(path: Path, tiff: Any, number: int | None) -> TiffImage:
    """The scene with this number; if none is given, all images that are frames of one movie.

    Raises
    ------
    SettingsError
        If there is no such scene.
    InputError
        If no scene is chosen and the images differ in size or type, or some belong to no scene.
    """
    images = [one for one in tiff.series if not one.keyframe.is_reduced] or list(tiff.series)
    large = [
        one for one in tiff.series if one not in images and one.keyframe.shape == images[0].keyframe.shape
    ]
    if large and number is None:  # otherwise it would be skipped silently
        raise InputError(
            f"{path} marks an image as a reduced one that is as large as the others (page "
            f"{large[0].keyframe.index}). Save the file again; to leave it out: --scene 0."
        )
    if number is not None:
        refuse_absent("scene", number, path, len(images))
        return TiffImage((images[number],), number)
    _refuse_unknown_pages(path, tiff, images)
    if len(images) == 1:
        return TiffImage((images[0],))
    if images[0].kind not in _BY_LIKENESS:
        return TiffImage((images[0],), choice=tuple(map(_described, images)))
    alike = {(one.kind, one.axes, tuple(one.shape), str(one.dtype)) for one in images}
    if len(alike) == 1 and "T" not in images[0].axes:
        return TiffImage(tuple(images))
    raise InputError(
        f"{path} holds {len(images)} images that do not fit together ({listed([*map(_described, images)])}). "
        "Choose one with --scene, or save them as one stack."
    )


def planes_of(
    tiff: Any, scene: TiffImage, planes: list[int], refuse: Callable[[list[Any], Any], None]
) -> NDArray:
    """Read planes, numbered through all series of the scene, as a (planes, samples) array.

    `refuse` checks the pages to be decoded against a reference page.
    """
    first = scene.series[0]
    count = math.prod(first.shape[: len(first.axes.rstrip("S")) - 2])
    samples = math.prod(first.shape) // count
    pieces = []
    for number, group in groupby(planes, key=lambda plane: plane // count):
        series, own = scene.series[number], [plane % count for plane in group]
        if math.prod(series.keyframe.shape) == samples:
            pages = [series.pages[plane] for plane in own]
            refuse(pages, series.keyframe)
            for handle in {page.parent.filehandle for page in pages if page is not None}:
                if handle.closed:  # one of several files
                    handle.open()
            found = tiff.asarray(key=own, series=series)
        else:  # several planes in one page
            refuse(list(series.pages), series.keyframe)
            found = series.asarray().reshape(count, -1)[own]
        pieces.append(found.reshape(len(own), samples))
    return np.concatenate(pieces)


def _described(image: Any) -> str:
    """A description of a series: name, size and type."""
    name = f"{str(image.name)[:40]!r} " if image.name else ""
    return f"{name}{' x '.join(map(str, image.shape))} {image.dtype}"


def _refuse_unknown_pages(path: Path, tiff: Any, images: list[Any]) -> None:
    """Refuse a file with images that belong to no scene because its header describes fewer."""
    count = len(tiff.pages)
    if count <= sum(len(one.pages) for one in tiff.series):
        return
    there = sum(not tiff.pages.get(page, aspage=True).is_reduced for page in range(count))
    described = sum(len(one.pages) for one in images)
    if there > described:
        raise InputError(
            f"{path} holds {there} images, of which its header describes {described}. Save the file again; "
            "to read no more than the header describes: --scene 0."
        )


@dataclass(frozen=True)
class Header:
    """Metadata of a file."""

    axes: str
    sizes: tuple[int, ...]
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    unit: str = "pixel"
    interval: float | None = None
    depth: bool = False  # whether the file states the distance between planes
    scenes: tuple[str, ...] = ()  # all, if there are several and none was chosen
    channels: tuple[str, ...] = ()
    levels: tuple[tuple[int, ...], ...] = ()  # none
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    white_is_zero: bool = False  # whether the file says that its lowest number is white
    times: tuple[float, ...] = ()  # seconds of each frame, if the file states them


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


def with_ome(header: Header, tiff: Any, scene: TiffImage, path: Path, lost: Sequence[str] | None) -> Header:
    """The header with what OME states; `lost` are files of the movie that are not there, None for any."""
    found = _pixels(path, tiff.ome_metadata)
    index = scene.number if len(found) == len(tiff.series) else 0  # some planes may be in other files
    known = dict(found[index].attrib) if found else {}
    needed = math.prod(int(known.get(f"Size{axis}", 1)) for axis in "TZCYX")
    if needed > math.prod(header.sizes) and lost is not None:
        others = f"; there is no {lost[0]} beside it" if lost else ""
        raise InputError(
            f"{path}: its header declares {needed} voxels, {math.prod(header.sizes)} are there{others}. Copy "
            "all files of the movie into one folder; for the frames that are there: --frames 0:N."
        )
    units = {axis: unit_of(known.get(f"PhysicalSize{axis}Unit", "µm")) for axis in "ZYX"
             if _positive(known.get(f"PhysicalSize{axis}"))}  # fmt: skip
    unit = units.get("X", "pixel")
    sizes = [
        size and size * _factor(path, units, axis)
        for axis in "ZYX" for size in [_positive(known.get(f"PhysicalSize{axis}"))]
    ]  # fmt: skip
    spacing = (sizes[0] or 1.0, sizes[1] or 1.0, sizes[2] or 1.0)
    interval = (_positive(known.get("TimeIncrement")) or 0) * TIMES.get(
        known.get("TimeIncrementUnit", "s"), 1.0
    )
    inside = [(each.tag.rpartition("}")[2], each.attrib) for each in (found[index] if found else ())]
    names = tuple(of.get("Name", "") for tag, of in inside if tag == "Channel")
    times = _times_of([of for tag, of in inside if tag == "Plane"])
    interval, all_known = interval or _interval_of(times), len(times) == max(times, default=0) + 1
    return replace(
        header, spacing=spacing, unit=unit, interval=interval or None, depth=sizes[0] is not None,
        times=tuple(times[frame] for frame in sorted(times)) if all_known else (),
        channels=names if len(names) > 1 and any(names) else (),
    )  # fmt: skip


def _pixels(path: Path, text: str | None) -> list[Any]:
    """The elements of an OME header that state images."""
    from defusedxml import ElementTree

    try:
        root = ElementTree.fromstring(text or "", forbid_dtd=True)
    except Exception as error:  # a parse error, or an attack that defusedxml detects
        raise InputError(f"{path}: its OME header cannot be read ({error}). Save the file again.") from None
    return [each for each in root.iter() if each.tag.rpartition("}")[2] == "Pixels"]


def planes_in_ome(path: Path, text: str | None, scene: int, channel: int) -> dict[int, list[tuple[str, int]]]:
    """The file and the page of each plane of a channel, by z, for each frame that an OME header states."""
    found = _pixels(path, text)
    if scene >= len(found):
        return {}
    pixels = found[scene]
    axes = pixels.get("DimensionOrder", "XYZCT")[:1:-1]  # the last varies fastest
    sizes = [int(pixels.get(f"Size{axis}", 1)) for axis in axes]
    pages: dict[tuple[int, int], tuple[str, int]] = {}
    for data in (each for each in pixels if each.tag.rpartition("}")[2] == "TiffData"):
        name = next((each.get("FileName") for each in data if each.get("FileName")), path.name)
        begin = int(np.ravel_multi_index([int(data.get(f"First{axis}", 0)) for axis in axes], sizes))
        many = int(data.get("PlaneCount", 1 if "IFD" in data.attrib else math.prod(sizes) - begin))
        for k, place in enumerate(zip(*np.unravel_index(range(begin, begin + many), sizes), strict=True)):
            at = dict(zip(axes, map(int, place), strict=True))
            if at["C"] == channel:
                pages[at["T"], at["Z"]] = name, int(data.get("IFD", 0)) + k
    deep = int(pixels.get("SizeZ", 1))
    frames = [[pages.get((t, z)) for z in range(deep)] for t in range(int(pixels.get("SizeT", 1)))]
    return {t: [plane for plane in planes if plane] for t, planes in enumerate(frames) if all(planes)}


def _factor(path: Path, units: Mapping[str, str], axis: str) -> float:
    """By which sizes along an axis are multiplied to be in the unit of x; InputError if there is none."""
    factor = Calibration(units[axis]).factor(units.get("X", "pixel"))
    if factor is None:
        raise InputError(
            f"{path}: voxels are in {units.get('X', 'pixel')} along x and in {units[axis]} along "
            f"{axis.lower()}. Write one unit for all axes."
        )
    return factor


def _times_of(planes: Sequence[Mapping[str, str]]) -> dict[int, float]:
    """Seconds of the planes of one channel and depth, by the number of their frame."""
    return {
        int(plane["TheT"]): decimal(plane["DeltaT"]) * TIMES.get(plane.get("DeltaTUnit", "s"), 1.0)
        for plane in planes
        if plane.get("TheZ") == plane.get("TheC") == "0"
        and plane.get("TheT", "").isdigit()
        and "DeltaT" in plane
        if _positive(plane["DeltaT"]) or plane["TheT"] == "0"
    }


def _interval_of(times: Mapping[int, float]) -> float:
    """Mean time in seconds between frames; 0 if unknown."""
    first, last = min(times, default=0), max(times, default=0)
    return max((times[last] - times[first]) / (last - first), 0.0) if last > first else 0.0


def _positive(text: str | None) -> float | None:
    value = decimal_or_nan(text or "nan")
    return value if math.isfinite(value) and value > 0 else None
