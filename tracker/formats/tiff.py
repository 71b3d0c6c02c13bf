"""TIFF as written by ImageJ, OME software and tifffile: metadata, and planes frame by frame.

For a truncated file, tifffile only logs a warning and reads the remaining part. So the declared sizes are
compared with the actual content before anything is read.
"""

from __future__ import annotations

import logging
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, OutbidError, ResourceError
from .decimals import decimal
from .tiff_scenes import Scene, planes_of, scene_of
from .units import unit_of

_DECIDING = {256, 257, 258, 259, 266, 277, 278, 284, 317, 322, 323, 338, 339}
"""Tags that determine how the bytes of an image are decoded."""
_SINGLE = _DECIDING - {258, 338, 339}
"""Those of them that hold one whole number; the others hold one for each sample."""
_LSM = 34412
"""Tag of Zeiss' files, whose strips are not divided as their header says."""
_STRIPS_AND_TILES = {273, 324}
"""Tags with the offsets of the data; readers differ in which of the two they use."""
_PLACES = {273, 279, 324, 325}
"""Tags with the offsets and with the lengths of the data."""
_UNSIGNED = {3, 4, 13, 16, 18}
"""Tag types of unsigned whole numbers: data at a negative offset are read as a page of zeros."""
_NUMBERS = {1: "B", 3: "H", 4: "I", 8: "h", 9: "i", 16: "Q"}  # tag types of whole numbers
_WIDTHS = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}  # their sizes


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


def look_at_tiff(path: Path, number: int | None = None) -> Header:
    """Axes, sizes, voxel size and frame interval of a scene, or of the whole file if no number is given.

    Raises
    ------
    InputError
        If the file is damaged or truncated, or holds images of different size or type.
    SettingsError
        If there is no scene of this number.
    """
    pages = _deciding_tags(path)
    with _opened(path) as tiff:
        scene = scene_of(path, tiff, number)
        for series in scene.series:
            _refuse_if_cut_short(path, tiff, series)
            _refuse_unlike_pages(path, series, pages)
        header = Header(scene.axes, scene.sizes, scenes=scene.choice)
        if tiff.is_ome:
            return _with_ome(header, tiff, scene, path)
        if tiff.is_imagej:
            return _with_imagej(header, tiff)
        marks = {"OME": "<OME "} | ({} if tiff.is_shaped else {"tifffile": '"shape": ['})
        for name, mark in marks.items():
            if mark in tiff.pages[0].description:
                raise InputError(
                    f"{path}: its {name} header is cut short, so axes are unknown. Save the file again."
                )
    return header


