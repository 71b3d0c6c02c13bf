"""Parquet: the same table as CSV, smaller and faster; the run record and the unit are inside the file."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from ...compute.threads import Ahead
from ...compute.timing import lap
from ...errors import InputError, one_line
from ...particles.calibration import Calibration, recorded_interval
from ...particles.detections import Detections
from ..contract import Record
from ..files.memory import refuse_if_larger_than_memory
from ..files.outputs import write_whole
from ..files.packages import refused_if_damaged
from ..files.records import record_bytes, record_from
from . import table
from .columns import AS_NAMED, feature_names, missing_roles, roles_of
from .parquet_write import GROUP, Packer
from .rows import Rows, cells_of, is_list

_LOG = logging.getLogger("outbid")
RECORD = b"outbid"
PARTS = "part-*.parquet"
"""Pattern of the files of a table in parts, which is a folder with a name such as tracks.parquet."""


def files_of(path: Path) -> list[Path]:
    """The file itself, or the parts in a folder, sorted."""
    return sorted(path.glob(PARTS)) if path.is_dir() else [path]


def read_table(path: Path, columns: Mapping[str, str]) -> Rows:
    """Read all rows."""
    count, pieces = row_count(path), []
    for part in files_of(path):
        with _opened(part) as file:
            schema = file.schema_arrow
            wanted = _wanted(schema, path, columns)
            # A few bytes can encode millions of equal values, so the size follows from the number of rows.
            refuse_if_larger_than_memory(path, count * (len(wanted) + _listed(file, wanted)) * 16)
            pieces.append(_valid(file.read(wanted)))
            _refuse_other_count(part, len(pieces[-1]), file.metadata.num_rows)
    try:
        rows = pa.concat_tables(pieces)
    except pa.ArrowException:
        raise InputError(
            f"{path}: its parts do not have the same columns. Remove what belongs to another run."
        ) from None
    return _rows(path, rows, schema, columns)


def _valid(rows: pa.Table) -> pa.Table:
    """Rows as they are; Arrow raises an error if a number of a text is beyond the texts of its column."""
    rows.validate(full=True)
    return rows


def _listed(file: pa.parquet.ParquetFile, wanted: list[str]) -> int:
    """Values of the first row that are in lists. (Damaged footers of single columns end the process.)"""
    lists = [name for name in wanted if is_list(file.schema_arrow.field(name).type)]
    first = next(file.iter_batches(1, columns=lists), None) if lists else None
    return sum(len(column.flatten()) for column in first.columns) if first else 0


def holds_tracks(path: Path, columns: Mapping[str, str]) -> bool:
    """See `outbid.formats.holds_tracks`."""
    with _opened(files_of(path)[0]) as file:
        return table.holds_tracks(_roles(file.schema_arrow.names, path, columns))


def read_record(path: Path) -> dict[str, Any] | None:
    """See `outbid.formats.read_record`."""
    with _opened(files_of(path)[0]) as file:
        known = file.metadata.metadata or {}
    return record_from(known[RECORD], path) if RECORD in known else None


def calibration_in(path: Path) -> Calibration:
    """Unit and interval of a table that Outbid wrote."""
    with _opened(files_of(path)[0]) as file:
        schema = file.schema_arrow
    return Calibration(_unit_in(schema, "x") or "pixel", interval=recorded_interval(read_record(path)))


def row_count(path: Path) -> int:
    """Number of rows that a file, or all parts of a table, declare."""
    count = 0
    for part in files_of(path):
        with _opened(part) as file:
            count += int(file.metadata.num_rows)
    return count


def rows_between(path: Path, begin: int, end: int, columns: Mapping[str, str] = AS_NAMED) -> Detections:
    """Read a range of rows from a file or its parts; only the row groups that contain them are read.

    Raises InputError as `read_detections` does, or if the table has fewer rows.
    """
    pieces: list[pa.Table] = []
    before = 0
    for part in files_of(path):
        with _opened(part) as file:
            schema, wanted = file.schema_arrow, _wanted(file.schema_arrow, path, columns)
            pieces = pieces or [schema.empty_table().select(wanted)]
            for group in range(file.num_row_groups):
                count = file.metadata.row_group(group).num_rows
                low, high = max(begin - before, 0), min(end - before, count)
                if low < high:
                    pieces.append(_valid(file.read_row_group(group, wanted)[low:high]))
                before += count
    rows = pa.concat_tables(pieces)
    if len(rows) != end - begin:
        raise InputError(f"{path} has {before} rows, and rows {begin} to {end} are needed. Was it replaced?")
    return table.detections_of(_rows(path, rows, schema, columns, begin))


def frames_in(
    path: Path, columns: Mapping[str, str] = AS_NAMED
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The frames that have rows in a file or its parts, and the number of rows of each.

    Raises InputError if there is no frame column, or if frames decrease from one row to the next.
    """
    frames, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for part in files_of(path):
        with _opened(part) as file:
            name = _roles(file.schema_arrow.names, path, columns).get("frame")
            if name is None:
                raise InputError(f"{path} has no column of frames. Name it: --columns frame=NAME.")
            for batch in file.iter_batches(GROUP, columns=[name]):
                each = batch[0].to_numpy(zero_copy_only=False)
                begin = np.flatnonzero(np.concatenate([[True] * min(len(each), 1), each[1:] != each[:-1]]))
                frame, count = each[begin], np.diff(np.append(begin, len(each)))
                decreasing = (frame[1:] < frame[:-1]).any()
                if decreasing or (len(frames[-1]) and len(frame) and frame[0] < frames[-1][-1]):
                    raise InputError(f"{path}: frames must not decrease from row to row. Sort the rows.")
                frames.append(frame.astype(np.int64))
                counts.append(count.astype(np.int64))
    every, where = np.unique(np.concatenate(frames), return_inverse=True)
    return every, np.bincount(where, np.concatenate(counts), len(every)).astype(np.int64)


