"""Read a movie frame by frame from a TIFF file or from a folder with one image per frame (TIFF, PNG)."""

from __future__ import annotations

import logging
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..declared import TIFF
from ..files.memory import refuse_if_larger_than_memory
from ..files.packages import package, refused_if_damaged
from .counters import arranged, counts_scenes, main_pattern
from .frames import Images, movie_of
from .stacks import WHOLE, Box, Chosen, grey, named_axes, refuse_absent, warnings_of
from .tiff import files_of_ome, look_at_tiff, planes_by_frame
from .tiff_scenes import Header

_PNG = b"\x89PNG\r\n\x1a\n"
"""First bytes of a PNG file."""
_LOG = logging.getLogger("outbid")
SUFFIXES = tuple(pattern.removeprefix("*") for pattern in TIFF.patterns)
"""Suffixes of the images that are read."""
COPIES = 24
"""Bytes of working memory per voxel: several copies in single precision."""
_AS_ZARR = "Save it as OME-Zarr and read parts (--region), or take a machine with more memory."


@dataclass(frozen=True)
class _Files:
    """The files of each frame, one a plane or one for all, and their reader; a missing frame has none."""

    frames: tuple[tuple[Path, ...], ...]
    axes: str
    sizes: tuple[int, ...]
    channel: int
    scene: int | None
    partial: bool = False

    def read(self, numbers: Sequence[int], box: Box) -> Iterator[NDArray]:
        """Yield this region of each frame."""
        empty = None
        for number in numbers:
            if self.frames[number]:
                planes = [self._image(file) for file in self.frames[number]]
                yield (planes[0] if len(planes) == 1 else np.concatenate(planes))[box]
            else:
                if empty is None:
                    empty = np.zeros_like(next(self.read([self._first], WHOLE)))
                yield empty[box]

    def read_one(self, numbers: Sequence[int], box: Box) -> Iterator[NDArray]:
        """Yield this region of each frame of a file that holds them all."""
        for frame in self._frames(self.frames[0][0], numbers):
            yield frame[box]

    @property
    def _first(self) -> int:
        """The first frame that is not missing."""
        return next(number for number, files in enumerate(self.frames) if files)

    def _frames(self, path: Path, numbers: Sequence[int]) -> Iterator[NDArray]:
        for planes in planes_by_frame(
            path, self.scene, self.axes, self.sizes, self.channel, numbers, partial=self.partial
        ):
            yield grey(planes.reshape(self._shape))

    def _image(self, path: Path) -> NDArray:
        """Read an image that is a whole frame, or a plane of it."""
        header = _header(path, self.scene)
        if header.sizes != self.sizes:
            first = self.frames[self._first][0].name
            raise InputError(f"{path} has size {header.sizes}, and {first} {self.sizes}. Leave it out.")
        if path.suffix.lower() != ".png":
            return next(self._frames(path, [0]))
        with _png(path) as image:
            return grey(np.asarray(image).reshape(self._shape))

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        size = dict(zip(self.axes, self.sizes, strict=True))
        return size.get("Z", 1), size["Y"], size["X"], size.get("S", 1)


def open_movie(
    path: Path,
    *,
    axes: str | None = None,
    channel: int = 0,
    scene: int | None = None,
    spacing: tuple[float, float, float] | None = None,
    partial: bool = False,
) -> Images:
    """Open a TIFF or PNG file, or a folder with one image per frame; see `outbid.open_images`."""
    return open_chosen(Path(path), Chosen(axes, channel, scene, 0, spacing, partial))


def open_chosen(path: Path, chosen: Chosen) -> Images:
    """Open what the caller chose of such a file or folder."""
    try:
        if not path.exists():
            raise InputError(f"There is no file {path}. Check the name.")
        return _look_at(path, chosen)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}. Check the file.") from None


def _look_at(path: Path, chosen: Chosen) -> Images:
    axes, scene = chosen.axes, chosen.scene
    files = _images_in(path) if path.is_dir() else [path]
    first = files[0]
    if first.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{first} is no image that Outbid reads ({', '.join(SUFFIXES)}). Export it as OME-TIFF."
        )
    if first.stat().st_size == 0:
        raise InputError(f"{first} is empty. Check where it was made.")
    inner = None if counts_scenes(files) else scene
    header = _header(first, inner, chosen.partial)
    if len(files) > 1 and {*files_of_ome(first)} >= {file.name for file in files}:
        files = files[:1]  # all are read together
    outer = None
    if len(files) > 1 and axes is not None and len(axes) > len(header.axes.rstrip("S")):
        own = len(header.axes.rstrip("S"))
        outer, axes = axes[:-own].upper(), axes[-own:]
    named = named_axes(str(first), header, axes, several=len(files) > 1)
    if not named.removesuffix("S").endswith("YX"):
        raise InputError(
            f"{first} has axes {named} of sizes {header.sizes}, which do not end in Y, X. Name them with "
            "--axes, such as TZYX, or convert the file."
        )
    size = dict(zip(named, header.sizes, strict=True))
    needed = float(size.get("Z", 1) * size["Y"] * size["X"]) * size.get("S", 1) * COPIES
    refuse_if_larger_than_memory(first, needed, _AS_ZARR)
    if len(files) > 1:
        return _of_folder(path, files, outer, replace(chosen, axes=axes), header, named)
    refuse_absent("channel", chosen.channel, first, size.get("C", 1))
    one = _Files(((first,),) * size.get("T", 1), named, header.sizes, chosen.channel, scene, chosen.partial)
    read = one.read if first.suffix.lower() == ".png" else one.read_one
    return movie_of(str(path), header, named, chosen, read)


