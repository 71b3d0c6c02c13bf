"""A TIFF file, or a set of files of one OME header, to which pages are added."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from numpy.typing import NDArray

from ..errors import OutbidError
from ..formats.images.frames import Images
from ..formats.images.tiff import files_of_ome
from ..work.jobs import Opening
from .sources import read_of, restarted

_PATIENCE = 4.0
"""Guard: looks at a file take at most a fifth of the time: to look at its pages, all have to be listed."""


class GrowingTiff:
    """Frames of TIFF. The last one is whole when the file has not grown from one look to the next.

    Parameters
    ----------
    path : str
    opening : Opening
    """

    counts = True
    ended = False

    def __init__(self, path: str, opening: Opening) -> None:
        self._path, self._opening = Path(path), opening
        self._movie: Images | None = None
        self._sizes: tuple[int, ...] = ()
        self._names: list[str] = []
        self._looked: tuple[int, ...] = ()
        self._next_look, self._given = 0.0, 0

    def poll(self, *, ended: bool = False) -> Sequence[int]:
        before, self._sizes = self._sizes, self._sizes_now()
        if sum(self._sizes) < sum(before):
            raise restarted(self._path, "it is shorter than it was")
        rests = self._sizes == before
        due = time.monotonic() >= self._next_look
        if self._sizes and self._sizes != self._looked and (due or ended):
            self._look()
        there = self._movie.frame_count if self._movie else 0
        whole = there if ended or (rests and self._looked == self._sizes) else there - 1
        new = range(self._given, max(whole, self._given))
        self._given = new.stop
        return new

    def read(self, number: int) -> NDArray:
        return read_of(self._movie, number)

    def drop(self, number: int) -> None:
        """A frame that will not be read."""

    def movie(self) -> Images:
        assert self._movie is not None
        return self._movie

    def _look(self) -> None:
        """Open the file anew, with the frames that are there."""
        begin = time.monotonic()
        with suppress(OutbidError):  # a page is being written
            self._movie, self._looked = self._opening.open(str(self._path), partial=True), self._sizes
        now = time.monotonic()
        self._next_look = now + _PATIENCE * (now - begin)

    def _sizes_now(self) -> tuple[int, ...]:
        """Bytes of the file, and of those that belong to it."""
        if not self._path.is_file():
            return ()
        if self._movie is None:
            self._names = files_of_ome(self._path)
        files = dict.fromkeys([self._path, *(self._path.with_name(name) for name in self._names)])
        return tuple(file.stat().st_size if file.is_file() else 0 for file in files)
