"""The functions that the module of a format provides for `outbid.formats`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..detections import Detections
from ..tracks import Tracks


class Reader(Protocol):
    """Functions of a format that can be read; `outbid.formats` checks paths before it calls them."""

    def recognises(self, path: Path) -> bool: ...
    def read_detections(self, path: Path) -> Detections: ...
    def read_tracks(self, path: Path) -> Tracks: ...
    def holds_tracks(self, path: Path) -> bool: ...
    def read_record(self, path: Path) -> dict[str, Any] | None: ...


class TableReader(Protocol):
    """Functions of a table format whose columns a caller may name; it defines TAKES_COLUMNS."""

    def recognises(self, path: Path, columns: Mapping[str, str]) -> bool: ...
    def read_detections(self, path: Path, columns: Mapping[str, str]) -> Detections: ...
    def read_tracks(self, path: Path, columns: Mapping[str, str]) -> Tracks: ...
    def holds_tracks(self, path: Path, columns: Mapping[str, str]) -> bool: ...
    def read_record(self, path: Path) -> dict[str, Any] | None: ...


@dataclass(frozen=True)
class ByColumns:
    """A table format together with the columns that the caller named."""

    form: TableReader
    columns: Mapping[str, str]

    def recognises(self, path: Path) -> bool:
        return self.form.recognises(path, self.columns)

    def read_detections(self, path: Path) -> Detections:
        return self.form.read_detections(path, self.columns)

    def read_tracks(self, path: Path) -> Tracks:
        return self.form.read_tracks(path, self.columns)

    def holds_tracks(self, path: Path) -> bool:
        return self.form.holds_tracks(path, self.columns)

    def read_record(self, path: Path) -> dict[str, Any] | None:
        return self.form.read_record(path)


class Format(Reader, Protocol):
    """Functions of a format that can also be written."""

    def write_detections(
        self, path: Path, detections: Detections, record: Mapping[str, object] | None, overwrite: bool
    ) -> None: ...
    def write_tracks(
        self, path: Path, tracks: Tracks, record: Mapping[str, object] | None, overwrite: bool
    ) -> None: ...