def _of_folder(
    path: Path, files: list[Path], counted: str | None, chosen: Chosen, header: Header, named: str
) -> Images:
    """The movie of a folder whose files are frames, or planes and channels of frames.

    `counted` are the axes that the names of the files count, as the caller names them.
    """
    found = arranged(files, counted)
    size = dict(zip(named, header.sizes, strict=True))
    for axis in "TCZ":
        if size.get(axis, 1) > 1 and (axis == "T" or axis in found.axes):
            raise InputError(
                f"{files[0]} has {size[axis]} images along {axis.lower()}; the file names count these "
                "too. Name the axes, those of the names first: --axes TZCYX, or give one file."
            )
    of_names, of_files = (chosen.scene or 0, None) if "S" in found.axes else (0, chosen.scene)
    refuse_absent("scene", of_names, path, found.size("S"))
    refuse_absent("channel", chosen.channel, path, found.size("C") * size.get("C", 1))
    by_name = chosen.channel if "C" in found.axes else 0
    frames = found.frames(of_names, by_name)
    outer = [axis for axis in found.axes if axis in "CZ"]
    axes = "".join(outer) + "".join(axis for axis in named if axis not in outer)
    sizes = tuple(found.size(axis) if axis in outer else size[axis] for axis in axes)
    scenes = found.names["S"] if "S" in found.axes and chosen.scene is None else header.scenes
    seen = replace(
        header, axes=axes, sizes=sizes, scenes=scenes, channels=found.names.get("C", header.channels)
    )
    read = _Files(frames, named, header.sizes, 0 if by_name else chosen.channel, of_files).read
    missing = tuple(number for number, there in enumerate(frames) if not there)
    warnings = (*found.warnings, *warnings_of(seen, axes, chosen, several=True))
    movie = movie_of(str(path), seen, axes, chosen, read)
    return replace(movie, frame_count=len(frames), warnings=warnings, missing=missing)


def _header(path: Path, scene: int | None, partial: bool = False) -> Header:
    if path.suffix.lower() != ".png":
        return look_at_tiff(path, scene, partial)
    refuse_absent("scene", scene or 0, path, 1)
    with _png(path) as image:
        (width, height), samples = image.size, len(image.getbands())
    return Header("YX", (height, width)) if samples == 1 else Header("YXS", (height, width, samples))


def _images_in(folder: Path) -> list[Path]:
    """The images of a folder, sorted by number: those of the most frequent suffix and pattern of names."""
    found = sorted((file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES), key=_natural)
    images = [file for file in found if not file.name.startswith(".")]  # ._a.tif is macOS' note on a.tif
    if not images:
        inside = next((file.parent for kind in SUFFIXES for file in sorted(folder.glob(f"*/*{kind}"))), None)
        advice = f"There are some in {inside}: give that." if inside else "Give a folder that has some."
        raise InputError(f"{folder} is a folder without images ({', '.join(SUFFIXES)}). {advice}")
    kinds = Counter(file.suffix.lower() for file in images)
    kind, count = kinds.most_common(1)[0]
    if count < len(images):
        _LOG.warning("%s: %d of %d images are %s; the others are left out", folder, count, len(images), kind)
    kept, others = main_pattern([file for file in images if file.suffix.lower() == kind])
    if others or len(images) < len(found):
        named = [file.name for file in [*others, *(file for file in found if file not in images)]]
        _LOG.warning("%s: %s left out, for their names are of another kind", folder, ", ".join(named[:6]))
    return kept


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Sort key of a file name, by which frame 10 follows frame 9."""
    parts = re.split(r"(\d+)", path.name)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


@contextmanager
def _png(path: Path) -> Iterator[Any]:
    """Open a PNG; errors at damaged data become an InputError."""
    pillow = package("PIL.Image", "PNG", "images")
    _refuse_cut_png(path)
    kinds = (OSError, ValueError, SyntaxError, pillow.DecompressionBombError)
    with (
        refused_if_damaged(path, "is damaged", "Copy it again.", kinds),
        pillow.open(path, formats=["PNG"]) as image,
    ):
        yield image


def _refuse_cut_png(path: Path) -> None:
    """Refuse a PNG chunk that would end beyond the file: Pillow allocates the declared size."""
    size, offset = path.stat().st_size, len(_PNG)
    with path.open("rb") as file:
        while offset + 8 <= size:
            file.seek(offset)
            length, kind = struct.unpack(">I4s", file.read(8))
            offset += 12 + length  # plus length, type and checksum
            if offset > size:
                raise InputError(
                    f"{path} is cut short: a piece would end at byte {offset} of {size}. Copy it again."
                )
            if kind == b"IEND":
                return
