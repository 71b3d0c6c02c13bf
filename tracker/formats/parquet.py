"""Parquet: the same table as in CSV, faster and smaller; the run record is inside, and so is the unit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ..detections import Detections
from ..errors import InputError
from ..tracks import Tracks
from . import table
from .atomic import write_whole
from .columns import feature_names, roles_of
from .memory import refuse_if_larger_than_memory
from .records import record_bytes, record_from

_RECORD = b"outbid"


def read_detections(path: Path) -> Detections:
    """See `outbid.tracker.formats.read_detections`."""
    return table.detections_of(_read(path))


def read_tracks(path: Path) -> Tracks:
    """See `outbid.tracker.formats.read_tracks`."""
    return table.tracks_of(_read(path))


def holds_tracks(path: Path) -> bool:
    """See `outbid.tracker.formats.holds_tracks`."""
    with _opened(path) as file:
        return table.holds_tracks(_roles(file.schema_arrow.names, path))


def write_detections(
    path: Path, detections: Detections, record: Mapping[str, object] | None, overwrite: bool
) -> None:
    """See `outbid.tracker.formats.write_detections`."""
    _write(path, table.table_of_detections(detections), record, overwrite)


def write_tracks(path: Path, tracks: Tracks, record: Mapping[str, object] | None, overwrite: bool) -> None:
    """See `outbid.tracker.formats.write_tracks`."""
    _write(path, table.table_of_tracks(tracks), record, overwrite)


def read_record(path: Path) -> dict[str, Any] | None:
    """See `outbid.tracker.formats.read_record`."""
    with _opened(path) as file:
        known = file.schema_arrow.metadata or {}
    return record_from(known[_RECORD], path) if _RECORD in known else None


def _write(path: Path, rows: pa.Table, record: Mapping[str, object] | None, overwrite: bool) -> None:
    if record is not None:
        rows = rows.replace_schema_metadata({_RECORD: record_bytes(record)})
    write_whole(
        path,
        lambda file: pa.parquet.write_table(
            rows,
            file,
            # Positions hardly repeat; a dictionary of them only costs time.
            use_dictionary=[name for name in ("track_id", "frame", "parent") if name in rows.column_names],
            write_page_checksum=True,
        ),
        overwrite=overwrite,
    )


def _opened(path: Path) -> pa.parquet.ParquetFile:
    try:
        return pa.parquet.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from None


def _roles(names: list[str], path: Path) -> dict[str, str]:
    try:
        return roles_of(names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read(path: Path) -> table.Rows:
    with _opened(path) as file:
        schema = file.schema_arrow
        roles = _roles(schema.names, path)
        names = [*roles.values(), *feature_names(schema.names, roles)]
        wanted = [name for name in dict.fromkeys(names) if _may_matter(schema.field(name).type)]
        # A few bytes can stand for millions of equal values: the count of rows tells the size.
        refuse_if_larger_than_memory(path, file.metadata.num_rows * max(len(wanted), 1) * 16)
        try:
            rows = file.read(wanted)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, error) from None

    def cell(row: int, column: str) -> str:
        value = rows[column][row].as_py()
        return f"row {row + 1}: {column} is {'blank' if value is None else repr(value)}"

    return table.Rows(path, rows, cell, _unit(schema, roles))


def _may_matter(kind: pa.DataType) -> bool:
    """Numbers, and text that may stand where a number belongs or tell a unit; nothing nested or binary."""
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _unit(schema: pa.Schema, roles: Mapping[str, str]) -> str | None:
    unit = (schema.field(roles["x"]).metadata or {}).get(b"unit") if "x" in roles else None
    return unit.decode(errors="replace") if unit is not None else None


def _damaged(path: Path, error: Exception) -> InputError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(". ")
    return InputError(f"{path} cannot be read as Parquet: {reason}. It may be damaged; write it again.")
