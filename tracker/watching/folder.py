"""A folder to which files are added, one a frame."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import NDArray

from ..errors import InputError, OutbidError
from ..formats.images.counters import arranged
from ..formats.images.folders import SUFFIXES
from ..formats.images.frames import Images
from ..formats.images.stacks import named_axes
from ..formats.images.tiff import look_at_tiff
from ..work.jobs import Opening
from .sources import NotYet, restarted

_Signature = tuple[int, int]
"""Size and time of change of a file."""


class GrowingFolder:
    """Files of one pattern of names, of which one number varies: that of the frame.

    A file is whole when its size has not changed from one look to the next, and it can be read.

    Parameters
    ----------
    folder : Path
    opening : Opening
    """

    counts = False
    ended = False

    def __init__(self, folder: Path, opening: Opening) -> None:
        self._folder, self._opening = folder, opening
        self._known: set[str] = set()
        self._loose: list[Path] = []
        self._growing: dict[Path, _Signature | None] = {}
        self._file: dict[int, Path] = {}
        self._pattern: tuple[list[str], int] | None = None
        self._movie: Images | None = None
        self._first: tuple[Path, _Signature] | None = None

    def poll(self, *, ended: bool = False) -> Sequence[int]:
        self._refuse_other_first()
        with os.scandir(self._folder) as entries:
            names = [entry.name for entry in entries if entry.name not in self._known]
        new = [name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith(".")]
        self._known.update(new)
        self._growing |= dict.fromkeys((self._folder / name for name in new), None)
        self._loose += self._settled(ended=ended)
        if self._pattern is None:
            self._find_pattern(ended=ended)
        if self._pattern is None:
            return []
        found = {number: file for file in self._loose if (number := self._number_of(file)) is not None}
        self._loose = []
        self._file |= found
        return sorted(found)

    def read(self, number: int) -> NDArray:
        if number not in self._file:
            raise NotYet(f"the file of image {number} is not there")
        path = self._file[number]
        try:
            movie = self._open(path)
            frame = next(movie.frames([0]))
        except (OutbidError, OSError) as error:
            raise NotYet(str(error)) from None
        if movie.frame_count > 1:
            raise InputError(
                f"{path} holds {movie.frame_count} frames, and a folder is followed one frame a file. Name "
                "the axes (--axes ZYX), or watch the one file."
            )
        return frame

    def drop(self, number: int) -> None:
        """A frame that will not be read."""

    def movie(self) -> Images:
        if self._movie is None:
            path = self._file[min(self._file)]
            self._first, self._movie = (path, _signature(path)), self._open(path)
        return self._movie

    def _open(self, path: Path) -> Images:
        axes = self._opening.axes
        if path.suffix.lower() != ".png":
            header = look_at_tiff(path, self._opening.scene)
            axes = named_axes(str(path), header, axes, several=True).removesuffix("S")
        return replace(self._opening, axes=axes).open(str(path))

    def _settled(self, *, ended: bool) -> list[Path]:
        """Files that do not grow any more."""
        whole = []
        for path, before in list(self._growing.items()):
            try:
                now = _signature(path)
            except FileNotFoundError:  # it was renamed
                del self._growing[path]
                self._known.discard(path.name)
                continue
            if now[0] and (ended or now == before):
                del self._growing[path]
                whole.append(path)
            else:
                self._growing[path] = now
        return whole

    def _find_pattern(self, *, ended: bool) -> None:
        """Find which number of the names counts frames, from two files or more."""
        if len(self._loose) < 2 and not (ended and self._loose):
            return
        files = sorted(self._loose)
        found = arranged(files)
        parts = [re.split(r"(\d+)", file.stem) for file in files]
        if found.axes != "T" or {len(part) for part in parts} != {len(parts[0])} or len(parts[0]) < 3:
            raise InputError(
                f"{self._folder}: the names of the files count {found.axes}; a folder is followed one frame "
                "a file, by one number in the names. Write such files, OME-TIFF or OME-Zarr."
            )
        named = {file: found.names["T"][at[0]] for at, file in found.files.items()}
        numbers = [named[file] for file in files]
        places = range(1, len(parts[0]), 2)
        alike = [at for at in places if [str(int(part[at])) for part in parts] == numbers]
        varies = [at for at in places if len({part[at] for part in parts}) == len(files)]
        self._pattern = parts[0], (alike or varies or [places[-1]])[-1]

    def _number_of(self, path: Path) -> int | None:
        """The number of a file's frame; None if its name has another pattern."""
        assert self._pattern is not None
        like, at = self._pattern
        parts = re.split(r"(\d+)", path.stem)
        return int(parts[at]) if len(parts) == len(like) and parts[::2] == like[::2] else None

    def _refuse_other_first(self) -> None:
        """Refuse to go on when the first file that was read has been written again."""
        if self._first is None:
            return
        path, before = self._first
        try:
            now = _signature(path)
        except FileNotFoundError:  # moved away: the last pass over all frames will say what is missing
            return
        if now != before:
            raise restarted(self._folder, f"{path.name} was written again")


def _signature(path: Path) -> _Signature:
    state = path.stat()
    return state.st_size, state.st_mtime_ns
