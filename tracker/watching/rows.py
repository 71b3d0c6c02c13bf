"""A table to which rows are added, or rows from stdin."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from ..formats.tables import table
from ..formats.tables.csv import rows_in
from ..formats.tables.csv_layout import as_utf8, layout_of
from ..particles.detections import Detections
from .sources import restarted

_LOG = logging.getLogger("outbid")
_BLOCK = 1 << 26
"""Guard: bytes of rows that are parsed at a time."""


class GrowingTable:
    """Rows of a text table. A frame is whole when a row of a later one follows it, or a blank line.

    Parameters
    ----------
    path : Path
    columns : mapping of str to str
        As for `outbid.read_detections`.
    """

    counts = True
    ended = False

    def __init__(self, path: Path, columns: dict[str, str]) -> None:
        self._path, self._columns = path, columns
        self._head, self._offset = b"", 0
        self._rows: dict[int, list[Detections]] = {}
        self._given, self._first = -1, -1

    def poll(self, *, ended: bool = False) -> Sequence[int]:
        size = self._path.stat().st_size if self._path.is_file() else 0
        if size < self._offset:
            raise restarted(self._path, "it is shorter than it was")
        blank = self._take(ended=ended) if size > self._offset else False
        there = sorted(self._rows)
        whole = there if ended or blank else there[:-1]
        whole = [number for number in whole if number > self._given]
        self._given = whole[-1] if whole else self._given
        return whole

    def read(self, number: int) -> Detections:
        return Detections.joined(self._rows.pop(number))

    def drop(self, number: int) -> None:
        """A frame that will not be read."""
        self._rows.pop(number, None)

    def movie(self) -> None:
        return None

    def _take(self, *, ended: bool) -> bool:
        """Take in the whole lines that are new; whether a blank line ends them."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read(_BLOCK)
        whole = text if ended and len(text) < _BLOCK else text[: text.rfind(b"\n") + 1]
        if not self._head:
            whole = self._without_head(whole)
        self._offset += len(whole)
        if whole.strip():
            self._add(self._parsed(whole))
        return whole.replace(b"\r", b"").endswith(b"\n\n")

    def _without_head(self, text: bytes) -> bytes:
        """Keep the lines up to the header; the rows below it."""
        if text and as_utf8(text, self._path) != text:
            raise InputError(f"{self._path} is not plain UTF-8, in which a table is followed. Write it so.")
        if text.count(b"\n") < 2:
            return b""
        start = layout_of(text, self._path, self._columns).start
        self._head, self._offset = text[:start], start
        return text[start:]

    def _parsed(self, text: bytes) -> Detections:
        level, first = _LOG.level, self._first < 0
        try:
            if not first:  # remarks on the columns were made
                _LOG.setLevel(logging.ERROR)
            return table.detections_of(rows_in(self._head + text, self._path, self._columns))
        finally:
            _LOG.setLevel(level)

    def _add(self, seen: Detections) -> None:
        for frame in dict.fromkeys(seen.frame.tolist()):
            if frame == self._first < self._given:
                raise restarted(self._path, f"frame {frame} comes again after frame {self._given}")
            if frame <= self._given:
                _LOG.warning("%s: rows of frame %d come late; the last pass takes them in", self._path, frame)
            else:
                self._rows.setdefault(frame, []).append(seen.take(seen.rows_of(frame)))
        if self._first < 0:
            self._first = int(seen.frame[0])


class Stdin(GrowingTable):
    """Rows from stdin, which a thread copies to a file as they come; a killed run goes on in that file."""

    def __init__(self, spool: Path, columns: dict[str, str]) -> None:
        super().__init__(spool, columns)
        threading.Thread(target=self._copy, args=(spool,), daemon=True).start()

    def _copy(self, spool: Path) -> None:
        """Append to the file, without a line that a killed run left half, and a header that comes again."""
        before = spool.read_bytes() if spool.is_file() else b""
        header = before[: before.find(b"\n") + 1]
        with spool.open("r+b" if before else "wb") as file:
            file.truncate(before.rfind(b"\n") + 1)
            file.seek(0, 2)
            for line in sys.stdin.buffer:
                if line != header:
                    file.write(line)
                    file.flush()
        self.ended = True