def detections_in_parts(path: Path, rows: int, columns: Mapping[str, str] = AS_NAMED) -> Iterator[Detections]:
    """Yield the detections of a file in chunks of about this many, always with whole frames.

    Raises InputError as `read_detections` does, or if the frames decrease from one row to the next.
    """
    kept, seen, declared = pa.table({}), 0, 0
    for each in files_of(path):
        with _opened(each) as file:
            schema = file.schema_arrow
            wanted = _wanted(schema, path, columns)
            declared += file.metadata.num_rows
            with closing(Ahead(file.iter_batches(rows, columns=wanted), "decode")) as batches:
                for batch in batches:
                    lap("waiting")
                    piece = _valid(pa.Table.from_batches([batch]))
                    kept = pa.concat_tables([kept, piece]) if len(kept) else piece
                    part, kept, seen = _whole_frames(path, schema, columns, kept, seen)
                    if part is not None:
                        yield part
        _refuse_other_count(path, seen + len(kept), declared)
    if len(kept):
        yield table.detections_of(_rows(path, kept, schema, columns, seen))


def _whole_frames(
    path: Path, schema: pa.Schema, columns: Mapping[str, str], rows: pa.Table, before: int
) -> tuple[Detections | None, pa.Table, int]:
    """Detections of all frames but the last, the rows of the last, and the number of rows before it."""
    found = _rows(path, rows, schema, columns, before)
    if missing_roles(found.roles, schema.names) or len(rows) == 0:
        table.detections_of(found)  # reports what is missing
        return None, rows, before
    frame = rows[found.roles["frame"]]
    falls = pc.less(frame[1:], frame[:-1]).fill_null(False)
    if pc.any(falls).as_py():
        row = int(pc.index(falls.combine_chunks(), True).as_py()) + 1
        raise found.wrong(
            row, found.roles["frame"], "frames that are streamed must not decrease. Sort the rows."
        )
    last = pc.index(frame.combine_chunks(), frame[-1]).as_py()
    if last <= 0:
        return None, rows, before
    return table.detections_of(_rows(path, rows[:last], schema, columns, before)), rows[last:], before + last


def write_table(path: Path, rows: pa.Table, _unit: str, record: Record, overwrite: bool) -> None:
    """Write a table, with its record and the unit inside."""
    if record is not None:
        rows = rows.replace_schema_metadata({RECORD: record_bytes(record)})

    def write(file: BinaryIO) -> None:
        with Packer(file, rows.schema) as output:
            output.add(rows)

    write_whole(path, write, overwrite=overwrite)


@contextmanager
def _opened(path: Path) -> Iterator[pa.parquet.ParquetFile]:
    """Open a file; errors about damaged data become an InputError."""
    said, kinds = "cannot be read as Parquet", (pa.ArrowException, OSError, ValueError)
    # pyarrow takes no name that is not UTF-8, but what Python has opened, which threads read one by one.
    plain = one_line(str(path)) == str(path)
    with (
        refused_if_damaged(path, said, "It may be damaged; write it again.", kinds),
        nullcontext(path) if plain else path.open("rb") as source,
        pa.parquet.ParquetFile(source, page_checksum_verification=True) as file,
    ):
        yield file


def _refuse_other_count(path: Path, rows: int, declared: int) -> None:
    """Compare the number of rows read with the number that the file declares."""
    if rows != declared:
        raise InputError(
            f"{path} is damaged: it declares {declared} rows, and {rows} can be read. Write it again."
        )


def _roles(names: list[str], path: Path, columns: Mapping[str, str]) -> dict[str, str]:
    try:
        return roles_of(names, columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _rows(path: Path, rows: pa.Table, schema: pa.Schema, columns: Mapping[str, str], before: int = 0) -> Rows:
    """Wrap rows of a file, which are preceded by `before` other rows."""
    stated = _unit_in(schema, _roles(schema.names, path, columns).get("x"))
    return Rows(path, rows, cells_of(rows, before + 1), stated, columns, first=before == 0)


def _unit_in(schema: pa.Schema, x: str | None) -> str | None:
    """The unit that goes with a column of positions."""
    unit = None if x is None else (schema.field(x).metadata or {}).get(b"unit")
    return None if unit is None else unit.decode(errors="replace")


def _wanted(schema: pa.Schema, path: Path, columns: Mapping[str, str]) -> list[str]:
    """Names of the columns to be read."""
    roles = _roles(schema.names, path, columns)
    names = [*roles.values(), *feature_names(schema.names, roles)]
    named = {roles[role] for role in columns if role in roles}
    names = list(dict.fromkeys(names))
    nested = [name for name in names if name not in named and not _may_matter(schema.field(name).type)]
    if features := [name for name in nested if name not in roles.values()]:
        _LOG.warning("%s: %s: no numbers, lists of numbers or text: left out", path, ", ".join(features))
    return [name for name in names if name not in nested]


def _may_matter(kind: pa.DataType) -> bool:
    """Whether a column is read: numbers, lists of them, and text (for units and error messages)."""
    nested = pa.types.is_nested(kind) and not is_list(kind)
    return not (nested or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


FORMAT = replace(
    table.format_of_tables(read_table, write_table), holds_tracks=holds_tracks, read_record=read_record,
    recognises=lambda path, _: next(path.glob(PARTS), None) is not None,
)  # fmt: skip
