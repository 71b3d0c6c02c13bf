"""A Zarr array on a disk, to which chunks are added."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, OutbidError
from ..formats.images import zarr as zarr_format
from ..formats.images.frames import Images
from ..work.jobs import Opening
from .sources import read_of, restarted

_MARKS = ("zarr.json", ".zgroup", ".zattrs", ".zarray")
_AHEAD = 64
"""Guard: frames before and after the last that was whole among which others are looked for."""


class GrowingZarr:
    """Frames of OME-Zarr or Zarr. A frame is whole when all its chunks are there and do not grow.

    Where chunks or shards hold several frames, these are whole when the next chunk begins.

    Parameters
    ----------
    path : str
    opening : Opening
    """

    counts = True
    ended = False

    def __init__(self, path: str, opening: Opening) -> None:
        self._path, self._opening = path, opening
        self._movie: Images | None = None
        self._array: Any = None
        self._stated: tuple[bytes, ...] = ()
        self._given = set[int]()
        self._bytes: dict[int, int] = {}
        self._first: tuple[Path, int] | None = None

    def poll(self, *, ended: bool = False) -> Sequence[int]:
        if not self._open():
            return []
        assert self._movie is not None
        last = max(self._given, default=-1)
        near = range(max(last - _AHEAD, 0), min(self._movie.frame_count, last + 1 + _AHEAD))
        found = [t for t in near if t not in self._given and self._is_whole(t, ended)]
        self._given.update(found)
        return found

    def read(self, number: int) -> NDArray:
        return read_of(self._movie, number)

    def drop(self, number: int) -> None:
        """A frame that will not be read."""

    def movie(self) -> Images:
        assert self._movie is not None
        if self._first is None:
            file = next(self._files_of(min(self._given)))
            self._first = file, file.stat().st_mtime_ns
        return self._movie

    def _open(self) -> bool:
        """Open the array, or open it again if its sizes have changed; whether it is there."""
        self._refuse_other_first()
        folders = [
            Path(self._path),
            *([Path(self._path, self._array.path)] if self._array is not None else []),
        ]
        marks = [folder / name for folder in folders for name in _MARKS]
        stated = tuple(mark.read_bytes() for mark in marks if mark.is_file())
        if stated and stated == self._stated:
            return self._movie is not None
        try:
            movie = self._opening.open(self._path)
            stack = zarr_format.open_stack(self._path, self._opening.scene, self._opening.level)
        except (OutbidError, OSError):  # it is being written
            return False
        if self._movie is not None and movie.frame_count < self._movie.frame_count:
            raise restarted(self._path, "it has fewer frames than it had")
        self._stated = stated if self._array is not None else ()
        self._movie, self._array = movie, stack.array
        return True

    def _refuse_other_first(self) -> None:
        """Refuse to go on when the first frame has been written again."""
        if self._first is None or not self._first[0].is_file():
            return
        if self._first[0].stat().st_mtime_ns != self._first[1]:
            raise restarted(self._path, f"{self._first[0].name} of its first frame was written again")

    def _is_whole(self, frame: int, ended: bool) -> bool:
        """Whether all chunks of a frame are there, with the sizes that they had before."""
        files = list(self._files_of(frame))
        try:
            size = sum(file.stat().st_size for file in files)
        except FileNotFoundError:
            return False
        before, self._bytes[frame] = self._bytes.get(frame), size
        frames = self._frames_of_chunk
        following = (frame // frames + 1) * frames
        if frames > 1 and not ended:
            assert self._movie is not None
            return following < self._movie.frame_count and any(f.is_file() for f in self._files_of(following))
        return ended or size == before

    @property
    def _frames_of_chunk(self) -> int:
        chunks, axes = self._chunks(), self._axes()
        return chunks[axes.index("T")] if "T" in axes else 1

    def _chunks(self) -> tuple[int, ...]:
        return tuple(self._array.shards or self._array.chunks)

    def _axes(self) -> str:
        assert self._movie is not None
        return self._movie.axes

    def _files_of(self, frame: int) -> Iterator[Path]:
        """The files of a frame's chunks."""
        where = {"T": frame, "C": self._opening.channel}
        sides = [
            [where[axis] // size] if axis in where else range(math.ceil(length / size))
            for axis, size, length in zip(self._axes(), self._chunks(), self._array.shape, strict=True)
        ]
        root = getattr(self._array.store, "root", None)
        if root is None:
            raise InputError(f"{self._path} is no folder on a disk, which alone is followed. Unpack it.")
        for place in product(*sides):
            key = self._array.metadata.encode_chunk_key(tuple(np.array(place, int).tolist()))
            yield Path(root, self._array.path, key)
