"""What the module of a format of detections and tracks offers, as its `FORMAT`: a `PositionFormat`.

Those of tables make it by `tables.table.format_of_tables`; those of images offer an `ImageFormat` of
`images.stacks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
class PositionFormat:
    """Files of detections and tracks: functions of the path of a file that exists.

    Parameters
    ----------
    read_detections, read_tracks, holds_tracks : callable
        As those of `outbid.formats`, also given the columns that the caller named.
    recognises : callable
        Whether the content of a file, whose name fits a pattern, is of this format.
    write : callable
        (path, detections or tracks, record, overwrite), of a format that has suffixes.
    read_record : callable
        The run record in a file, or `record_beside` if it is a file beside it; by default there is none.
    read_with : callable
        The files that are read together with the named one.
    foreign : callable, optional
        For an output that is a folder, see `outputs.refuse_output`.
    takes_columns : bool
        Whether the caller may name columns.
    """

    read_detections: Callable[[Path, Columns], Detections]
    read_tracks: Callable[[Path, Columns], Tracks]
    holds_tracks: Callable[[Path, Columns], bool] = always
    recognises: Callable[[Path, Columns], bool] = always
    write: Callable[[Path, Detections | Tracks, Record, bool], None] = not_written
    read_record: Callable[[Path], dict[str, Any] | None] = lambda _: None
    read_with: Callable[[Path], list[Path]] = lambda _: []
    foreign: Callable[[Path], str | None] | None = None
    takes_columns: bool = False

    @property
    def has_record_beside(self) -> bool:
        """Whether the run record is a file beside an output."""
        return self.read_record is record_beside


def with_links(given: Detections | Tracks) -> Tracks:
    """Tracks as they are, detections as tracks without links."""
    return given if isinstance(given, Tracks) else Tracks(given, np.empty((0, 2), np.int64))
