"""Read a movie frame by frame from a TIFF file or from a folder with one image per frame (TIFF, PNG)."""

from __future__ import annotations

import logging
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ResourceError, SettingsError
from .frames import Images
from .memory import refuse_if_larger_than_memory
from .stacks import Box, doubts_of, grey, named_axes
from .tiff import Header, look_at_tiff, planes_by_frame
from .tiff_scenes import refuse_scene

_PNG = b"\x89PNG\r\n\x1a\n"
"""First bytes of a PNG file."""
_LOG = logging.getLogger("outbid")
SUFFIXES = (".tif", ".tiff", ".btf", ".png")
"""Suffixes of the images that are read."""
_COPIES = 24
"""Bytes of working memory per voxel: several copies in single precision."""


@dataclass(frozen=True)
class _Files:
    """One file with all frames, or one file per frame, and its reader."""

    files: tuple[Path, ...]
    axes: str
    sizes: tuple[int, ...]
    channel: int
    scene: int | None

    def read(self, numbers: Sequence[int], box: Box) -> Iterator[NDArray]:
        """Yield this region of each frame."""
        for frame in self._whole(numbers):
            yield frame[box]

    def _whole(self, numbers: Sequence[int]) -> Iterator[NDArray]:
        if len(self.files) > 1:
            for number in numbers:
                yield self._image(self.files[number])
        elif self.files[0].suffix.lower() == ".png":
            for _ in numbers:
                yield self._image(self.files[0])
        else:
            yield from self._frames(self.files[0], numbers)

    def _frames(self, path: Path, numbers: Sequence[int]) -> Iterator[NDArray]:
        for planes in planes_by_frame(path, self.scene, self.axes, self.sizes, self.channel, numbers):
            yield grey(planes.reshape(self._shape))

    def _image(self, path: Path) -> NDArray:
        """Read an image that is a whole frame."""
        header = _header(path, self.scene)
        if header.sizes != self.sizes:
            raise InputError(
                f"{path} has size {header.sizes}, and the first image {self.sizes}. Leave it out."
            )
        if path.suffix.lower() != ".png":
            return next(self._frames(path, [0]))
        pillow = _pillow()
        _refuse_cut_png(path)
        try:
            with pillow.open(path) as image:
                return grey(np.asarray(image).reshape(self._shape))
        except (OSError, ValueError, SyntaxError) as error:
            raise InputError(f"{path} is damaged: {error}. Copy it again.") from None

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
) -> Images:
    """Open a TIFF file, or a folder with one image per frame, sorted by the numbers in their names.

    Parameters
    ----------
    path : Path
    axes : str, optional
        Axes of the array, as letters of TZCYX in order, if the file names none or names them wrongly. By
        default an unnamed axis is time, or z in a folder of stacks.
    channel : int
        Channel to read, if there are several.
    scene : int, optional
        Number of the image to read, from 0, if a file has several. By default, unnamed images of the same
        size and type are the frames of one movie; of named images the first is read, and `Images.doubts`
        lists all.
    spacing : tuple of 3 float, optional
        Voxel size along z, y, x; replaces the size that the file states.

    Raises
    ------
    InputError
        If there is no image, if it is truncated, if its axes are invalid, or if a file has several images of
        different size or type and none was chosen.
    ResourceError
        If a frame does not fit into memory, or a package that the format needs is missing.
    SettingsError
        If `axes`, `channel` or `scene` do not fit the file.
    """
    path = Path(path)
    try:
        if not path.exists():
            raise InputError(f"There is no file {path}. Check the name.")
        return _look_at(path, axes, channel, scene, spacing)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}. Check the file.") from None


