"""Movies as images: a TIFF file, or a folder with an image for each frame (TIFF, PNG); read one by one."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ResourceError, SettingsError
from .memory import refuse_if_larger_than_memory
from .stacks import doubts_of, grey, named_axes
from .tiff import Header, look_at_tiff, planes_by_frame
from .tiff_scenes import refuse_scene

_LOG = logging.getLogger("outbid")
SUFFIXES = (".tif", ".tiff", ".btf", ".png")
"""Of images that are read."""
_COPIES = 24
"""Bytes needed to work on a voxel: a few copies in single precision."""


@dataclass(frozen=True)
class Movie:
    """Where the frames of a movie are, and what is known of them; read one by one.

    Parameters
    ----------
    files : tuple of Path
        One file with all frames, or a file for each.
    axes : str
        Axes of what a file holds, in its order, for example ``"TZYX"``; C and S are channels.
    sizes : tuple of int
        Length of each of the axes.
    channel : int
        The channel that is read.
    frame_count : int
    spacing : tuple of 3 float
        Size of a voxel along z, y, x, in `unit`.
    unit : str
    interval : float or None
        Seconds from frame to frame, where the file states it.
    doubts : tuple of str
        Sentences about what had to be guessed, and how to set it.
    scene : int or None
        Which of several images in a file is read, where that was chosen.
    scenes : tuple of str
        What each of several images is, where the file names them and none was chosen.
    """

    files: tuple[Path, ...]
    axes: str
    sizes: tuple[int, ...]
    channel: int
    frame_count: int
    spacing: tuple[float, float, float]
    unit: str
    interval: float | None
    doubts: tuple[str, ...] = ()
    scene: int | None = None
    scenes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels of a frame along z, y, x; z is 1 in 2D."""
        size = dict(zip(self.axes, self.sizes, strict=True))
        return size.get("Z", 1), size["Y"], size["X"]

    def frames(self, numbers: Sequence[int] | None = None) -> Iterator[NDArray]:
        """Each frame as (z, y, x) array, of the type that the file has.

        Parameters
        ----------
        numbers : sequence of int, optional
            Of the frames, from 0 up; all by default.

        Raises
        ------
        InputError
            If an image is damaged, or not like the first one.
        SettingsError
            If there is no frame of a number.
        """
        chosen = range(self.frame_count) if numbers is None else numbers
        for number in chosen:
            if not 0 <= number < self.frame_count:
                raise SettingsError(f"There is no frame {number}: the movie has {self.frame_count}, from 0.")
        if len(self.files) > 1:
            for number in chosen:
                yield _image(self.files[number], self)
        elif self.files[0].suffix.lower() == ".png":
            for _ in chosen:
                yield _image(self.files[0], self)
        else:
            yield from _frames(self.files[0], self, chosen)


def open_movie(
    path: Path,
    *,
    axes: str | None = None,
    channel: int = 0,
    scene: int | None = None,
    spacing: tuple[float, float, float] | None = None,
) -> Movie:
    """Look at a TIFF file, or a folder with an image for each frame in the order of their numbers.

    Parameters
    ----------
    path : Path
    axes : str, optional
        What the file's axes are, where it does not name them or is wrong: letters of TZCYX, in its order.
        An axis that has no name is time, or z in a folder of stacks.
    channel : int
        Which channel to read where there are several.
    scene : int, optional
        Which image to read where a file has several, from 0 up. Without it, images of one kind that were
        written one by one are frames; of images that the file names, the first is read, and `Movie.doubts`
        lists all.
    spacing : tuple of 3 float, optional
        Size of a voxel along z, y, x, instead of what the file states.

    Raises
    ------
    InputError
        If there is no image, it is cut short, its axes make no sense, or a file has several images that do
        not fit together.
    ResourceError
        If a frame does not fit the memory, or a package is missing that the format needs.
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
) -> Movie:
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
    return Movie(
        files, named, header.sizes, channel, count, own, header.unit, header.interval, doubts, scene,
        header.scenes,
    )  # fmt: skip


def _header(path: Path, scene: int | None) -> Header:
    if path.suffix.lower() != ".png":
        return look_at_tiff(path, scene)
    refuse_scene(path, scene or 0, 1)
    return _look_at_png(path)


def _images_in(folder: Path) -> tuple[Path, ...]:
    """The images of a folder in the order of their numbers; where there are several kinds, the commonest."""
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
    """Frame 10 comes after frame 9."""
    parts = re.split(r"(\d+)", path.name)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def _frames(path: Path, movie: Movie, numbers: Sequence[int]) -> Iterator[NDArray]:
    size = dict(zip(movie.axes, movie.sizes, strict=True))
    for planes in planes_by_frame(path, movie.scene, movie.axes, movie.sizes, movie.channel, numbers):
        yield grey(planes.reshape(*movie.shape, size.get("S", 1)))


def _image(path: Path, movie: Movie) -> NDArray:
    """An image that is a frame by itself."""
    header = _header(path, movie.scene)
    if header.sizes != movie.sizes:
        raise InputError(f"{path} has size {header.sizes}, and the first image {movie.sizes}. Leave it out.")
    if path.suffix.lower() != ".png":
        return next(_frames(path, movie, [0]))
    pillow = _pillow()
    try:
        with pillow.open(path) as image:
            return grey(np.asarray(image).reshape(*movie.shape, -1))
    except (OSError, ValueError, SyntaxError) as error:
        raise InputError(f"{path} is damaged: {error}. Copy it again.") from None


def _look_at_png(path: Path) -> Header:
    pillow = _pillow()
    try:
        with pillow.open(path, formats=["PNG"]) as image:
            samples = len(image.getbands())
            width, height = image.size
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise InputError(f"{path} is damaged: {error}. Copy it again.") from None
    return Header("YX", (height, width)) if samples == 1 else Header("YXS", (height, width, samples))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise ResourceError(
            "PNG needs a package that is not installed: pip install 'outbid[images]'."
        ) from None
    return Image
