"""Frames of TIFF files to which pages are added: each page is looked at once, whatever came before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .frames import Images
from .stacks import grey
from .tiff import opened, plane_numbers, refuse_bombs
from .tiff_pages import Pages
from .tiff_scenes import TiffImage, planes_in_ome, scene_of

_SOME = 4096
"""Guard: bytes by which one image is distinguished from another."""
Plane = tuple[str, int]
"""The name of a file, and the number of a page in it."""


@dataclass
class GrowingFrames:
    """The frames of a movie, whose pages are of one file or of several in a folder.

    Parameters
    ----------
    folder : Path
    shape : tuple of 4 int
        Of a frame along z, y, x and samples.
    files : mapping of str to Pages
    stated : mapping of int to sequence of Plane
        The planes of each frame, by z; or if there are none,
    first, step : sequence of Plane, int
        those of frame 0, and by how many pages each frame is further on.
    count : int
        Frames whose pages are all there.
    """

    folder: Path
    shape: tuple[int, int, int, int]
    files: Mapping[str, Pages]
    stated: Mapping[int, Sequence[Plane]]
    first: Sequence[Plane] = ()
    step: int = 0
    count: int = 0
    _begin: tuple[int, int] | None = None  # where data of the first page are, and how many bytes

    def grow(self) -> int:
        """Look at the pages that were added since; how many frames are there now."""
        for pages in self.files.values():
            with suppress(InputError, OSError):  # a page is being written, or a file is not there yet
                pages.read_on()
        while (planes := self._planes(self.count)) and all(at < len(self.files[name]) for name, at in planes):
            self.count += 1
        return self.count

    def first_bytes(self) -> bytes:
        """Some of the data of the first frame, which change only if another movie is written over it."""
        name, number = self._planes(0)[0]
        path = self.folder / name
        if self._begin is None:
            with opened(path, alone=True) as tiff:
                page = _page_at(tiff, self.files[name], number)
                self._begin = page.dataoffsets[0], min(page.databytecounts[0], _SOME)
        with path.open("rb") as file:
            file.seek(self._begin[0])
            return file.read(self._begin[1])

    def frame(self, number: int) -> NDArray:
        """The image (Z, Y, X) of a frame that is there.

        Raises
        ------
        InputError
            If a page is not whole, or not like the first.
        """
        planes = self._planes(number)
        like = next(iter(self.files[planes[0][0]].tags.values()))
        found: list[NDArray] = []
        for name in dict.fromkeys(name for name, _ in planes):
            with opened(self.folder / name, alone=True) as tiff:
                found += [_page(tiff, self.files[name], at, like) for of, at in planes if of == name]
        return grey(np.stack(found).reshape(self.shape))

    def _planes(self, number: int) -> Sequence[Plane]:
        """The planes of a frame; none if there is no such frame."""
        if self.stated:
            return self.stated.get(number, ())
        return [(name, page + number * self.step) for name, page in self.first]


def _page(tiff: Any, pages: Pages, number: int, like: Mapping[int, int]) -> NDArray:
    """The image of a page."""
    page = _page_at(tiff, pages, number)
    ends = [o + n for o, n in zip(page.dataoffsets, page.databytecounts, strict=True)]
    if not ends or 0 in page.databytecounts or max(ends) > tiff.filehandle.size:
        raise InputError(f"{pages.path} is cut short: page {number} is not whole. Copy it again.")
    if pages.tags[page.offset] != like:
        raise InputError(
            f"{pages.path}: page {number} is stored in another way than the first. Save it again."
        )
    refuse_bombs(pages.path, [page], tiff.pages[0].nbytes)
    return page.asarray()


def _page_at(tiff: Any, pages: Pages, number: int) -> Any:
    """The header of a page."""
    import tifffile

    tiff.filehandle.seek(pages.offsets[number])
    return tifffile.TiffPage(tiff, number)


def growing_frames(path: Path, movie: Images) -> GrowingFrames | None:
    """The frames of a file of which `movie` holds what was there; None if its pages are not in even order.

    So it is before there are two frames, where an OME header does not state the planes; and where one page
    holds them all, which is looked at as fast.
    """
    size = dict(zip(movie.axes, movie.sizes, strict=True))
    shape = (size.get("Z", 1), size["Y"], size["X"], size.get("S", 1))
    with opened(path, partial=True) as tiff:
        found = scene_of(path, tiff, movie.scene)
        there = [_planes_there(tiff, found, movie, t) for t in range(min(movie.frame_count, 2))]
        stated = planes_in_ome(path, tiff.ome_metadata, found.number, movie.channel) if tiff.is_ome else {}
    if stated and all(stated.get(t) == planes for t, planes in enumerate(there)):
        names = dict.fromkeys(name for planes in stated.values() for name, _ in planes)
        if any(Path(name).name != name for name in names):
            return None  # only those of its folder are opened
        return GrowingFrames(
            path.parent, shape, {name: Pages(path.with_name(name)) for name in names}, stated
        )
    if len(there) < 2 or not there[0] or not there[1]:
        return None
    steps = {after - before for (_, before), (_, after) in zip(*there, strict=True)}
    if len(steps) > 1 or min(steps) < 1 or any(name != path.name for name, _ in (*there[0], *there[1])):
        return None
    return GrowingFrames(path.parent, shape, {path.name: Pages(path)}, {}, there[0], steps.pop())


def _planes_there(tiff: Any, found: TiffImage, movie: Images, frame: int) -> list[Plane]:
    """The pages of a frame, by z; none where one page holds several planes, or one is not there."""
    series = found.series[0]
    count = prod(series.shape[: len(series.axes.rstrip("S")) - 2])
    alone = prod(series.keyframe.shape) * count == prod(series.shape)
    if not alone or (series.dataoffset is not None and len(tiff.pages) == 1):
        return []
    numbers = plane_numbers(movie.axes, movie.sizes, movie.channel, frame)
    pages = [found.series[number // count].pages[number % count] for number in numbers]
    return [] if None in pages else [(page.parent.filehandle.name, page.index) for page in pages]
