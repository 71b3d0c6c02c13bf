"""TrackMate's XML, versions 3 to 8, with gaps, divisions and merges.

The reader returns what TrackMate shows: visible spots, and links of tracks that pass its filters. The writer
makes a file that TrackMate opens, without an image; the run record is in its log. Tinevez et al., Methods
115, 80, 2017.
"""

from __future__ import annotations

import json
import logging
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...particles.calibration import Calibration, interval_of
from ...particles.detections import TIME, Detections
from ...particles.tracks import LINK_MEASURES, Tracks
from ..contract import PositionFormat
from ..files.decimals import decimal_or_nan
from ..files.memory import refuse_if_larger_than_memory
from ..files.records import record_from
from ..files.units import TIMES, unit_of
from ..files.xml_stream import Enough, first_of, number, read_xml
from ..tables.edges import detections_of, tracks_of
from .trackmate_write import CONTOUR, RECORD_MARK, key_of, write_tracks

_POSITION = ("POSITION_Z", "POSITION_Y", "POSITION_X")
_NO_FEATURE = {"ID", "name", "FRAME", "POSITION_T", "VISIBILITY", *_POSITION}
_MOST = 2**53
"""Upper bound of spot and track numbers, which are then exact as floats."""
_OF_LINKS = {
    "SPOT_SOURCE_ID", "SPOT_TARGET_ID", "TRACK_INDEX", "TRACK_ID", "NUMBER_SPOTS",
    *map(str.upper, LINK_MEASURES),
}  # fmt: skip
"""Features of links and tracks that are in the links themselves."""
_LOG = logging.getLogger("outbid")
_MEASURES = {name.upper(): name for name in LINK_MEASURES}


def read_detections(path: Path, *_: object) -> Detections:
    """See `outbid.formats.read_detections`."""
    model = _Model(path)
    frame, position, features = model.spots()[1:]
    return detections_of(path, frame, position, model.calibration(frame, features), features)


def read_tracks(path: Path, *_: object) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    model = _Model(path)
    node, frame, position, features = model.spots()
    edges, measures = model.edges()
    known = model.calibration(frame, features)
    return tracks_of(path, node, frame, position, edges, known, features, measures)


def read_record(path: Path) -> dict[str, Any] | None:
    """See `outbid.formats.read_record`."""
    pieces: list[str] = []

    def begin(name: str, *_: object) -> None:
        if name == "Model":  # the log precedes it
            raise Enough

    read_xml(path, begin, lambda name, piece: pieces.append(piece) if name == "Log" else None)
    _, mark, after = "".join(pieces).partition(RECORD_MARK)
    if not mark:
        return None
    try:
        record, _ = json.JSONDecoder().raw_decode(after.strip())
    except (ValueError, RecursionError):
        return record_from(after.encode(), path)  # reports the error
    return record if isinstance(record, dict) else None


