"""OpenPTV: a folder with files ``rt_is.10001`` (points) and ``ptv_is.10001`` (links) for each frame.

Both kinds of file begin with the number of rows. A row of rt_is contains: number, x, y, z, and the targets in
four cameras. A row of ptv_is contains: row in the previous frame, row in the next frame (negative for none),
x, y, z. A folder is read with all its frames, a file as a single frame. If a frame has both files, tracks are
read from ptv_is. Positions are in mm.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.detections import Detections
from ...particles.tracks import Tracks
from ..contract import PositionFormat
from ..files.decimals import row_of
from .edges import detections_of, tracks_of

_LINKED_FIELDS = 5
_MOST_ROWS = 2**31
_NAME = re.compile(r"(rt_is|ptv_is)\.([0-9]{1,9})")


def recognises(path: Path, *_: object) -> bool:
    """Whether the path is such a file, or a folder that contains one."""
    if path.is_dir():
        return any(_NAME.fullmatch(file.name) for file in path.iterdir())
    return _NAME.fullmatch(path.name) is not None


def read_detections(path: Path, *_: object) -> Detections:
    """See `outbid.formats.read_detections`."""
    points, linked = _files(path)
    tables = {frame: _rows(file, 4)[:, 1:4] for frame, file in points.items()}
    tables |= {frame: _rows(file, 5)[:, 2:5] for frame, file in linked.items() if frame not in points}
    frame = np.repeat(list(tables), [len(rows) for rows in tables.values()])
    position = np.concatenate(list(tables.values()))[:, ::-1]
    return detections_of(path, frame, position, "mm")


def read_tracks(path: Path, *_: object) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    tables = {frame: _rows(file, 5) for frame, file in sorted(_files(path)[1].items())}
    if not tables:
        raise InputError(f"{path} has no ptv_is file, so it holds no tracks. Track the detections first.")
    first = dict(zip(tables, np.cumsum([0, *map(len, tables.values())]).tolist(), strict=False))
    edges = [np.empty((0, 2), dtype=np.int64)]
    for frame, rows in tables.items():
        if frame + 1 not in tables:  # the file of the next frame may be missing
            continue
        follower = _whole(path, frame, rows[:, 1])
        source = np.nonzero(follower >= 0)[0]
        if len(source) and follower.max() >= len(tables[frame + 1]):
            raise InputError(
                f"{path}: frame {frame} names row {follower.max()} of frame {frame + 1}, which has "
                f"{len(tables[frame + 1])} rows. The files do not belong together."
            )
        edges.append(np.column_stack([source + first[frame], follower[source] + first[frame + 1]]))
    frames = np.repeat(list(tables), [len(rows) for rows in tables.values()])
    position = np.concatenate([rows[:, 2:5] for rows in tables.values()])[:, ::-1]
    return tracks_of(path, np.arange(len(frames)), frames, position, np.concatenate(edges), "mm")


def holds_tracks(path: Path, *_: object) -> bool:
    """See `outbid.formats.holds_tracks`: whether every frame has a file of links."""
    points, linked = _files(path)
    return bool(linked) and set(points) <= set(linked)


def _files(path: Path) -> tuple[dict[int, Path], dict[int, Path]]:
    """Files of points and files of links, by frame."""
    found: dict[str, dict[int, Path]] = {"rt_is": {}, "ptv_is": {}}
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        name = _NAME.fullmatch(file.name)
        if name:
            found[name[1]][int(name[2])] = file
    return found["rt_is"], found["ptv_is"]


def _whole(path: Path, frame: int, number: NDArray[np.float64]) -> NDArray[np.int64]:
    """Check row numbers in a file of links; a negative number means no link."""
    wrong = ~(np.isfinite(number) & (number == np.rint(number)) & (np.abs(number) < _MOST_ROWS))
    if wrong.any():
        raise InputError(
            f"{path}: frame {frame} names row {number[np.argmax(wrong)]:g} of the next; a whole number is "
            "needed. Fix it."
        )
    return number.astype(np.int64)


def _rows(path: Path, least: int) -> NDArray[np.float64]:
    """(n, `least`) first numbers of all rows after the row count."""
    lines = path.read_text("ascii", "replace").splitlines()
    count = lines[0].strip() if lines else ""
    if not count.isdigit():
        raise InputError(f"{path}, line 1: {count[:40]!r} where the count of rows should be.")
    rows = [(number, line) for number, line in enumerate(lines[1:], 2) if line.strip()]
    if rows and (len(rows[0][1].split()) > _LINKED_FIELDS) == path.name.startswith("ptv_is"):
        raise InputError(
            f"{path}: rows of ptv_is have {_LINKED_FIELDS} numbers, rows of rt_is more; these are of the "
            "other kind. Give the file the name it was made with."
        )
    if len(rows) != int(count):
        raise InputError(f"{path}: {len(rows)} rows where line 1 says {count}. The file may be cut short.")
    return np.array([row_of(path, number, line, least) for number, line in rows]).reshape(-1, least)


FORMAT = PositionFormat(
    read_detections=read_detections, read_tracks=read_tracks, holds_tracks=holds_tracks, recognises=recognises
)
