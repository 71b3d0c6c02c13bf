"""TIFF as written by ImageJ, OME software and tifffile: metadata, and planes frame by frame.

For a truncated file, tifffile only logs a warning and reads the remaining part. So the declared sizes are
compared with the actual content before anything is read.
"""

from __future__ import annotations

import html
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, ResourceError
from ..files.packages import damage_explained
from .tiff_pages import pages_in
from .tiff_scenes import Header, planes_of, scene_of, with_imagej, with_ome


def look_at_tiff(path: Path, number: int | None = None, partial: bool = False) -> Header:
    """Axes, sizes, voxel size and frame interval of a scene, or of the whole file if no number is given.

    `partial`: whether the frames that are there are wanted, if the file declares more.

    Raises
    ------
    InputError
        If the file is damaged or truncated, or holds images of different size or type.
    SettingsError
        If there is no scene of this number.
    """
    files = {path.name, *(name for name in _set_of(path, partial) if path.with_name(name).is_file())}
    tags = {file: pages_in(path.with_name(file)) for file in files}
    with opened(path, partial=partial) as tiff:
        scene = scene_of(path, tiff, number)
        sizes = scene.sizes
        for series in scene.series:
            if partial and (there := _frames_there(path, tiff, series)):
                sizes = (there, *sizes[1:])
            else:
                _refuse_if_cut_short(path, tiff, series, partial)
            _refuse_unlike_pages(path, series, tags)
        white = tiff.pages[0].photometric == 0
        header = Header(scene.axes, sizes, scenes=scene.choice, white_is_zero=white)
        if partial and tiff.is_imagej and scene.axes == "IYX":  # of a header that tifffile does not follow
            header = _of_imagej_pages(header, tiff.imagej_metadata or {})
        if tiff.is_ome:
            lost = [name for name in files_of_ome(path) if not path.with_name(name).is_file()]
            return with_ome(header, tiff, scene, path, None if partial else lost)
        if tiff.is_imagej:
            return with_imagej(header, tiff)
        marks = {"OME": "<OME "} | ({} if tiff.is_shaped else {"tifffile": '"shape": ['})
        for name, mark in marks.items():
            if mark in tiff.pages[0].description:
                raise InputError(
                    f"{path}: its {name} header is cut short, so axes are unknown. Save the file again."
                )
    return header


def files_of_ome(path: Path) -> list[str]:
    """Names of the files that an OME header says belong together; empty for a file that stands alone."""
    text = ""
    if path.suffix.lower() in (".tif", ".tiff", ".btf"):
        with suppress(InputError, ResourceError), opened(path, alone=True) as tiff:  # reading it says so
            text = tiff.pages[0].description if tiff.is_ome else ""
    found = [html.unescape(name) for name in re.findall(r'<UUID[^>]*\sFileName="([^"]*)"', text)]
    return list(dict.fromkeys(found)) if len({*found}) > 1 else []


def _set_of(path: Path, partial: bool = False) -> list[str]:
    """The files that are read together with this one: none outside its folder, and all or none.

    `partial`: also if some are not there yet.
    """
    names = files_of_ome(path)
    here = all(Path(name).name == name and (partial or path.with_name(name).is_file()) for name in names)
    return names if here and path.name in names else []


@contextmanager
def opened(path: Path, *, alone: bool = False, partial: bool = False) -> Iterator[Any]:
    """Open a TIFF file; errors of tifffile about damaged data become an InputError.

    `alone`: without the others of its OME header; `partial`: also if some of them are not there yet.
    """
    import tifffile

    unheard = logging.NullHandler()  # keeps its log off the screen
    logging.getLogger("tifffile").addHandler(unheard)
    try:
        # An OME header may name other files anywhere on the disk: only those of its folder are opened.
        several = not alone and bool(_set_of(path, partial))
        with damage_explained(str(path), "TIFF"), tifffile.TiffFile(path, _multifile=several) as tiff:
            if not alone and not tiff.series:
                raise InputError(f"{path} holds no image. Check where it was made.")
            yield tiff
    finally:
        logging.getLogger("tifffile").removeHandler(unheard)


def _refuse_unlike_pages(path: Path, series: Any, tags: Mapping[str, dict[int, dict[int, int]]]) -> None:
    """Refuse a page whose tags differ from those of the first page, by which the whole series is decoded."""
    if series.dataoffset is not None:  # their bytes are read as one block
        return
    first = tags[path.name].get(series.keyframe.offset)
    for index, page in enumerate(series.pages):
        other = None if page is None else tags.get(page.parent.filehandle.name, {}).get(page.offset)
        if first is not None and other is not None and other != first:
            tag = min(name for name in {*first, *other} if first.get(name) != other.get(name))
            raise InputError(
                f"{path}: plane {index} is stored in another way than the first (tag {tag}: "
                f"{other.get(tag)}, {first.get(tag)}). It may be damaged; save the file again."
            )