class _Model:
    """The content of the file, as columns that grow while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.unit: str | None = None
        self._names: dict[str, tuple[str, bool]] = {}  # name, and whether an integer
        self._declares_spot_features = False
        self._frame_around = -1.0
        self._ids, self._frames, self._visible = array("q"), array("d"), array("b")
        self._positions = array("d")
        self._features: dict[str, array[float]] = {}
        self._joins, self._track = array("q"), array("q")
        self._measures = {name: array("d") for name in _MEASURES}
        self._current, self._tracks, self._shown = -_MOST, set[int](), set[int]()
        self._filters, self._in_track = False, False
        self._root = ""
        self._clock, self._times = "frame", array("d")
        self._titles, self._contours = list[str](), dict[int, list[str]]()
        self._not_kept = list[str]()
        refuse_if_larger_than_memory(path, path.stat().st_size)  # numbers take less than their text
        read_xml(path, self._begin, self._characters, self._end)
        if self._not_kept:
            some = ", ".join(self._not_kept[:6]) + (", …" if len(self._not_kept) > 6 else "")
            _LOG.warning("%s: what TrackMate measured of links and tracks is left out: %s", path, some)

    def spots(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], dict[str, NDArray]]:
        """Number, frame, position and features of each visible spot."""
        ids, count = np.array(self._ids), len(self._ids)
        shown = (np.array(self._visible, dtype=np.int8) != 0) | np.isin(ids, self.edges()[0])
        features = {}
        for key, column in self._features.items():
            column.extend([np.nan] * (count - len(column)))
            values = np.array(column)[shown]
            name, whole = self._names[key]
            exact = np.isfinite(values) & (np.abs(values) < 2**53)
            features[name] = values.astype(np.int64) if whole and exact.all() else values
        features |= self._of_spots(shown)
        position = np.array(self._positions).reshape(-1, 3)
        return ids.astype(np.int64)[shown], np.array(self._frames)[shown], position[shown], features

    def calibration(self, frame: NDArray[np.float64], features: Mapping[str, NDArray]) -> Calibration:
        """Unit of the positions, and the seconds between frames if times have a unit."""
        seconds, order = TIMES.get(self._clock.strip().lower()), np.argsort(frame, kind="stable")
        times = {name: features[name][order] for name in (TIME,) if name in features and seconds}
        return Calibration(unit_of(self.unit), interval=interval_of(frame[order], times))

    def _of_spots(self, shown: NDArray[np.bool_]) -> dict[str, NDArray]:
        """Times in seconds, names and contours of the visible spots, if they have information."""
        time, found = np.array(self._times), dict[str, NDArray]()
        seconds = TIMES.get(self._clock.strip().lower())
        if np.isfinite(time).all() and (seconds or not np.array_equal(time, np.array(self._frames))):
            found["time"] = time[shown] * (seconds or 1.0)
        usual = (f"ID{spot}" for spot in self._ids)
        if any(title not in ("", name) for title, name in zip(self._titles, usual, strict=True)):
            found["name"] = np.array(self._titles, object)[shown]
        if self._contours:
            texts = [" ".join("".join(self._contours.get(row, [])).split()) for row in range(len(self._ids))]
            found[CONTOUR] = np.array(texts, object)[shown]
        return found

    def edges(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
        """Spot numbers at both ends of each visible link, and its measures."""
        lost = sorted(self._shown - self._tracks)
        if lost:
            raise InputError(
                f"{self._path}: FilteredTracks names track {lost[0]}, which is not there. Export it again."
            )
        of = np.array(self._track, dtype=np.int64)
        shown = np.isin(of, [-_MOST, *self._shown]) if self._filters else np.ones(len(of), dtype=bool)
        measures = {
            ours: np.array(self._measures[theirs])[shown]
            for theirs, ours in _MEASURES.items()
            if np.isfinite(self._measures[theirs]).any()
        }
        return np.array(self._joins, dtype=np.int64).reshape(-1, 2)[shown], measures

    def _begin(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        if not self._root:
            self._root = name
            if name != "TrackMate":
                raise InputError(
                    f"{self._path} is XML of another kind (<{name[:40]}>). "
                    "Outbid reads TrackMate's, ISBI's and Icy's."
                )
        if name == "Spot":
            self._spot(attributes, line)
        elif name == "Edge":
            self._edge(attributes, line)
        elif name == "SpotsInFrame":
            self._frame_around = number(self._path, line, "SpotsInFrame", attributes, "frame")
        elif name == "Track":
            if self._in_track:
                raise InputError(f"{self._path}, line {line}: a Track is inside another. Export it again.")
            self._in_track = True
            numbered = "TRACK_ID" in attributes
            self._current = self._whole("Track", attributes, "TRACK_ID", line) if numbered else -_MOST
            self._tracks.add(self._current)
        elif name == "TrackID":
            self._shown.add(self._whole("TrackID", attributes, "TRACK_ID", line))
        elif name == "FilteredTracks":
            self._filters = True
        elif name == "Feature" and self._declares_spot_features:
            key, title = attributes.get("feature", ""), attributes.get("name", "")
            if key not in _NO_FEATURE:
                ours = title if key_of(title) == key else key
                self._names[key] = (ours, attributes.get("isint") == "true")
        elif name == "Feature" and attributes.get("feature", "") not in _OF_LINKS:
            self._not_kept.append(attributes.get("feature", ""))
        elif name in ("SpotFeatures", "EdgeFeatures"):
            self._declares_spot_features = name == "SpotFeatures"
        elif name == "Model":
            self.unit, self._clock = attributes.get("spatialunits"), attributes.get("timeunits", "frame")

    def _characters(self, name: str, piece: str) -> None:
        if name == "Spot":
            self._contours.setdefault(len(self._ids) - 1, []).append(piece)

    def _end(self, name: str) -> None:
        if name == "Track":
            self._in_track, self._current = False, -_MOST

    def _spot(self, attributes: Mapping[str, str], line: int) -> None:
        what = f"spot {attributes.get('ID', '')[:20]}".strip()
        position = [number(self._path, line, what, attributes, axis) for axis in _POSITION]
        frame = self._frame_around
        if "FRAME" in attributes:
            frame = number(self._path, line, what, attributes, "FRAME")
        if not np.isfinite([frame, *position]).all():
            raise InputError(
                f"{self._path}, line {line}: {what} is in frame {frame:g} at z, y, x = {position}; numbers "
                "must be finite. Fix or remove it."
            )
        row = len(self._ids)
        self._ids.append(self._whole(what, attributes, "ID", line))
        self._frames.append(frame)
        self._times.append(decimal_or_nan(attributes.get("POSITION_T", "NaN")))
        self._titles.append(attributes.get("name", ""))
        self._positions.extend(position)
        self._visible.append(attributes.get("VISIBILITY", "1") not in ("0", "0.0"))
        for key, value in attributes.items():
            if key in self._names:
                column = self._features.setdefault(key, array("d"))
                if len(column) < row:
                    column.extend([np.nan] * (row - len(column)))
                column.append(decimal_or_nan(value))

    def _edge(self, attributes: Mapping[str, str], line: int) -> None:
        self._joins.append(self._whole("Edge", attributes, "SPOT_SOURCE_ID", line))
        self._joins.append(self._whole("Edge", attributes, "SPOT_TARGET_ID", line))
        self._track.append(self._current)
        for name, column in self._measures.items():
            column.append(decimal_or_nan(attributes.get(name, "NaN")))

    def _whole(self, what: str, attributes: Mapping[str, str], name: str, line: int) -> int:
        value = number(self._path, line, what, attributes, name)
        if value != np.rint(value) or abs(value) >= _MOST:
            given = attributes[name][:30]
            raise InputError(
                f"{self._path}, line {line}: {name} of {what} is {given!r}; a whole number below 2^53 is "
                "needed. Export the file again."
            )
        return int(value)


FORMAT = PositionFormat(
    read_detections=read_detections, read_tracks=read_tracks, read_record=read_record,
    holds_tracks=lambda path, _: first_of(path, lambda name: name == "Edge") != "", write=write_tracks,
)  # fmt: skip
