"""The functions that the module of a format provides for `outbid.formats`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..detections import Detections
from ..tracks import Tracks


class Reader(Protocol):
    """Functions of a format that can be read; `outbid.formats` checks paths before it calls them.

    A format without `read_record` keeps no record. One without `holds_tracks` always holds tracks, and one
    without `read_detections` gives those of its tracks.
    """

    def recognises(self, path: Path) -> bool: ...
    def read_tracks(self, path: Path) -> Tracks: ...


class TableReader(Protocol):
    """Functions of a table format whose columns a caller may name; it defines TAKES_COLUMNS.

    It has `read_table` of a path and the columns, or the functions of `Reader`, which take them as well.
    """

    def recognises(self, path: Path, columns: Mapping[str, str]) -> bool: ...


@dataclass(frozen=True)
class ByColumns:
    """A table format together with the columns that the caller named."""

    form: TableReader
    columns: Mapping[str, str]

    def recognises(self, path: Path) -> bool:
        return self.form.recognises(path, self.columns)

    def read_detections(self, path: Path) -> Detections:
        found: Detections = self._read("detections_of", "read_detections", path)
        return found

    def read_tracks(self, path: Path) -> Tracks:
        found: Tracks = self._read("tracks_of", "read_tracks", path)
        return found

    def holds_tracks(self, path: Path) -> bool:
        if hasattr(self.form, "holds_tracks"):
            return bool(self.form.holds_tracks(path, self.columns))
        from .table import holds_tracks

        return not hasattr(self.form, "read_table") or holds_tracks(
            self.form.read_table(path, self.columns).roles
        )

    def read_record(self, path: Path) -> dict[str, Any] | None:
        record: dict[str, Any] | None = getattr(self.form, "read_record", no_record)(path)
        return record

    def _read(self, of_rows: str, own: str, path: Path) -> Any:
        if not hasattr(self.form, "read_table"):
            return getattr(self.form, own)(path, self.columns)
        from . import table

        return getattr(table, of_rows)(self.form.read_table(path, self.columns))


def no_record(_path: Path) -> None:
    """The record of a format that cannot store one."""


def holds_tracks_always(_path: Path) -> bool:
    """Whether a file of a format that always holds tracks does."""
    return True


class Format(Reader, Protocol):
    """Functions of a format that can also be written."""

    def write_detections(
        self, path: Path, detections: Detections, record: Mapping[str, object] | None, overwrite: bool
    ) -> None: ...
    def write_tracks(
        self, path: Path, tracks: Tracks, record: Mapping[str, object] | None, overwrite: bool
    ) -> None: ...