class _opened:
    """Open a TIFF file; errors of tifffile about damaged data become an InputError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unheard = logging.NullHandler()  # keeps its log off the screen

    def __enter__(self) -> Any:
        import tifffile

        self._tiff = None
        logging.getLogger("tifffile").addHandler(self._unheard)
        try:
            # An OME header may name other files anywhere on the disk; only this file is opened.
            self._tiff = tifffile.TiffFile(self._path, _multifile=False)
            if not self._tiff.series:
                raise InputError(f"{self._path} holds no image. Check where it was made.")
        except Exception as error:
            self.__exit__(type(error), error, None)
            raise
        return self._tiff

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        logging.getLogger("tifffile").removeHandler(self._unheard)
        if self._tiff is not None:
            self._tiff.close()
        # tifffile and the codecs raise many kinds of errors at damaged data.
        if isinstance(error, Exception) and not isinstance(error, OutbidError | MemoryError):
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            if "requires the 'imagecodecs' package" in reason:
                raise ResourceError(
                    f"{self._path}: {reason}. Install it: pip install 'outbid[images]'."
                ) from None
            raise InputError(f"{self._path} cannot be read as TIFF: {reason}. It may be damaged.") from None


def _deciding_tags(path: Path) -> dict[int, dict[int, int]]:
    """Tags that determine how each page is decoded, by the offset of the page.

    The pages form a linked list. If the last page is not marked as such, the file is truncated.
    """
    size = path.stat().st_size
    found: dict[int, dict[int, int]] = {}
    with path.open("rb") as file:
        head = file.read(16)
        order = {b"II": "<", b"MM": ">"}.get(head[:2])
        if order is None or len(head) < 8:
            raise InputError(f"{path} does not begin as TIFF does. Check what it is.")
        (version,) = struct.unpack(order + "H", head[2:4])
        big = version == 43
        entry, count_form, offset_form = (20, "Q", "Q") if big else (12, "H", "I")
        (offset,) = (
            struct.unpack_from(order + offset_form, head, 8 if big else 4) if len(head) == 16 else (0,)
        )
        while offset:
            cut = (
                f"{path} is cut short: page {len(found)} would be at byte {offset} of {size}. Copy it again."
            )
            if offset in found or offset >= size:
                raise InputError(cut)
            deciding = found[offset] = {}
            file.seek(offset)
            start = file.read(struct.calcsize(count_form))
            if len(start) < struct.calcsize(count_form):
                raise InputError(cut)
            (tags,) = struct.unpack(order + count_form, start)
            if offset + len(start) + tags * entry + struct.calcsize(offset_form) > size:
                raise InputError(cut)
            counts: dict[int, int] = {}
            for tag in range(tags):
                content = file.read(entry)
                name, kind, count, value = struct.unpack(order + "HH" + 2 * offset_form, content)
                _refuse_odd_entry(path, len(found) - 1, (name, kind, count), counts)
                counts[name] = count
                form, place = order + _NUMBERS.get(kind, "Q"), 4 + struct.calcsize(offset_form)
                if name in _DECIDING and count == 1 and struct.calcsize(form) <= entry - place:
                    (deciding[name],) = struct.unpack_from(form, content, place)
                length = count * _WIDTHS.get(kind, 1)
                if length > struct.calcsize(offset_form) and value + length > size:
                    raise InputError(
                        f"{path} is cut short: tag {tag} of page {len(found) - 1} would end at byte "
                        f"{value + length} of {size}. Copy it again."
                    )
            _refuse_odd_page(path, len(found) - 1, counts, deciding)
            (offset,) = struct.unpack(order + offset_form, file.read(struct.calcsize(offset_form)))
    return found


def _refuse_odd_entry(path: Path, page: int, entry: tuple[int, int, int], before: Mapping[int, int]) -> None:
    """Refuse an entry (tag, type, number of values) that readers understand in different ways.

    `before`: the number of values of each tag that precedes it in the page.
    """
    name, kind, count = entry
    if name in _SINGLE and (count != 1 or kind not in _NUMBERS or name in before):
        reason = f"is not one whole number (type {kind}, {count + before.get(name, 0)} values)"
    elif name in _DECIDING and kind not in _NUMBERS:
        reason = f"holds values of type {kind}, not whole numbers"
    elif name in _PLACES and (kind not in _UNSIGNED or name in before):
        reason = f"places its data by values of type {kind}, not by unsigned numbers given once"
    else:
        return
    raise InputError(f"{path}: tag {name} of page {page} {reason}. It may be damaged; save the file again.")


def _refuse_odd_page(path: Path, page: int, counts: Mapping[int, int], deciding: Mapping[int, int]) -> None:
    """Refuse a page whose tags contradict each other. `counts`: number of values of each tag."""
    pieces = 0 if _LSM in counts else counts.get(273, counts.get(324, 0))
    sizes = counts.get(279, counts.get(325, pieces))
    if counts.keys() >= _STRIPS_AND_TILES:
        reason = "is in strips and in tiles, which none can be"
    elif deciding.get(317, 1) != 1 == deciding.get(259, 1):  # readers differ in whether they apply it
        reason = "has a predictor (tag 317), but no compression that uses it"
    elif pieces > 0 and pieces != sizes:
        reason = f"has {pieces} strips or tiles, but the sizes of {sizes}"
    elif 0 < pieces < (needed := _pieces(deciding)):
        reason = f"is in {pieces} strips or tiles where its header needs {needed}"
    else:
        return
    raise InputError(f"{path}: page {page} {reason}. It may be damaged; save the file again.")


def _pieces(tags: Mapping[int, int]) -> int:
    """How many strips or tiles make a page with these tags.

    Examples
    --------
    >>> _pieces({256: 100, 257: 90, 278: 20})
    5
    >>> _pieces({256: 100, 257: 90, 322: 64, 323: 64, 277: 3, 284: 2})
    12
    """
    width, length = tags.get(256, 0), tags.get(257, 0)
    wide, high = (tags.get(322), tags.get(323)) if 322 in tags else (width, tags.get(278))
    planes = tags.get(277, 1) if tags.get(284) == 2 else 1
    return -(-width // (wide or width or 1)) * -(-length // (high or length or 1)) * planes


def _refuse_unlike_pages(path: Path, series: Any, pages: dict[int, dict[int, int]]) -> None:
    """Refuse a page whose tags differ from those of the first page, by which the whole series is decoded."""
    if series.dataoffset is not None:  # their bytes are read as one block
        return
    first = pages.get(series.keyframe.offset)
    for index, page in enumerate(series.pages):
        other = None if page is None else pages.get(page.offset)
        if first is not None and other is not None and other != first:
            tag = min(name for name in {*first, *other} if first.get(name) != other.get(name))
            raise InputError(
                f"{path}: plane {index} is stored in another way than the first (tag {tag}: "
                f"{other.get(tag)}, {first.get(tag)}). It may be damaged; save the file again."
            )


def _refuse_if_cut_short(path: Path, tiff: Any, series: Any) -> None:
    """Compare the declared number of images, and their sizes in bytes, with the file."""
    size = path.stat().st_size
    declared = math.prod(series.shape)
    if tiff.is_imagej:
        images = int((tiff.imagej_metadata or {}).get("images", 1))
        if images * math.prod(tiff.pages[0].shape) > declared:
            raise InputError(
                f"{path} is cut short: {images} images are declared, fewer are there. Copy it again."
            )
    elif tiff.is_shaped:
        shape = _shape_in(series.keyframe.description)
        if shape and math.prod(shape) > declared:
            raise InputError(
                f"{path} is cut short: {shape} is declared, {series.shape} is there. Copy it again."
            )
    planes = math.prod(series.shape[: -len(series.keyframe.shape)])
    if series.dataoffset is not None:
        if series.dataoffset == 0:  # where the header is
            raise InputError(f"{path}: plane 0 is not stored. Copy the file again.")
        end = series.dataoffset + series.nbytes
        if end > size:
            raise InputError(f"{path} is cut short: {size} bytes, where {end} are declared. Copy it again.")
        return
    if len(series.pages) < planes:
        raise InputError(
            f"{path} is cut short: {len(series.pages)} of {planes} planes are there. Copy it again."
        )
    for index, page in enumerate(series.pages):
        if page is None:
            raise InputError(
                f"{path}: plane {index} is missing. The file may be one of several; convert them to one."
            )
        ends = [o + n for o, n in zip(page.dataoffsets, page.databytecounts, strict=True)]
        stored = sum(page.databytecounts)
        if 0 in page.databytecounts or 0 in page.dataoffsets:  # tifffile would read zeros
            raise InputError(f"{path}: a part of plane {index} is not stored. Copy the file again.")
        if max(ends, default=0) > size or (page.compression == 1 and stored < page.nbytes):
            raise InputError(f"{path} is cut short: plane {index} is not whole. Copy it again.")


def _shape_in(description: str) -> tuple[int, ...]:
    """The array shape that tifffile writes into the first page."""
    found = re.search(r'shape"?\s*[=:]\s*[\[(]([\d,\s]+)[\])]', description)
    return tuple(int(n) for n in found[1].split(",") if n.strip()) if found else ()


def _with_imagej(header: Header, tiff: Any) -> Header:
    known = tiff.imagej_metadata or {}
    unit = str(known.get("unit", "")).encode("latin-1", "replace").decode("unicode_escape", "replace")
    tags = tiff.pages[0].tags
    across = [_per_unit(tags, name) for name in ("YResolution", "XResolution")]
    interval = known.get("finterval")
    seconds = float(interval) if isinstance(interval, int | float) and interval > 0 else None
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


def _with_ome(header: Header, tiff: Any, scene: Scene, path: Path) -> Header:
    from defusedxml import ElementTree

    try:
        root = ElementTree.fromstring(tiff.ome_metadata or "", forbid_dtd=True)
    except Exception as error:  # a parse error, or an attack that defusedxml detects
        raise InputError(f"{path}: its OME header cannot be read ({error}). Save the file again.") from None
    found = [dict(e.attrib) for e in root.iter() if e.tag.rpartition("}")[2] == "Pixels"]
    place = scene.number if len(found) == len(tiff.series) else 0  # some planes may be in other files
    known = found[place] if found else {}
    needed = math.prod(int(known.get(f"Size{axis}", 1)) for axis in "TZCYX")
    if needed > math.prod(header.sizes):
        raise InputError(
            f"{path} is cut short or one file of several: its header declares {needed} voxels, "
            f"{math.prod(header.sizes)} are there. Copy it again, or convert them to one file."
        )
    unit = unit_of(known.get("PhysicalSizeXUnit", "µm" if "PhysicalSizeX" in known else None))
    sizes = [_positive(known.get(f"PhysicalSize{axis}")) for axis in "ZYX"]
    spacing = (sizes[0] or 1.0, sizes[1] or 1.0, sizes[2] or 1.0)
    interval = _positive(known.get("TimeIncrement"))
    deep = sizes[0] is not None
    return replace(header, spacing=spacing, unit=unit, interval=interval, depth=deep)


def _positive(text: str | None) -> float | None:
    try:
        value = decimal(text or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def planes_by_frame(
    path: Path, scene: int | None, axes: str, sizes: tuple[int, ...], channel: int, frames: Sequence[int]
) -> Iterator[NDArray]:
    """Yield the planes of each given frame, sorted by z, for one channel of a scene.

    Raises
    ------
    InputError
        If a plane cannot be decoded.
    """
    size = dict(zip(axes, sizes, strict=True))
    leading = axes.rstrip("S")[:-2]
    lengths = [size[axis] for axis in leading]
    with _opened(path) as tiff:
        found = scene_of(path, tiff, scene)
        for t in frames:
            where = {"T": [t], "C": [channel], "Z": list(range(size.get("Z", 1)))}
            index = np.ix_(*[where[axis] for axis in leading]) if leading else ()
            planes = np.ravel_multi_index(index, lengths).ravel().tolist() if leading else [0]
            yield planes_of(tiff, found, planes, lambda pages, like: _refuse_bombs(path, pages, like.nbytes))


def _refuse_bombs(path: Path, pages: list[Any], size: int) -> None:
    """Refuse planes of a different size, or with more data than a plane holds, which some decoders unpack."""
    for page in pages:
        if page is None:
            continue
        stored = sum(page.databytecounts)
        if page.nbytes != size or stored > 2 * size + 65536:
            raise InputError(
                f"{path} stores {stored} bytes for a plane of {page.nbytes}; one is {size}. "
                "It is damaged or no honest image; save it again."
            )
