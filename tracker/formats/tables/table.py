"""Convert between tables with one row per detection and Detections or Tracks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...compute.threads import FEW, in_threads
from ...errors import InputError
from ...particles import tables
from ...particles.arrow import column_of, feature_of, floats_of, integers_of, is_number
from ...particles.calibration import Calibration
from ...particles.detections import Detections
from ...particles.tracks import LINK_MEASURES, Tracks
from ..contract import Columns, PositionFormat, Record, not_written, with_links
from ..files.units import unit_of
from .axes import mixed_styles, unit_in_names, unused_axes
from .columns import divided, feature_names, missing_roles, plain
from .edges import refuse_unwritable, rows_of
from .rows import Rows
from .times import are_times, frames_and_times, interval_in, remark_on_frames

_LOG = logging.getLogger("outbid")
_LARGEST_FRAME = 2**31 - 1
_WHOLE = r"^\s*[+-]?[0-9]+(\.0*)?\s*$"


def format_of_tables(
    read: Callable[[Path, Columns], Rows],
    write: Callable[[Path, pa.Table, str, Record, bool], None] = not_written,
) -> PositionFormat:
    """A format of tables, by what reads a table, and writes (path, table, unit, record, overwrite)."""

    def write_table(path: Path, given: Detections | Tracks, record: Record, overwrite: bool) -> None:
        write(path, table_of(given), with_links(given).detections.unit, record, overwrite)

    return PositionFormat(
        read_detections=lambda path, columns: detections_of(read(path, columns)),
        read_tracks=lambda path, columns: tracks_of(read(path, columns)),
        holds_tracks=lambda path, columns: holds_tracks(read(path, columns).roles),
        write=write_table, takes_columns=True,
    )  # fmt: skip


def detections_of(rows: Rows) -> Detections:
    """Detections of the rows, sorted by frame; track numbers are ignored.

    Raises
    ------
    InputError
        If frame, y or x is missing or a value is blank, not finite, negative (frame) or fractional (frame).
    """
    return _sorted_detections(rows)[0]


def tracks_of(rows: Rows) -> Tracks:
    """Tracks of the rows, from track numbers and parents or from numbered detections.

    Raises
    ------
    InputError
        As `detections_of`; or if there are no track numbers, or a track has two detections in one frame.
    """
    if not holds_tracks(rows.roles):
        raise InputError(
            f"{rows.path} holds no tracks: there is no column track_id (or trackid, particle, …). "
            "Name the column of track numbers track_id, or track the detections first."
        )
    detections, order = _sorted_detections(rows)
    try:
        if "node" in rows.roles:
            tracks = Tracks(detections, _links_between_nodes(rows, order))
        else:
            tracks = _tracks_by_number(rows, detections, order)
    except InputError as error:
        if str(rows.path) in str(error):
            raise
        repeated = "" if "node" in rows.roles else _on_repeats(rows, detections, order)
        raise InputError(f"{rows.path}: {repeated or error}") from None
    measures = [_of_links(rows, tracks, order, name) for name in LINK_MEASURES]
    return Tracks(detections, tracks.links, *measures)


def holds_tracks(roles: dict[str, str]) -> bool:
    """Whether a table with these roles contains tracks."""
    return "track_id" in roles or "node" in roles


def table_of(what: Detections | Tracks) -> pa.Table:
    """The table of detections or tracks to be written, after a check of the features."""
    refuse_unwritable(what.detections if isinstance(what, Tracks) else what)
    return tables.table_of_tracks(what) if isinstance(what, Tracks) else tables.table_of_detections(what)


def _sorted_detections(rows: Rows) -> tuple[Detections, NDArray[np.int64] | slice]:
    """The detections, and the order in which the rows of the file were sorted."""
    problem = missing_roles(rows.roles, rows.table.column_names) or mixed_styles(rows.axes, rows.given)
    if problem:
        raise InputError(f"{rows.path}: {problem}")
    frame, times = _frames(rows, rows.roles["frame"])
    bad = (frame < 0) | (frame > _LARGEST_FRAME)
    if bad.any():
        raise rows.wrong(
            int(np.argmax(bad)), rows.roles["frame"],
            "frames count from 0 up, below 2^31. Fix the row, or shift the frames.",
        )  # fmt: skip
    position = _positions(rows)
    unit, factors = _unit(rows)
    if factors:
        position *= [factors.get(axis, 1.0) for axis in "zyx"]
    order: NDArray[np.int64] | slice = slice(None)
    if (frame[1:] < frame[:-1]).any():
        order = np.argsort(frame, kind="stable")
    if rows.first:
        _name_unused_axes(rows)
    features = {} if times is None or "time" in rows.table.column_names else {"time": times[order]}
    if rows.first:
        remark_on_frames(rows, frame[order])
    left_out = []
    for name in feature_names(rows.table.column_names, rows.roles):
        values = feature_of(rows.table[name]) if plain(name) != "unit" else None
        if values is not None:
            features[name] = values[order]
        elif plain(name) != "unit" and rows.table[name].null_count < len(rows.table):
            left_out.append(name)
    if left_out and rows.first:
        _LOG.warning("%s: %s: neither numbers nor text, and left out", rows.path, ", ".join(left_out))
    ordered = frame[order].astype(np.int32)
    calibration = Calibration(unit, interval=interval_in(rows, ordered, features))
    return Detections(ordered, position[order], calibration, features), order


def _name_unused_axes(rows: Rows) -> None:
    """Log which numeric columns look like coordinates but are not used."""
    unused = [
        name
        for name in unused_axes(rows.table.column_names, rows.axes, rows.given)
        if name not in rows.roles.values()
        if is_number(rows.table[name].type) and rows.table[name].null_count < len(rows.table)
    ]
    if unused:
        used = ",".join(f"{axis}={rows.roles.get(axis, '')}" for axis in "zyx")
        _LOG.warning(
            "%s: %s may hold coordinates and %s not used. To use others, or to confirm: --columns %s "
            "(Python: columns=)",
            rows.path, ", ".join(map(repr, unused[:6])), "is" if len(unused) == 1 else "are", used,
        )  # fmt: skip


def _unit(rows: Rows) -> tuple[str, dict[str, float]]:
    """The unit of positions, and the factors of axes in another one."""
    try:
        named, factors = unit_in_names(rows.axes)
    except InputError as error:
        raise InputError(f"{rows.path}: {error}") from None
    if factors and rows.first:
        _LOG.warning("%s: %s converted to %s", rows.path, " and ".join(factors), named)
    unit = rows.unit or named
    for name in rows.table.column_names:
        column = rows.table[name]
        if plain(name) == "unit" and pa.types.is_string(column.type):
            values = column.unique().drop_null().to_pylist()
            if len(values) > 1:
                raise InputError(f"{rows.path}: column {name!r} mixes {values[:3]}. Convert to one unit.")
            unit = values[0] if values else unit
    if named is not None and unit_of(unit) != named:
        raise InputError(
            f"{rows.path}: by their names the columns of positions are in {named}, by the file in {unit}. "
            "Rename them."
        )
    return unit_of(unit), factors


def _frames(rows: Rows, name: str) -> tuple[NDArray[np.int64] | NDArray[np.int32], NDArray | None]:
    """Read the column of frames, in which empty cells become -1; and its times, if it holds times."""
    column = rows.table[name]
    if pa.types.is_int32(column.type) and not column.null_count and not rows.given:  # as Outbid writes it
        return np.asarray(np.from_dlpack(column.combine_chunks()), np.int32), None
    step = divided(rows.given.get("frame", ""), rows.table.column_names)[1]
    if is_number(column.type) and (step != 1 or are_times(rows, name)):
        return frames_and_times(rows, name, step)
    return _whole_numbers(rows, name, blank=-1), None


def _positions(rows: Rows) -> NDArray[np.float64]:
    """(N, 3) float64: z, y, x, with 0 for an axis that is not there."""
    count, axes = len(rows.table), rows.axes
    columns = [rows.table[name] for name in axes.values()]
    if any(column.type not in (pa.float32(), pa.float64()) or column.null_count for column in columns):
        position = np.zeros((count, 3))
        for axis, name in axes.items():
            position[:, "zyx".index(axis)] = _coordinate(rows, name)
        return position
    # Block by block in several threads: numbers are read once, and all threads touch the new memory.
    given = dict(zip(axes, (np.from_dlpack(column.combine_chunks()) for column in columns), strict=True))
    position = np.empty((count, 3))

    def fill(begin: int) -> bool:
        block = position[begin : begin + tables.BLOCK]
        for k, axis in enumerate("zyx"):
            block[:, k] = given[axis][begin : begin + tables.BLOCK] if axis in given else 0
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(block.sum()))

    threads = FEW if count > tables.BLOCK * FEW else 1
    if not all(list(in_threads(fill, range(0, count, tables.BLOCK), threads))):
        for name in axes.values():
            _coordinate(rows, name)  # says which is not finite
    return position


def _coordinate(rows: Rows, name: str) -> NDArray[np.float64]:
    """Read a column of finite numbers."""
    column = rows.table[name]
    if not is_number(column.type):
        raise _no_numbers(rows, name, r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$")
    values = floats_of(column)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise rows.wrong(row, name, "positions must be finite numbers. Remove the row or fix it.")
    return values


def _whole_numbers(rows: Rows, name: str, *, blank: int) -> NDArray[np.int64]:
    """Read a column of whole numbers; empty cells become `blank`."""
    column = rows.table[name]
    if not is_number(column.type):
        raise _no_numbers(rows, name, _WHOLE)
    if pa.types.is_unsigned_integer(column.type):
        column = column.cast(pa.uint64())
        too_large = pc.greater(column, pa.scalar(2**63 - 1, pa.uint64())).fill_null(False).to_numpy()
    elif pa.types.is_signed_integer(column.type) or pa.types.is_null(column.type):
        too_large = np.zeros(0, dtype=bool)
    else:
        values = floats_of(column)
        # Above 2^53, a float may have lost digits of the intended number.
        given = ~np.isnan(values)
        too_large = given & ~((values == np.rint(values)) & (np.abs(values) < 2**53))
        column = pa.chunked_array([column_of(np.where(given & ~too_large, values, 0), ~given)])
    if too_large.any():
        row = int(np.argmax(too_large))
        raise rows.wrong(
            row, name,
            f"whole numbers are needed. Fix the row; divide times by the interval: --columns frame={name}/T.",
        )  # fmt: skip
    return integers_of(column, blank)


def _no_numbers(rows: Rows, name: str, pattern: str) -> InputError:
    """The error about a non-numeric column; it names the first value that is not a number."""
    column = rows.table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        number = pc.match_substring_regex(column, pattern).fill_null(True).to_numpy()
        if not number.all():
            return rows.wrong(int(np.argmin(number)), name, "a number is needed. Fix the row.")
    return InputError(f"{rows.path}: column {name!r} holds {column.type}; numbers are needed. Convert it.")


def _links_between_nodes(rows: Rows, order: NDArray[np.int64] | slice) -> NDArray[np.int64]:
    """Links of a table in which each detection has a number and names its predecessor."""
    node = _whole_numbers(rows, rows.roles["node"], blank=-1)[order]
    previous = _whole_numbers(rows, rows.roles["node_parent"], blank=-1)[order]
    child = np.nonzero(previous >= 0)[0]
    parent = rows_of(node, previous[child])
    lost = previous[child][(parent < 0) & (previous[child] != 0)]  # 0 without such a row means none
    if len(lost):
        raise InputError(
            f"No detection has the number {lost[0]} that another names as its parent. Add its row."
        )
    links = np.column_stack([parent, child])[parent >= 0]
    return links[np.lexsort((links[:, 1], links[:, 0]))].astype(np.int64)


def _tracks_by_number(rows: Rows, detections: Detections, order: NDArray[np.int64] | slice) -> Tracks:
    label = _whole_numbers(rows, rows.roles["track_id"], blank=-1)[order]
    names = [name for role, name in rows.roles.items() if role == "parent" or role.startswith("parent_")]
    if not names:
        return Tracks.from_track_ids(detections, label)
    given = [_whole_numbers(rows, name, blank=-1)[order] for name in names]
    none = _zero_means_none(detections.frame, label, given[0])
    found = [
        Tracks.from_track_ids(detections, label, np.where((p == label) | ((p == 0) & none), -1, p)).links
        for p in given
    ]
    return Tracks(detections, found[0] if len(found) == 1 else np.unique(np.concatenate(found), axis=0))


def _on_repeats(rows: Rows, detections: Detections, order: NDArray[np.int64] | slice) -> str:
    """A sentence on rows that repeat an earlier one in frame, track and position; empty if none does."""
    label = _whole_numbers(rows, rows.roles["track_id"], blank=-1)[order]
    key = np.column_stack([detections.frame, label, detections.position])
    again = np.ones(len(key), np.bool_)
    again[np.unique(key, axis=0, return_index=True)[1]] = False
    again &= label >= 0
    at = int(np.argmax(again))
    if not again.any():
        return ""
    return (
        f"{again.sum()} rows repeat another one in frame, track and position, the first in frame "
        f"{detections.frame[at]}, track {label[at]}. Remove them (pandas: drop_duplicates())."
    )


def _zero_means_none(frame: NDArray, label: NDArray, parent: NDArray) -> bool:
    """Whether a parent of 0 means no parent.

    It does if no track has number 0. If one has, it still does if this track names itself as its parent, and
    no other track does so, and some track with parent 0 begins before track 0 ends: then track 0 cannot be
    its parent.
    """
    zero = label == 0
    if not zero.any():
        return True
    names_itself = (parent == label) & (label >= 0)
    if not names_itself[zero].all() or names_itself[~zero].any():
        return False
    child = (parent == 0) & ~zero & (label > 0)
    return bool(child.any() and frame[child].min() <= frame[zero].max())


def _of_links(
    rows: Rows, tracks: Tracks, order: NDArray[np.int64] | slice, name: str
) -> NDArray[np.float64] | None:
    """Values of a link measure from a column and its numbered successors, by the target of each link."""
    if name not in rows.table.column_names:
        return None
    rank = tables.rank_among_incoming(tracks)
    values = np.full(len(tracks.links), np.nan)
    for k in range(int(rank.max(initial=0)) + 1):
        column = f"{name}_{k + 1}" if k else name
        if column in rows.table.column_names:
            if not is_number(rows.table[column].type):
                raise _no_numbers(rows, column, _WHOLE)
            chosen = rank == k if rank.any() else slice(None)
            values[chosen] = floats_of(rows.table[column])[order][tracks.links[chosen, 1]]
    return values
