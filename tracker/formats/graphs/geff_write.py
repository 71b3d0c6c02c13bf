"""Write GEFF version 1 in zarr v2, with all chunks and no fill value; the run record is in ``extra``.

`write_parts` converts a Parquet table of tracks in groups of rows, with memory independent of the table:
between groups, only the row of the last detection of each track is kept. The graph equals that of
`write_tracks`, except that links are sorted by target, not by source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from ...compute.interrupt import undisturbed
from ...errors import InputError
from ...particles.arrow import floats_of, integers_of
from ...particles.calibration import recorded_interval
from ...particles.detections import Detections
from ...particles.tracks import LINK_MEASURES, Tracks
from ..contract import Record, with_links
from ..files.outputs import write_whole_folder
from ..files.packages import package
from ..files.records import record_bytes
from ..tables import edges as numbered
from ..tables.parquet import RECORD, files_of, rows_between
from .geff_checks import declare_no_fill, foreign

_ID = "track_id"
_CHUNK = 1 << 18
"""Rows of a chunk: two megabytes of uncompressed numbers."""
Edges = tuple[NDArray[np.int64], Mapping[str, NDArray]]
"""Pairs of rows (E, 2), and properties of them (E,)."""


def write_tracks(path: Path, given: Detections | Tracks, record: Record, overwrite: bool) -> None:
    """See `outbid.formats.write_tracks`."""
    tracks = with_links(given)
    write_graph(path, tracks.detections, (tracks.links, tracks.measures), record, overwrite)


def write_graph(path: Path, seen: Detections, edges: Edges, record: Record, overwrite: bool) -> None:
    """Write detections as nodes, and pairs of their rows as edges."""
    package("geff", "GEFF", "geff")
    arrays_of(seen)  # refuses what cannot be written

    def write(folder: Path) -> None:
        import zarr

        with zarr.config.set({"array.write_empty_chunks": True}):
            new_graph(folder, seen, record, edges)
        declare_no_fill(folder)

    write_whole_folder(path, write, overwrite=overwrite, foreign=foreign)


def new_graph(folder: Path, seen: Detections, record: Record, edges: Edges) -> None:
    """Make a graph whose nodes are detections; raises InputError as `arrays_of` does."""
    from geff.core_io import write_arrays

    pairs, measures = edges
    axes: list[dict[str, object]] = [{"name": "t", "type": "time", "unit": "frame"}]
    interval = seen.calibration.interval or recorded_interval(record)
    if interval is not None:
        axes[0] |= {"scale": interval, "scaled_unit": "second"}
    axes += [{"name": name, "type": "space", "unit": seen.unit} for name in "zyx"]
    metadata = package("geff", "GEFF", "geff").GeffMetadata.model_validate(
        {
            "geff_version": "1.1.0", "directed": True, "axes": axes, "node_props_metadata": {},
            "edge_props_metadata": {},
            "extra": {} if record is None else {"outbid": json.loads(record_bytes(record))},
        }
    )  # fmt: skip
    with undisturbed():  # otherwise zarr's threads might write into a folder that is being removed
        write_arrays(
            folder,
            np.arange(len(seen), dtype=np.uint64),
            {name: {"values": of, "missing": None} for name, of in arrays_of(seen).items()},
            pairs.astype(np.uint64),
            {name: {"values": of, "missing": None} for name, of in measures.items()},
            metadata,
            zarr_format=2,
        )


def arrays_of(seen: Detections) -> dict[str, NDArray]:
    """Properties of the nodes: t, z, y, x and the features.

    Raises InputError if a frame is negative, or the name of a feature cannot be the name of an array.
    """
    numbered.refuse_unwritable(seen)
    odd = [name for name in seen.features if "/" in name or name in (*"tzyx", ".", "..")]
    if odd:
        raise InputError(f"A feature called {odd[0]!r} cannot be an array's name. Rename it.")
    values = {"t": seen.frame.astype(np.int64), **dict(zip("zyx", seen.position.T, strict=True))}
    features = {name: of if of.dtype.kind != "O" else of.astype(str) for name, of in seen.features.items()}
    return {name: np.ascontiguousarray(of) for name, of in {**values, **features}.items()}


class Piece(NamedTuple):
    """A group of rows: detections, links to them (as row numbers of the whole table), and link measures."""

    seen: Detections
    links: NDArray[np.int64]
    measures: dict[str, NDArray[np.float64]]


def can_be_written_in_parts(source: Path) -> bool:
    """Whether Outbid wrote this table, with tracks numbered from 0 and neither divisions nor merges."""
    if source.suffix not in (".parquet", ".pq"):
        return False
    most = rows = 0
    for part in files_of(source):
        try:
            about = pa.parquet.read_metadata(part)
        except (pa.ArrowException, OSError, ValueError):
            return False  # the reader reports the error
        names = about.schema.names
        if RECORD not in (about.metadata or {}) or _ID not in names or "parent" in names:
            return False
        if any(about.schema.column(at).physical_type == "BYTE_ARRAY" for at in range(len(names))):
            return False  # the width of text is known only when all is read
        column = names.index(_ID)
        for group in range(about.num_row_groups):
            known = about.row_group(group).column(column).statistics
            if known is None or not known.has_min_max or known.min < 0:
                return False
            most = max(most, known.max + 1)
        rows += about.num_rows
    return 0 < most <= rows


def write_parts(source: Path, output: Path, record: Record, *, overwrite: bool) -> int:
    """Write a table as a graph if `can_be_written_in_parts`; returns the number of tracks.

    Raises InputError if a track has two detections in one frame, or the rows are not sorted by frame.
    """
    package("geff", "GEFF", "geff")
    last = _LastRows()

    def write(folder: Path) -> None:
        import zarr

        pieces = _pieces(source, last)
        first = next(pieces)
        limits = _Limits()
        with zarr.config.set({"array.write_empty_chunks": True}):
            new_graph(folder, first.seen, record, (first.links, first.measures))
            group = zarr.open_group(folder, mode="r+", zarr_format=2)
            _in_equal_chunks(group)
            limits.add(first.seen)
            done = len(first.seen)
            for piece in pieces:
                with undisturbed():  # as in `new_graph`
                    _append(group, piece, done)
                limits.add(piece.seen)
                done += len(piece.seen)
            limits.put(group)
        declare_no_fill(folder)

    write_whole_folder(output, write, overwrite=overwrite, foreign=foreign)
    return int((last.row >= 0).sum())


class _LastRows:
    """The row and frame of the last detection of each track so far."""

    def __init__(self) -> None:
        self.row, self.frame = np.empty(0, np.int64), np.empty(0, np.int32)

    def before(self, track_id: NDArray[np.int64], frame: NDArray[np.int32], begin: int) -> NDArray[np.int64]:
        """Previous row in the same track for each new row, or -1; the new rows are numbered from `begin`."""
        more = max(int(track_id.max(initial=-1)) + 1 - len(self.row), 0)
        self.row = np.concatenate([self.row, np.full(more, -1)])
        self.frame = np.concatenate([self.frame, np.zeros(more, np.int32)])
        order = np.argsort(track_id, kind="stable")
        of = track_id[order]
        same = np.concatenate([[False], of[1:] == of[:-1]])[: len(of)]
        before, when = self.row[of], self.frame[of]
        before[1:][same[1:]] = begin + order[:-1][same[1:]]
        when[1:][same[1:]] = frame[order[:-1][same[1:]]]
        wrong = np.flatnonzero((before >= 0) & (when >= frame[order]))
        if len(wrong):
            row = begin + int(order[wrong[0]]) + 1
            raise InputError(f"row {row}: track {of[wrong[0]]} goes on in frame {when[wrong[0]]}.")
        self.row[of], self.frame[of] = begin + order, frame[order]  # of several, the last one counts
        found = np.empty(len(of), dtype=np.int64)
        found[order] = before
        return found


class _Limits:
    """The range of each axis, for the metadata of the graph."""

    def __init__(self) -> None:
        self.low, self.high = np.full(4, np.inf), np.full(4, -np.inf)

    def add(self, seen: Detections) -> None:
        """Extend the ranges by more detections."""
        at = np.column_stack([seen.frame, seen.position])
        self.low = np.minimum(self.low, at.min(0, initial=np.inf))
        self.high = np.maximum(self.high, at.max(0, initial=-np.inf))

    def put(self, group: Any) -> None:
        """Write the ranges into the metadata."""
        stated = dict(group.attrs["geff"])
        for axis, low, high in zip(stated["axes"], self.low.tolist(), self.high.tolist(), strict=True):
            whole = int if axis["name"] == "t" else float
            axis |= {"min": whole(low), "max": whole(high)}
        group.attrs["geff"] = stated


def _pieces(source: Path, last: _LastRows) -> Iterator[Piece]:
    """Yield the row groups of all parts."""
    begin = 0
    for part in files_of(source):
        with pa.parquet.ParquetFile(part, page_checksum_verification=True) as file:
            names = [name for name in LINK_MEASURES if name in file.schema_arrow.names]
            for number in range(file.num_row_groups):
                own = file.read_row_group(number, [_ID, *names])
                seen = rows_between(source, begin, begin + len(own))
                try:
                    before = last.before(integers_of(own[_ID], -1), seen.frame, begin)
                except InputError as error:
                    raise InputError(f"{source}: {error} A track is in one place in a frame.") from None
                reached = np.flatnonzero(before >= 0)
                links = np.column_stack([before[reached], begin + reached])
                yield Piece(seen, links, {name: floats_of(own[name])[reached] for name in names})
                begin += len(own)


def _in_equal_chunks(group: Any) -> None:
    """Set the chunk length of all arrays, which was chosen for the first group of rows or links."""
    arrays = [(name, of) for name, of in group.members(max_depth=None) if hasattr(of, "chunks")]
    for name, array in arrays:
        values = array[:]
        made = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=(_CHUNK, *values.shape[1:]), overwrite=True
        )
        if len(values):
            made[:] = values


def _append(group: Any, piece: Piece, begin: int) -> None:
    """Append rows to all arrays of a graph."""
    ids = np.arange(begin, begin + len(piece.seen), dtype=np.uint64)
    more: dict[str, NDArray] = {"nodes/ids": ids, "edges/ids": piece.links.astype(np.uint64)}
    more |= {f"nodes/props/{name}/values": of for name, of in arrays_of(piece.seen).items()}
    more |= {f"edges/props/{name}/values": of for name, of in piece.measures.items()}
    for name, values in more.items():
        if len(values):
            group[name].append(values)
