"""Cell Tracking Challenge: label images and a table of tracks; detections are centroids of labels.

The folder holds either ``mask000.tif`` … with ``res_track.txt`` (a result) or ``man_track000.tif`` … with
``man_track.txt`` (the truth). Rows of the table are: label, first frame, last frame, parent (0 for none). A
track has a gap in frames whose image lacks its label. It is an error if the image of a frame of some track is
missing, or if a parent ends after its child begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.detections import Detections
from ...particles.tracks import Tracks
from ..contract import PositionFormat
from ..files.outputs import write_whole_folder
from ..images.folders import open_movie
from ..images.labels import centroids
from ..tables.edges import detections_of

_TABLES = ("res_track.txt", "man_track.txt")
MOST = 2**16 - 1
"""Largest label of a mask of 16 bits, which the challenge asks for; with more labels a mask has 32 bits."""
_IMAGE = re.compile(r"(?:mask|man_track)([0-9]+)\.tiff?")


def recognises(path: Path, *_: object) -> bool:
    """Whether the path is a folder with such images and a table, or the table in such a folder."""
    folder = path if path.is_dir() else path.parent
    return path.name in (*_TABLES, folder.name) and any((folder / name).is_file() for name in _TABLES)


def read_detections(path: Path, *_: object) -> Detections:
    """See `outbid.formats.read_detections`."""
    return _read(path)[0]


def read_tracks(path: Path, *_: object) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    detections, label = _read(path)
    table = _table(path)
    unknown = np.setdiff1d(label, table[:, 0])
    if len(unknown):
        raise InputError(f"{path}: label {unknown[0]} is in the images and not in the table. Add its row.")
    first, last = table[:, 1], table[:, 2]
    index = np.searchsorted(table[:, 0], label)
    outside = (detections.frame < first[index]) | (detections.frame > last[index])
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{path}: label {label[row]} is in frame {detections.frame[row]}, outside frames "
            f"{first[index[row]]} to {last[index[row]]} of its row. Fix the table."
        )
    # A parent may be in the table but in no image: then its child gets no link to it.
    parent = np.where(np.isin(table[:, 3], label) & (table[:, 3] > 0), table[:, 3], -1)
    return Tracks.from_track_ids(detections, label, parent[index])


def write_masks(
    path: Path, frames: Iterable[NDArray], rows: NDArray[np.int64], *, overwrite: bool = False
) -> None:
    """Write a folder of masks mask000.tif, mask001.tif, … with the table res_track.txt.

    `rows`, (n, 4), are label, first frame, last frame, and label of the parent, 0 for none.

    Raises
    ------
    SettingsError
        If there is a folder that must not be replaced.
    """
    import tifffile

    kind = np.uint16 if len(rows) <= MOST else np.uint32

    def write(folder: Path) -> None:
        folder.mkdir()
        for frame, image in enumerate(frames):
            mask = image.astype(kind)
            plane = mask[0] if len(mask) == 1 else mask
            tifffile.imwrite(
                folder / f"mask{frame:03d}.tif", plane, compression="zlib", photometric="minisblack"
            )
        table = "".join(" ".join(map(str, row)) + "\n" for row in rows.tolist())
        (folder / _TABLES[0]).write_text(table, "ascii")

    write_whole_folder(path, write, overwrite=overwrite, foreign=foreign)


def foreign(path: Path) -> str | None:
    """Why a folder must not be replaced; None if it is a result of the challenge."""
    others = [
        file.name for file in path.iterdir() if file.name != _TABLES[0] and not _IMAGE.fullmatch(file.name)
    ]
    return f"it holds {min(others)}" if others else None


def _read(path: Path) -> tuple[Detections, NDArray[np.int64]]:
    """Centroids of all labels, with the label of each."""
    images = _images(path if path.is_dir() else path.parent)
    _refuse_missing(path, images)
    found = []
    for frame, file in sorted(images.items()):
        movie = open_movie(file)
        if movie.frame_count > 1:  # in a folder of stacks, an unnamed axis is z
            movie = open_movie(file, axes=movie.axes.replace("T", "Z"))
        label, position, size = centroids(next(movie.frames()))
        found.append((np.full(len(label), frame), label, position, size))
    frames, labels, positions, sizes = map(np.concatenate, zip(*found, strict=True))
    return detections_of(path, frames, positions, None, {"size": sizes}), labels


def _images(folder: Path) -> dict[int, Path]:
    """The image of each frame."""
    images: dict[int, Path] = {}
    for file in sorted(folder.iterdir()):
        if found := _IMAGE.fullmatch(file.name):
            first = images.setdefault(int(found[1]), file)
            if first is not file:
                raise InputError(
                    f"{folder}: {first.name} and {file.name} are both of frame {int(found[1])}. Keep one."
                )
    if not images:
        raise InputError(
            f"{folder} has no images mask000.tif or man_track000.tif beside its table. Add them."
        )
    return images


def _refuse_missing(path: Path, images: dict[int, Path]) -> None:
    """Refuse frames of tracks without an image: even an empty frame needs one."""
    table = _table(path)
    if not len(table):
        return
    first, last = int(table[:, 1].min()), int(table[:, 2].max())
    count = last - first + 1 - sum(first <= frame <= last for frame in images)
    if count > 0:
        lost = next(frame for frame in range(first, last + 1) if frame not in images)
        like = next(iter(images.values()))
        name = re.sub(r"\d+", lambda number: f"{lost:0{len(number[0])}}", like.name)
        more = f" (and {count - 1} more)" if count > 1 else ""
        raise InputError(
            f"{path}: {name}{more} is missing; its table has tracks in frames {first} to {last}. Add the "
            "image, an empty one where nothing was seen."
        )


def _table(path: Path) -> NDArray[np.int64]:
    """(n, 4) label, first frame, last frame and parent, sorted by label."""
    folder = path if path.is_dir() else path.parent
    file = path if path.is_file() else next(folder / name for name in _TABLES if (folder / name).is_file())
    rows = []
    for line, text in enumerate(file.read_text("ascii", "replace").splitlines(), 1):
        fields = text.split()
        if fields:
            if len(fields) != 4 or not all(field.isdigit() and len(field) < 10 for field in fields):
                raise InputError(
                    f"{file}, line {line}: {text[:60]!r}; four whole numbers are needed. Fix it."
                )
            rows.append([int(field) for field in fields])
    table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 4)
    if (np.diff(table[:, 0]) == 0).any():
        raise InputError(
            f"{file}: label {table[:-1][np.diff(table[:, 0]) == 0][0, 0]} has two rows. Keep one."
        )
    return table


FORMAT = PositionFormat(read_detections=read_detections, read_tracks=read_tracks, recognises=recognises)
