"""MyPTV: text without a header, ``trajectories``, ``smoothed_trajectories`` and ``particles``.

The columns are: track number (-1 for none; not in ``particles``), x, y, z in mm, further values, and the
frame.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.detections import Detections
from ...particles.tracks import Tracks
from ..contract import PositionFormat
from ..files.decimals import decimal, row_of
from .edges import detections_of, labelled

_COUNTS = {8: 0, 9: 1, 11: 1}  # number of columns of each kind of file, and how many precede x


def recognises(path: Path, *_: object) -> bool:
    """Whether the first line has as many numbers as one of the kinds of file."""
    if path.suffix:
        return False
    with path.open("rb") as file:
        first = [field.decode("ascii", "replace") for field in file.readline(1000).split()]
    try:
        return len(first) in _COUNTS and all(np.isfinite(decimal(field)) for field in first)
    except ValueError:
        return False


def read_detections(path: Path, *_: object) -> Detections:
    """See `outbid.formats.read_detections`."""
    frame, place = _read(path)[:2]
    return detections_of(path, frame, place, "mm")


def read_tracks(path: Path, *_: object) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    frame, place, label = _read(path)
    if label is None:
        raise InputError(f"{path} holds particles without track numbers. Track them first.")
    return labelled(path, label, frame, place, "mm")


def holds_tracks(path: Path, *_: object) -> bool:
    """See `outbid.formats.holds_tracks`."""
    with path.open("rb") as file:
        return _COUNTS[len(file.readline(1000).split())] == 1


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Frames, positions z, y, x, and track numbers."""
    lines = path.read_text("ascii", "replace").splitlines()
    wide = len(lines[0].split())
    rows = np.array([row_of(path, number, line, wide, wide) for number, line in enumerate(lines, 1)])
    before = _COUNTS[wide]
    return rows[:, -1], rows[:, before : before + 3][:, ::-1], rows[:, 0] if before else None


FORMAT = PositionFormat(
    read_detections=read_detections, read_tracks=read_tracks, holds_tracks=holds_tracks, recognises=recognises
)
