"""The frames since the last part: each is appended as it is taken and as it is linked, for who looks on.

A viewer in another process reads the parts and this file: it delays nothing, and nothing waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..particles.detections import Detections
from .following import Followed

_COLUMNS = 6
"""Of a row: track, parent, probability, z, y, x; of the row before them: frame, image, behind, rows.

Before all rows of a file stands its name: as many random bytes as a row has.
"""
_BYTES = _COLUMNS * 8
_NOT_LINKED = -1.0
"""Stands for the number of rows where a frame was taken, and is not linked yet."""


class Tail:
    """Writes the frames since the last part.

    Parameters
    ----------
    folder : Path
        Of the parts.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def took(self, part: int, frame: int, image: int, behind: int) -> None:
        """Note that a frame was taken: the number of its image, and how many others are there already."""
        self._append(part, np.array([[frame, image, behind, _NOT_LINKED, 0, 0]]))

    def linked(self, part: int, one: Followed) -> None:
        """Add a frame that was linked."""
        rows = np.empty((len(one.track) + 1, _COLUMNS))
        rows[0] = one.frame, 0, 0, len(one.track), 0, 0
        rows[1:, 0], rows[1:, 1], rows[1:, 2] = one.track, one.parent, one.probability
        rows[1:, 3:] = one.detections.position
        self._append(part, rows)

    def drop(self, part: int) -> None:
        """Remove what has become a part."""
        tail_of(self._folder, part).unlink(missing_ok=True)

    def _append(self, part: int, rows: NDArray[np.float64]) -> None:
        with tail_of(self._folder, part).open("ab") as file:
            name = b"" if file.tell() else os.urandom(_BYTES)
            file.write(name + rows.tobytes())


def tail_of(folder: Path, part: int) -> Path:
    """The file of the frames that will be a part."""
    return folder / f"tail-{part:06d}.bin"


class TailReader:
    """Reads what was appended since the last look.

    Attributes
    ----------
    image : dict of int to int
        Numbers of the images by frame.
    taken, behind : int
        The last frame that was taken, and how many others were there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name, self._offset = b"", 0
        self.image: dict[int, int] = {}
        self.taken, self.behind = -1, 0

    def new(self, part: int) -> Iterator[Followed]:
        """The whole frames that were linked since the last look, of those that will be a part."""
        text = b""
        with suppress(FileNotFoundError), tail_of(self._folder, part).open("rb") as file:
            name = file.read(_BYTES)
            if name != self._name:  # of another part, or of a run that goes on and writes this one anew
                self._name, self._offset = name, _BYTES
            file.seek(self._offset)
            text = file.read()
        rows = np.frombuffer(text[: len(text) // _BYTES * _BYTES]).reshape(-1, _COLUMNS)
        at = 0
        while at < len(rows):
            frame, image, behind, count = (int(value) for value in rows[at, :4])
            if count < 0:
                self.image[frame], self.taken, self.behind = image, frame, behind
            elif at + 1 + count > len(rows):  # it is being written
                break
            else:
                yield _followed(frame, rows[at + 1 : at + 1 + count])
            at += 1 + max(count, 0)
            self._offset += _BYTES * (1 + max(count, 0))


def _followed(frame: int, rows: NDArray[np.float64]) -> Followed:
    seen = Detections.from_table(np.full(len(rows), frame, np.int64), rows[:, 3:])
    track, parent = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    return Followed(frame, seen, track, rows[:, 2].copy(), parent)