def _frames_there(path: Path, tiff: Any, series: Any) -> int:
    """How many whole frames a file holds that declares more; 0 if it does not, or they cannot be found."""
    axes = series.axes.rstrip("S")
    if axes[0] not in "TIQ" or len(axes) < 3:
        return 0
    of_frame = math.prod(series.shape[1 : len(axes) - 2])
    if series.dataoffset is None:
        planes = len([page for page in series.pages if page is not None])
    elif len(tiff.pages) > 1:  # the pages do not follow each other as the header says
        return 0
    else:
        planes = (path.stat().st_size - series.dataoffset) // series.keyframe.nbytes
    there = planes // of_frame
    return there if there < series.shape[0] else 0


def _of_imagej_pages(header: Header, known: Mapping[str, Any]) -> Header:
    """Frames of the pages that are there, by the numbers of channels and slices that ImageJ states."""
    z, c = int(known.get("slices", 1)), int(known.get("channels", 1))
    return replace(header, axes="TZCYX", sizes=(header.sizes[0] // (z * c), z, c, *header.sizes[1:]))


def _packed(page: Any) -> int:
    """Bytes of a page that is not compressed; of bits, eight are in a byte, and each row begins a byte."""
    like = page.keyframe
    if like.bitspersample % 8 == 0:
        return int(page.nbytes)
    return int(like.size // like.imagewidth) * -(-like.imagewidth * like.bitspersample // 8)


def _refuse_if_cut_short(path: Path, tiff: Any, series: Any, partial: bool) -> None:
    """Compare the declared number of images, and their sizes in bytes, with the file."""
    size = path.stat().st_size
    declared = math.prod(series.shape)
    remedy = "Copy it again; for the frames that are there: --frames 0:N."
    if tiff.is_imagej:
        images = int((tiff.imagej_metadata or {}).get("images", 1))
        if images * math.prod(tiff.pages[0].shape) > declared and not partial:
            raise InputError(f"{path}: {images} images are declared, fewer are there. {remedy}")
    elif tiff.is_shaped:
        shape = _shape_in(series.keyframe.description)
        if shape and math.prod(shape) > declared:
            raise InputError(f"{path}: {shape} is declared, {series.shape} is there. {remedy}")
    planes = math.prod(series.shape[: -len(series.keyframe.shape)])
    if series.dataoffset is not None:
        if series.dataoffset == 0:  # where the header is
            raise InputError(f"{path}: plane 0 is not stored. Copy the file again.")
        end = series.dataoffset + series.nbytes
        if end > size:
            raise InputError(f"{path} is cut short: {size} bytes, where {end} are declared. {remedy}")
        return
    if len(series.pages) < planes:
        raise InputError(f"{path}: {planes} planes are declared, {len(series.pages)} are there. {remedy}")
    for index, page in enumerate(series.pages):
        if page is None:
            lost = [name for name in files_of_ome(path) if not path.with_name(name).is_file()]
            files = f": there is no {lost[0]} beside it. Add it" if lost else ". Copy the file again"
            raise InputError(f"{path}: plane {index} is missing{files}; for others: --frames 0:N.")
        ends = [o + n for o, n in zip(page.dataoffsets, page.databytecounts, strict=True)]
        stored = sum(page.databytecounts)
        if 0 in page.databytecounts or 0 in page.dataoffsets:  # tifffile would read zeros
            raise InputError(f"{path}: a part of plane {index} is not stored. Copy the file again.")
        whole = page.compression != 1 or stored >= _packed(page)
        if max(ends, default=0) > page.parent.filehandle.size or not whole:
            raise InputError(f"{path} is cut short: plane {index} is not whole. Copy it again.")


def _shape_in(description: str) -> tuple[int, ...]:
    """The array shape that tifffile writes into the first page."""
    found = re.search(r'shape"?\s*[=:]\s*[\[(]([\d,\s]+)[\])]', description)
    return tuple(int(n) for n in found[1].split(",") if n.strip()) if found else ()


def planes_by_frame(
    path: Path, scene: int | None, axes: str, sizes: tuple[int, ...], channel: int, frames: Sequence[int],
    *, partial: bool = False,
) -> Iterator[NDArray]:  # fmt: skip
    """Yield the planes of each given frame, sorted by z, for one channel of a scene.

    Raises InputError if a plane cannot be decoded.
    """
    with opened(path, partial=partial) as tiff:
        found = scene_of(path, tiff, scene)
        for t in frames:
            planes = plane_numbers(axes, sizes, channel, t)
            yield planes_of(tiff, found, planes, lambda pages, like: refuse_bombs(path, pages, like.nbytes))


def plane_numbers(axes: str, sizes: tuple[int, ...], channel: int, frame: int) -> list[int]:
    """Numbers of the planes of a frame, sorted by z, through all images of a scene.

    Examples
    --------
    >>> plane_numbers("TCZYX", (9, 2, 3, 64, 64), 1, 2)
    [15, 16, 17]
    """
    size = dict(zip(axes, sizes, strict=True))
    leading = axes.rstrip("S")[:-2]
    where = {"T": [frame], "C": [channel], "Z": list(range(size.get("Z", 1)))}
    index = np.ix_(*[where[axis] for axis in leading]) if leading else ()
    lengths = [size[axis] for axis in leading]
    return np.ravel_multi_index(index, lengths).ravel().tolist() if leading else [0]


def refuse_bombs(path: Path, pages: list[Any], size: int) -> None:
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
