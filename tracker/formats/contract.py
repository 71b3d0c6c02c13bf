"""What the module of a format of detections and tracks offers, as its `FORMAT`.

It is a `GraphFormat`, or a `TableFormat` of `tables.table`; that of a format of images is an `ImageFormat` of
`images.stacks`. A module names the functions that it has; the others have defaults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..particles.detections import Detections
from ..particles.tracks import Tracks
from .files.records import record_beside

Columns = Mapping[str, str]
"""Columns by role that the caller named."""
Record = Mapping[str, object] | None


def always(*_: object) -> bool:
    """The content of each file is of this format, or has tracks."""
    return True


def not_written(*_: object) -> None:
    """The writer of a format without suffixes."""
    raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PositionFormat(ABC):
    """Files of detections and tracks, by paths of files that exist.

    Parameters
    ----------
    read_record : callable
        The run record in a file, or `record_beside` if it is a file beside it; by default there is none.
    read_with : callable
        The files that are read together with the named one.
    foreign : callable, optional
        For an output that is a folder, see `outputs.refuse_output`.
    """

    read_record: Callable[[Path], dict[str, Any] | None] = lambda _: None
    read_with: Callable[[Path], list[Path]] = lambda _: []
    foreign: Callable[[Path], str | None] | None = None

    takes_columns: ClassVar[bool] = False
    """Whether the caller may name columns."""

    @property
    def has_record_beside(self) -> bool:
        """Whether the run record is a file beside an output."""
        return self.read_record is record_beside

    @abstractmethod
    def accepts(self, path: Path, columns: Columns) -> bool:
        """Whether the content of a file is of this format."""

    @abstractmethod
    def detections(self, path: Path, columns: Columns) -> Detections:
        """See `outbid.formats.read_detections`."""

    @abstractmethod
    def tracks(self, path: Path, columns: Columns) -> Tracks:
        """See `outbid.formats.read_tracks`."""

    @abstractmethod
    def has_tracks(self, path: Path, columns: Columns) -> bool:
        """See `outbid.formats.holds_tracks`."""

    @abstractmethod
    def write(self, path: Path, given: Detections | Tracks, record: Record, *, overwrite: bool) -> None:
        """See `outbid.formats.write_tracks`."""


@dataclass(frozen=True, kw_only=True)
class GraphFormat(PositionFormat):
    """Graphs of detections and links, and other files that say what is what.

    Parameters
    ----------
    read_tracks : callable
    read_detections : callable, optional
        By default the detections are those of the tracks.
    recognises, holds_tracks : callable
        Whether the content of a file is of this format; and whether it has tracks.
    write_tracks : callable
        (path, tracks, record, overwrite), of a format that has suffixes; the tracks may have no links.
    """

    read_tracks: Callable[[Path], Tracks]
    read_detections: Callable[[Path], Detections] | None = None
    recognises: Callable[[Path], bool] = always
    holds_tracks: Callable[[Path], bool] = always
    write_tracks: Callable[[Path, Tracks, Record, bool], None] = not_written

    def accepts(self, path: Path, _columns: Columns) -> bool:
        """See `PositionFormat`, as for the others."""
        return self.recognises(path)

    def detections(self, path: Path, _columns: Columns) -> Detections:
        if self.read_detections is not None:
            return self.read_detections(path)
        return self.read_tracks(path).detections

    def tracks(self, path: Path, _columns: Columns) -> Tracks:
        return self.read_tracks(path)

    def has_tracks(self, path: Path, _columns: Columns) -> bool:
        return self.holds_tracks(path)

    def write(self, path: Path, given: Detections | Tracks, record: Record, *, overwrite: bool) -> None:
        tracks = given if isinstance(given, Tracks) else Tracks(given, np.empty((0, 2), np.int64))
        self.write_tracks(path, tracks, record, overwrite)
