"""Parquet: the same table as in CSV, faster and smaller; the run record is inside, and so is the unit."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ..detections import Detections
from ..errors import InputError
from ..tracks import Tracks
from . import table
from .atomic import write_whole
from .columns import AS_NAMED, feature_names, missing_roles, roles_of
from .memory import refuse_if_larger_than_memory
from .records import record_bytes, record_from

RECORD = b"outbid"

_ROWS = 1 << 20
"""Rows that are packed as one group, and then brought to the disk."""
_PIECES = 256
"""Pages that may wait for the disk, of a megabyte or less."""


TAKES_COLUMNS = True


def read_detections(path: Path, columns: Mapping[str, str] = AS_NAMED) -> Detections:
    """See `outbid.formats.read_detections`."""
    return table.detections_of(_read(path, columns))


def read_tracks(path: Path, columns: Mapping[str, str] = AS_NAMED) -> Tracks:
    """See `outbid.formats.read_tracks`."""
    return table.tracks_of(_read(path, columns))


def holds_tracks(path: Path, columns: Mapping[str, str] = AS_NAMED) -> bool:
    """See `outbid.formats.holds_tracks`."""
    with _opened(path) as file:
        return table.holds_tracks(_roles(file.schema_arrow.names, path, columns))


def write_detections(
    path: Path, detections: Detections, record: Mapping[str, object] | None, overwrite: bool
) -> None:
    """See `outbid.formats.write_detections`."""
    _write(path, table.table_of_detections(detections), record, overwrite)


def write_tracks(path: Path, tracks: Tracks, record: Mapping[str, object] | None, overwrite: bool) -> None:
    """See `outbid.formats.write_tracks`."""
    _write(path, table.table_of_tracks(tracks), record, overwrite)


def read_record(path: Path) -> dict[str, Any] | None:
    """See `outbid.formats.read_record`."""
    with _opened(path) as file:
        known = file.metadata.metadata or {}
    return record_from(known[RECORD], path) if RECORD in known else None


def row_count(path: Path) -> int:
    """How many rows a file has, by its own account."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def detections_in_parts(path: Path, rows: int, columns: Mapping[str, str] = AS_NAMED) -> Iterator[Detections]:
    """The detections of a file, about so many at a time, and whole frames always.

    Raises
    ------
    InputError
        As `read_detections`; or if the frames decrease from one row to the next.
    """
    with _opened(path) as file:
        schema = file.schema_arrow
        wanted = _wanted(schema, path, columns)
        kept, seen = pa.table({}), 0
        try:
            for batch in file.iter_batches(rows, columns=wanted):
                piece = pa.Table.from_batches([batch])
                kept = pa.concat_tables([kept, piece]) if len(kept) else piece
                part, kept, seen = _whole_frames(path, schema, columns, kept, seen)
                if part is not None:
                    yield part
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, error) from None
        _refuse_other_count(path, seen + len(kept), file.metadata)
        if len(kept):
            yield table.detections_of(_rows(path, kept, schema, columns, seen))


def _whole_frames(
    path: Path, schema: pa.Schema, columns: Mapping[str, str], rows: pa.Table, before: int
) -> tuple[Detections | None, pa.Table, int]:
    """The rows of all frames but the last, the rows that are left, and how many came before those."""
    found = _rows(path, rows, schema, columns, before)
    if missing_roles(found.roles, schema.names) or len(rows) == 0:
        table.detections_of(found)  # says what is missing
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


def _write(path: Path, rows: pa.Table, record: Mapping[str, object] | None, overwrite: bool) -> None:
    if record is not None:
        rows = rows.replace_schema_metadata({RECORD: record_bytes(record)})

    def write(file: BinaryIO) -> None:
        with packed(file, rows.schema) as (_, add):
            add(rows)

    write_whole(path, write, overwrite=overwrite)


@contextmanager
def packed(
    file: BinaryIO, schema: pa.Schema
) -> Iterator[tuple[pa.parquet.ParquetWriter, Callable[[pa.Table], None]]]:
    """A writer to a file, and what adds rows to it.

    What is packed is brought to the disk by a thread while more is packed: else packing would wait for the
    disk, and the end of a large file for all of it.
    """
    with _Behind(file) as behind, _writer(behind, schema) as output:

        def add(rows: pa.Table) -> None:
            for begin in range(0, len(rows), _ROWS):
                output.write_table(rows[begin : begin + _ROWS])
                if begin + _ROWS < len(rows):
                    behind.sync()

        yield output, add