def _look_at(
    path: Path,
    axes: str | None,
    channel: int,
    scene: int | None,
    spacing: tuple[float, float, float] | None,
) -> Images:
    files: tuple[Path, ...] = (path,)
    if path.is_dir():
        files = _images_in(path)
    first = files[0]
    if first.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{first} is no image that Outbid reads ({', '.join(SUFFIXES)}). Export it as OME-TIFF."
        )
    if first.stat().st_size == 0:
        raise InputError(f"{first} is empty. Check where it was made.")
    header = _header(first, scene)
    named = named_axes(str(first), header, axes, several=len(files) > 1)
    if not named.removesuffix("S").endswith("YX"):
        raise InputError(
            f"{first} has axes {named} of sizes {header.sizes}, which do not end in Y, X. Name them with "
            "--axes, such as TZYX, or convert the file."
        )
    size = dict(zip(named, header.sizes, strict=True))
    if len(files) > 1 and size.get("T", 1) > 1:
        raise InputError(f"{first} has {size['T']} frames; in a folder an image is one frame. Give the axes.")
    if not 0 <= channel < size.get("C", 1):
        raise SettingsError(f"There is no channel {channel}: {first} has {size.get('C', 1)}, from 0 up.")
    refuse_if_larger_than_memory(
        first, float(size.get("Z", 1) * size["Y"] * size["X"]) * size.get("S", 1) * _COPIES
    )
    count = len(files) if len(files) > 1 else size.get("T", 1)
    own = spacing if spacing is not None else header.spacing
    doubts = tuple(doubts_of(header, named, several=len(files) > 1, axes=axes, spacing=spacing))
    read = _Files(files, named, header.sizes, channel, scene).read
    return Images(
        str(path), named, header.sizes, count, own, header.unit, header.interval, read, channel, doubts,
        scene, header.scenes,
    )  # fmt: skip


def _header(path: Path, scene: int | None) -> Header:
    if path.suffix.lower() != ".png":
        return look_at_tiff(path, scene)
    refuse_scene(path, scene or 0, 1)
    return _look_at_png(path)


def _images_in(folder: Path) -> tuple[Path, ...]:
    """The images of a folder, sorted by number; of several suffixes, only the most frequent one."""
    images = sorted((file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES), key=_natural)
    if not images:
        inside = next((file.parent for kind in SUFFIXES for file in sorted(folder.glob(f"*/*{kind}"))), None)
        advice = f"There are some in {inside}: give that." if inside else "Give a folder that has some."
        raise InputError(f"{folder} is a folder without images ({', '.join(SUFFIXES)}). {advice}")
    kinds = Counter(file.suffix.lower() for file in images)
    kind, count = kinds.most_common(1)[0]
    if count < len(images):
        _LOG.warning("%s: %d of %d images are %s; the others are left out", folder, count, len(images), kind)
    return tuple(file for file in images if file.suffix.lower() == kind)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Sort key of a file name, by which frame 10 follows frame 9."""
    parts = re.split(r"(\d+)", path.name)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def _look_at_png(path: Path) -> Header:
    pillow = _pillow()
    _refuse_cut_png(path)
    try:
        with pillow.open(path, formats=["PNG"]) as image:
            samples = len(image.getbands())
            width, height = image.size
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise InputError(f"{path} is damaged: {error}. Copy it again.") from None
    return Header("YX", (height, width)) if samples == 1 else Header("YXS", (height, width, samples))


def _refuse_cut_png(path: Path) -> None:
    """Refuse a PNG chunk that would end beyond the file: Pillow allocates the declared size."""
    size, place = path.stat().st_size, len(_PNG)
    with path.open("rb") as file:
        while place + 8 <= size:
            file.seek(place)
            length, kind = struct.unpack(">I4s", file.read(8))
            place += 12 + length  # plus length, type and checksum
            if place > size:
                raise InputError(
                    f"{path} is cut short: a piece would end at byte {place} of {size}. Copy it again."
                )
            if kind == b"IEND":
                return


def _pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise ResourceError(
            "PNG needs a package that is not installed: pip install 'outbid[images]'."
        ) from None
    return Image
