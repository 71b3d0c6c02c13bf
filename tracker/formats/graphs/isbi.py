"""ISBI XML, with one element per particle, and the similar XML exports of TrackMate and Icy.

The reader accepts ``<root><TrackContestISBI2012><particle><detection t x y z/>`` of the particle tracking
challenge (Chenouard et al., Nat. Methods 11, 281, 2014), TrackMate's simple
``<Tracks><particle><detection/>`` and Icy's ``<trackgroup><track><detection/>``. The format has neither
divisions nor features, so the writer leaves them out. The run record is a file beside the output:
``tracks.isbi.xml.json``.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...errors import InputError
from ...particles.detections import Detections
from ...particles.tracks import Tracks
from ..contract import Record, with_links
from ..files.memory import refuse_if_larger_than_memory
from ..files.outputs import write_whole
from ..files.records import record_beside, to_stand_beside, unit_beside
from ..files.xml_stream import Enough, number, read_xml, root_of
from ..tables.edges import Labelled, format_of_labelled

_LOG = logging.getLogger("outbid")
_ROOTS = ("root", "Tracks")
_PARTICLE = ("particle", "track")


def holds_tracks(path: Path, *_: object) -> bool:
    """See `outbid.formats.holds_tracks`: whether some particle has two detections."""
    count = 0

    def begin(name: str, *_: object) -> None:
        nonlocal count
        count = count + 1 if name == "detection" else 0
        if count > 1:
            raise Enough

    read_xml(path, begin)
    return count > 1


def write_tracks(path: Path, given: Detections | Tracks, record: Record, overwrite: bool) -> None:
    """See `outbid.formats.write_tracks`."""
    tracks = with_links(given)
    detections = tracks.detections
    if len(detections) - tracks.track_count < len(tracks.links):
        _LOG.warning("%s: ISBI XML has no place for divisions and merges; their links are left out.", path)
    if detections.features:
        _LOG.warning("%s: ISBI XML has no place for %s: left out.", path, ", ".join(detections.features))
    order = np.argsort(tracks.track_id, kind="stable")
    particles = np.split(order, np.nonzero(np.diff(tracks.track_id[order]))[0] + 1) if len(order) else []

    def write(file: BinaryIO) -> None:
        file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<root>\n')
        file.write(b'  <TrackContestISBI2012 snr="?" density="?" scenario="?">\n')
        for rows in particles:
            lines = [
                f'      <detection t="{t}" x="{x!r}" y="{y!r}" z="{z!r}"/>\n'
                for t, (z, y, x) in zip(
                    detections.frame[rows].tolist(), detections.position[rows].tolist(), strict=True
                )
            ]
            file.write(f"    <particle>\n{''.join(lines)}    </particle>\n".encode())
        file.write(b"  </TrackContestISBI2012>\n</root>\n")

    beside = to_stand_beside(path, record, detections.unit)
    write_whole(path, write, overwrite=overwrite, beside=beside)


def _read(path: Path) -> Labelled:
    """See `edges.Labelled`."""
    values, particle = array("d"), array("q")
    count, current = 0, -1
    inside = False

    def begin(name: str, attributes: Mapping[str, str], line: int) -> None:
        nonlocal count, current, inside
        if not inside and name not in _ROOTS:
            raise InputError(
                f"{path} is XML of another kind (<{name[:40]}>), not ISBI's. Rename it to end in .xml."
            )
        inside = True
        if name in _PARTICLE:
            count, current = count + 1, count
        elif name == "detection":
            if current < 0:
                raise InputError(f"{path}, line {line}: a detection outside any particle. Put it in one.")
            row = [number(path, line, "detection", attributes, axis) for axis in "tzyx"]
            if not np.isfinite(row).all() or row[0] != int(row[0]) or row[0] < 0:
                raise InputError(
                    f"{path}, line {line}: detection at t, z, y, x = {row}; t must be a whole number from 0 "
                    "up and the coordinates finite. Fix it."
                )
            values.extend(row)
            particle.append(current)

    def end(name: str) -> None:
        nonlocal current
        if name in _PARTICLE:
            current = -1

    refuse_if_larger_than_memory(path, path.stat().st_size)  # numbers take less than their text
    read_xml(path, begin, end=end)
    rows = np.array(values, dtype=np.float64).reshape(-1, 4)
    return np.array(particle, dtype=np.int64), rows[:, 0], rows[:, 1:], unit_beside(path)


FORMAT = replace(
    format_of_labelled(_read), holds_tracks=holds_tracks, recognises=lambda path, _: root_of(path) in _ROOTS,
    write=write_tracks, read_record=record_beside,
)  # fmt: skip