class _Behind(RawIOBase):
    """A file to which a thread writes; what goes wrong there is raised at the next write, or at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._disk = ThreadPoolExecutor(1)
        self._waiting: deque[Future[object]] = deque()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        data = bytes(data)  # itself, if it is bytes
        self._do(self._file.write, data)
        return len(data)

    def sync(self) -> None:
        self._do(lambda: os.fsync(self._file.fileno()))

    def close(self) -> None:
        """Wait until all is written."""
        try:
            while self._waiting:
                self._waiting.popleft().result()
        finally:
            self._disk.shutdown(cancel_futures=True)
            super().close()

    def _do(self, work: Callable[..., object], *given: bytes) -> None:
        while self._waiting and (self._waiting[0].done() or len(self._waiting) > _PIECES):
            self._waiting.popleft().result()
        self._waiting.append(self._disk.submit(work, *given))


def _writer(file: RawIOBase, schema: pa.Schema) -> pa.parquet.ParquetWriter:
    """What writes tables to a file: whole numbers as differences, others byte by byte, text by a dictionary.

    Track numbers and frames grow slowly, and positions have bytes that repeat; against the usual dictionaries
    that is half of the time and three quarters of the size. Least and largest values are written of what
    readers skip rows by.
    """
    types = {field.name: field.type for field in schema}
    encoding = {name: "DELTA_BINARY_PACKED" for name, of in types.items() if pa.types.is_integer(of)}
    skipped_by = list(encoding)
    encoding |= {name: "BYTE_STREAM_SPLIT" for name, of in types.items() if pa.types.is_floating(of)}
    return pa.parquet.ParquetWriter(
        file,
        schema,
        use_dictionary=[name for name in types if name not in encoding],
        column_encoding=encoding,
        write_statistics=skipped_by,
        write_page_checksum=True,
    )


def _opened(path: Path) -> pa.parquet.ParquetFile:
    try:
        return pa.parquet.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from None


def _refuse_other_count(path: Path, rows: int, footer: pa.parquet.FileMetaData) -> None:
    """Compare the rows that were read, whose count its groups declare, with the count for the whole file."""
    if rows != footer.num_rows:
        raise InputError(
            f"{path} is damaged: it declares {footer.num_rows} rows, and {rows} can be read. Write it again."
        )


def _roles(names: list[str], path: Path, columns: Mapping[str, str]) -> dict[str, str]:
    try:
        return roles_of(names, columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read(path: Path, columns: Mapping[str, str]) -> table.Rows:
    with _opened(path) as file:
        schema = file.schema_arrow
        wanted = _wanted(schema, path, columns)
        # A few bytes can stand for millions of equal values: the count of rows gives the size.
        refuse_if_larger_than_memory(path, file.metadata.num_rows * max(len(wanted), 1) * 16)
        try:
            rows = file.read(wanted)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, error) from None
        _refuse_other_count(path, len(rows), file.metadata)
    return _rows(path, rows, schema, columns)


def _rows(
    path: Path, rows: pa.Table, schema: pa.Schema, columns: Mapping[str, str], before: int = 0
) -> table.Rows:
    """Rows of a file, of which so many stand before them."""

    def cell(row: int, column: str) -> str:
        value = rows[column][row].as_py()
        return f"row {before + row + 1}: {column} is {'blank' if value is None else repr(value)}"

    unit = _unit(schema, _roles(schema.names, path, columns))
    return table.Rows(path, rows, cell, unit, columns, first=before == 0)


def _wanted(schema: pa.Schema, path: Path, columns: Mapping[str, str]) -> list[str]:
    """Names of the columns that are read."""
    roles = _roles(schema.names, path, columns)
    names = [*roles.values(), *feature_names(schema.names, roles)]
    named = {roles[role] for role in columns if role in roles}
    return [name for name in dict.fromkeys(names) if name in named or _may_matter(schema.field(name).type)]


def _may_matter(kind: pa.DataType) -> bool:
    """Numbers, and text that may stand where a number belongs or state a unit; nothing nested or binary."""
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _unit(schema: pa.Schema, roles: Mapping[str, str]) -> str | None:
    unit = (schema.field(roles["x"]).metadata or {}).get(b"unit") if "x" in roles else None
    return unit.decode(errors="replace") if unit is not None else None


def _damaged(path: Path, error: Exception) -> InputError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(". ")
    return InputError(f"{path} cannot be read as Parquet: {reason}. It may be damaged; write it again.")
