"""What a watch has written so far, read in another process while it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet

from ..formats.files.records import record_from
from .following import Followed
from .parts import ENDED, EVENTS, STOP, frames_of, live_folder, part_of
from .tail import TailReader

_LATEST = 64
"""Guard: parts that are read by who begins to look on; those before are read when they are looked at."""


class Reading:
    """Frames, events and the record of a watch, as they are written.

    Parameters
    ----------
    output : Path
        The tracks that the watch writes.

    Attributes
    ----------
    last : int
        The last frame that was linked.
    tail : TailReader
        What was taken, and the numbers of images.
    """

    def __init__(self, output: Path) -> None:
        self.output, self.folder = output, live_folder(output)
        self.tail = TailReader(self.folder)
        self.last = -1
        self._spans: list[tuple[int, int]] = []  # first and last frame of each part
        self._offset = 0
        self._since = self._written()

    def new(self) -> list[Followed]:
        """The frames that were linked since the last call, in order."""
        while self._spans and not part_of(self.folder, len(self._spans) - 1).exists() and not self.has_ended:
            self._spans.pop()  # a run was killed before it kept the state of this part
        found = list(self._fresh(self.tail.new(len(self._spans))))
        while (path := part_of(self.folder, len(self._spans))).exists():
            found += self._fresh(self.tail.new(len(self._spans)))  # which is whole now
            try:
                found += self._of_part(path)
            except OSError:  # the folder was removed after the last pass
                break
            found += self._fresh(self.tail.new(len(self._spans)))
        return found

    def between(self, first: int, last: int) -> list[Followed]:
        """The frames of a range that are in parts."""
        found: list[Followed] = []
        for number, (begin, end) in enumerate(self._spans):
            if begin <= last and end >= first:
                with suppress(OSError):  # the folder was removed after the last pass
                    found += frames_of(part_of(self.folder, number))
        return [one for one in found if first <= one.frame <= last]

    def events(self) -> list[dict[str, Any]]:
        """The events since the last call."""
        text = b""
        with suppress(FileNotFoundError), (self.folder / EVENTS).open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    @property
    def has_ended(self) -> bool:
        """Whether the recording has ended, so that the whole movie is linked again."""
        return (self.folder / ENDED).exists() or self.record() is not None

    def record(self) -> dict[str, Any] | None:
        """The record of the run, once all is written."""
        if self._written() == self._since:
            return None
        return dict(record_from(self._path.read_bytes(), self._path))

    @property
    def _path(self) -> Path:
        return self.output.with_name(f"{self.output.stem}.watch.json")

    def _written(self) -> int:
        """When the record was written; 0 if it is not there."""
        return self._path.stat().st_mtime_ns if self._path.is_file() else 0

    def _of_part(self, path: Path) -> Iterator[Followed]:
        """Count a part, and give what was not read from its tail."""
        frame = pyarrow.parquet.read_table(path, columns=["frame"])["frame"].to_numpy()
        self._spans.append((int(frame.min()), int(frame.max())) if len(frame) else (0, -1))
        if part_of(self.folder, len(self._spans) + _LATEST).exists():
            self.last = max(self.last, self._spans[-1][1])
        elif self._spans[-1][1] > self.last:
            yield from self._fresh(frames_of(path))

    def _fresh(self, frames: Iterator[Followed]) -> Iterator[Followed]:
        """Those after the last one: a run that goes on after it was killed does some again."""
        for one in frames:
            if one.frame > self.last:
                self.last = one.frame
                yield one


def stop(output: Path) -> bool:
    """End the recording that is watched; whether one was."""
    folder = live_folder(output)
    if not folder.is_dir() or (folder / ENDED).exists():
        return False
    (folder / STOP).touch()
    return True
