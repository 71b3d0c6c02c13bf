"""What the module of a format offers to `outbid.formats`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..detections import Detections
from ..tracks import Tracks


class Reader(Protocol):
    """What the module of a format that is read offers; paths are checked before."""

    def recognises(self, path: Path) -> bool: ...
    def read_detections(self, path: Path) -> Detections: ...
    def read_tracks(self, path: Path) -> Tracks: ...
    def holds_tracks(self, path: Path) -> bool: ...
    def read_record(self, path: Path) -> dict[str, Any] | None: ...


class TableReader(Protocol):
    """What the module of a table offers whose columns a caller may name; it says so by TAKES_COLUMNS."""

    def recognises(self, path: Path, columns: Mapping[str, str]) -> bool: ...
    def read_detections(self, path: Path, columns: Mapping[str, str]) -> Detections: ...
    def read_tracks(self, path: Path, columns: Mapping[str, str]) -> Tracks: ...
    def holds_tracks(self, path: Path, columns: Mapping[str, str]) -> bool: ...
    def read_record(self, path: Path) -> dict[str, Any] | None: ...


@dataclass(frozen=True)
class ByColumns:
    """A format of tables, with the columns that the caller names."""

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
    """What the module of a format that is also written offers."""

    def write_detections(
        self, path: Path, detections: Detections, record: Mapping[str, object] | None, overwrite: bool
    ) -> None: ...
    def write_tracks(
        self, path: Path, tracks: Tracks, record: Mapping[str, object] | None, overwrite: bool
    ) -> None: ...
