"""Mastodon projects: a zip archive whose ``model.raw`` holds the graph of spots and links.

The stream is a Java serialisation. The reader uses its blocks of plain data only and never creates objects of
the classes that it names. The blocks contain, in this order: the number of spots (int32); for each spot x, y,
z (float64), frame (int32), six values of the covariance and the squared bounding radius (float64), all
little-endian; the number of links (int32, big-endian); and for each link its source, its target and its index
at each of them (int32, big-endian). Labels and tags follow and are ignored. This layout was derived from
files, as no specification is known.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.tracks import Tracks
from ..contract import PositionFormat
from ..files.memory import refuse_if_larger_than_memory
from ..files.packages import refused_if_damaged
from ..tables.edges import tracks_of

_SPOT = np.dtype([("position", "<f8", 3), ("frame", "<i4"), ("covariance", "<f8", 6), ("radius2", "<f8")])
_LINK = np.dtype([("ends", ">i4", 2), ("indices", ">i4", 2)])
_JAVA = b"\xac\xed\x00\x05"
_SHORT, _LONG = 0x77, 0x7A  # block types, with a length of one byte or of four


def read_tracks(path: Path, *_: object) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    spots, links, unit = _read(path)
    position = np.ascontiguousarray(spots["position"][:, ::-1])
    radius = np.sqrt(np.maximum(spots["radius2"], 0))
    node = np.arange(len(spots), dtype=np.int64)
    return tracks_of(path, node, spots["frame"], position, links, unit, {"radius": radius})


def _read(path: Path) -> tuple[NDArray, NDArray[np.int64], str | None]:
    """Spots, (n, 2) links between spot numbers, and the unit."""
    with refused_if_damaged(path, "is a damaged archive", "Copy it again."), zipfile.ZipFile(path) as archive:
        model, project = (_member(archive, path, name) for name in ("model.raw", "project.xml"))
    data = _blocks(model, path)
    spots, after = _counted(data, 0, _SPOT, "spots", path)
    links, _ = _counted(data, after, _LINK, "links", path)
    return spots, links["ends"].astype(np.int64), _unit(project, path)


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> bytes:
    """Unpack one file of the archive into memory, at most to its declared size."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise InputError(f"{path} is an archive without {name}: no project of Mastodon. Check it.") from None
    refuse_if_larger_than_memory(path, 3.0 * info.file_size)
    with archive.open(info) as member:
        return member.read(info.file_size)  # a plain read() would unpack a whole zip bomb


def _blocks(model: bytes, path: Path) -> bytes:
    """The plain data of a Java stream before its first object."""
    if not model.startswith(_JAVA):
        raise InputError(f"{path}: model.raw is no stream of Java. Save the project again.")
    parts, offset = [], len(_JAVA)
    while offset < len(model) and model[offset] in (_SHORT, _LONG):
        head = 2 if model[offset] == _SHORT else 5
        if offset + head > len(model):
            raise InputError(f"{path}: model.raw ends within a block. Copy the project again.")
        length = int.from_bytes(model[offset + 1 : offset + head])
        if offset + head + length > len(model):
            raise InputError(f"{path}: model.raw ends within a block. Copy the project again.")
        parts.append(model[offset + head : offset + head + length])
        offset += head + length
    return b"".join(parts)


def _counted(data: bytes, offset: int, kind: np.dtype, what: str, path: Path) -> tuple[NDArray, int]:
    """Read an array that is preceded by its length; returns the array and the offset after it."""
    if offset + 4 > len(data):
        raise InputError(f"{path}: model.raw ends before its {what}. Copy the project again.")
    (count,) = struct.unpack_from(">i", data, offset)
    stop = offset + 4 + count * kind.itemsize
    if count < 0 or stop > len(data):
        raise InputError(
            f"{path}: model.raw declares {count} {what} and ends before. Copy the project again."
        )
    return np.frombuffer(data, kind, count, offset + 4), stop


def _unit(project: bytes, path: Path) -> str | None:
    from defusedxml import ElementTree

    try:
        return ElementTree.fromstring(project, forbid_dtd=True).findtext("SpaceUnits")
    except Exception as error:  # a parse error, or an attack that defusedxml detects
        raise InputError(f"{path}: project.xml cannot be read ({error}). Save the project again.") from None


FORMAT = PositionFormat(
    read_detections=lambda path, _: read_tracks(path).detections, read_tracks=read_tracks,
    holds_tracks=lambda path, _: len(_read(path)[1]) > 0,
)  # fmt: skip
