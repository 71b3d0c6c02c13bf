"""The functions that the module of a format provides for `outbid.formats`.

A format that is written defines ``write_table(path, rows, unit, record, overwrite)`` if it is a table, else
``write_tracks(path, tracks, record, overwrite)``, which detections without links are written by as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from ..detections import Detections
from ..tracks import Tracks


class Reader(Protocol):
    """Functions of a format that can be read; `outbid.formats` checks paths before it calls them.

    A format without `read_record` keeps no record, or one beside its files if it defines RECORD_BESIDE. One
    without `holds_tracks` always holds tracks, and one without `read_detections` gives those of its tracks.
    """

    def recognises(self, path: Path) -> bool: ...
    def read_tracks(self, path: Path) -> Tracks: ...


class TableReader(Protocol):
    """Functions of a table format whose columns a caller may name; it defines TAKES_COLUMNS.

    It has `read_table` of a path and the columns; `read_tracks` and `holds_tracks` that take both, if the
    table alone does not say.
    """

    def recognises(self, path: Path, columns: Mapping[str, str]) -> bool: ...
    def read_table(self, path: Path, columns: Mapping[str, str]) -> Any: ...


@dataclass(frozen=True)
class ByColumns:
    """A table format together with the columns that the caller named."""

    form: TableReader
    columns: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        """Whatever else the format defines, such as `read_record`."""
        return getattr(self.form, name)

    def recognises(self, path: Path) -> bool:
        return self.form.recognises(path, self.columns)

    def read_detections(self, path: Path) -> Detections:
        from .table import detections_of

        return detections_of(self.form.read_table(path, self.columns))

    def read_tracks(self, path: Path) -> Tracks:
        from .table import tracks_of

        if hasattr(self.form, "read_tracks"):
            return cast(Tracks, self.form.read_tracks(path, self.columns))
        return tracks_of(self.form.read_table(path, self.columns))

    def holds_tracks(self, path: Path) -> bool:
        from .table import holds_tracks

        if hasattr(self.form, "holds_tracks"):
            return bool(self.form.holds_tracks(path, self.columns))
        return holds_tracks(self.form.read_table(path, self.columns).roles)
