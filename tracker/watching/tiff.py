"""A TIFF file, or a set of files of one OME header, to which pages are added."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from numpy.typing import NDArray

from ..errors import OutbidError
from ..formats.images.frames import Images
from ..formats.images.tiff import files_of_ome
from ..formats.images.tiff_growing import GrowingFrames, growing_frames
from ..work.jobs import Opening
from .sources import NotYet, read_of, restarted


class GrowingTiff:
    """Frames of TIFF. The last one is whole when the file has not grown from one look to the next.

    Once two frames are there, a look reads the pages that were added since the last one, and no others.

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
        self._frames: GrowingFrames | None = None
        self._sizes: tuple[int, ...] = ()
        self._looked: tuple[int, ...] = ()
        self._names: list[str] = []
        self._there, self._given = 0, 0
        self._first = b""

    def poll(self, *, ended: bool = False) -> Sequence[int]:
        before, self._sizes = self._sizes, self._sizes_now()
        if sum(self._sizes) < sum(before):
            raise restarted(self._path, "it is shorter than it was")
        listed = self._there
        if self._sizes:
            self._look()
        whole = self._there if ended else max(listed if self._sizes == before else 0, self._there - 1)
        new = range(self._given, max(whole, self._given))
        self._given = new.stop
        return new

    def read(self, number: int) -> NDArray:
        if self._frames is None:
            return read_of(self._movie, number)
        try:
            return self._frames.frame(number)
        except (OutbidError, OSError) as error:
            raise NotYet(str(error)) from None

    def drop(self, number: int) -> None:
        """A frame that will not be read."""

    def movie(self) -> Images:
        assert self._movie is not None
        return self._movie

    def _look(self) -> None:
        """Find the frames that are there: of the pages that were added, or, at first, of the whole file."""
        if self._frames is None and self._sizes != self._looked:
            with suppress(OutbidError, OSError):  # a page is being written
                self._movie = self._opening.open(str(self._path), partial=True)
                self._there, self._looked = self._movie.frame_count, self._sizes
                self._frames = growing_frames(self._path, self._movie)
        if self._frames is not None:
            self._there = self._frames.grow()
            self._refuse_other_first(self._frames)

    def _refuse_other_first(self, frames: GrowingFrames) -> None:
        """Refuse to go on when the first frame, which is whole when there is another, was written again."""
        try:
            now = frames.first_bytes() if self._there > 1 else b""
        except (OutbidError, OSError):  # the file is not there for a moment
            return
        self._first = self._first or now
        if now != self._first:
            raise restarted(self._path, "its first frame was written again")

    def _sizes_now(self) -> tuple[int, ...]:
        """Bytes of the file, and of those that belong to it."""
        if not self._path.is_file():
            return ()
        if self._movie is None:
            self._names = files_of_ome(self._path)
        files = dict.fromkeys([self._path, *(self._path.with_name(name) for name in self._names)])
        return tuple(file.stat().st_size if file.is_file() else 0 for file in files)
