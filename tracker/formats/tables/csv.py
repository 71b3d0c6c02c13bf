"""CSV and TSV: tables of Outbid, and tables exported by TrackMate, Imaris, trackpy and others.

The reader detects the separator (comma, semicolon, tab), the decimal mark (point, or comma with another
separator), the encoding (UTF-8 or UTF-16, with or without a byte order mark) and skips lines above the
header. The run record is a file beside the table: ``tracks.csv.json``.
"""

from __future__ import annotations

import codecs
import csv
import io
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from gzip import GzipFile
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ...errors import InputError
from ...particles.tracks import LINK_MEASURES
from ..contract import Record
from ..files.memory import refuse_if_larger_than_memory
from ..files.outputs import write_whole
from ..files.records import record_beside, record_path, to_stand_beside, unit_beside
from . import table
from .axes import coordinate_of
from .columns import is_nameless, plain, roles_of
from .csv_layout import Layout, as_utf8, layout_of
from .rows import Rows

Packed = Callable[[BinaryIO], AbstractContextManager[BinaryIO | GzipFile]]
"""Opens what packs the bytes that it is given into a file."""
_LOG = logging.getLogger("outbid")
_NUMBER = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.IGNORECASE)
_HEXADECIMAL = r"^\s*[+-]?0[xX]"
"""Text that pyarrow parses as a whole number although authors of tables do not mean one."""
SAMPLE = 1 << 16
"""Bytes of text by which its need of memory is estimated."""
_OURS, _OF_MOVIES = ("track_id", "frame", "z", "y", "x"), {"time", "quality"}
"""Columns with which tables of Outbid begin, and those that tables of a movie have."""
_BLANK = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None"]


def recognises(path: Path, columns: Mapping[str, str]) -> bool:
    """Whether a text file of another suffix has a header with columns for frame, y and x."""
    try:
        with path.open("rb") as file:
            layout_of(_head(file, path), path, columns)
    except InputError:
        return False
    return True


def holds_tracks(path: Path, columns: Mapping[str, str]) -> bool:
    """See `outbid.formats.holds_tracks`."""
    with path.open("rb") as file:
        return tracks_in(file, path, columns)


def tracks_in(file: BinaryIO, path: Path, columns: Mapping[str, str]) -> bool:
    """Whether an open file contains tracks."""
    layout = layout_of(_head(file, path), path, columns)
    once = list({plain(name): name for name in reversed(layout.names)}.values())
    return table.holds_tracks(roles_of(once[::-1], columns))


def write_table(
    path: Path, rows: pa.Table, unit: str, record: Record, overwrite: bool, packed: Packed = nullcontext
) -> None:
    """Write a table, with its record beside it, into what packs the bytes of a file."""
    separator = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","
    rows = _floats_distinct_from_integers(rows)

    def write(file: BinaryIO) -> None:
        header = io.StringIO()
        csv.writer(header, delimiter=separator, lineterminator="\n").writerow(rows.column_names)
        form = pyarrow.csv.WriteOptions(include_header=False, delimiter=separator, quoting_style="needed")
        with packed(file) as text:
            text.write(header.getvalue().encode())
            pyarrow.csv.write_csv(rows, text, form)

    # A CSV table has no field for the unit, so the record states it.
    beside = to_stand_beside(path, record, unit)
    write_whole(path, write, overwrite=overwrite, beside=beside)


def _floats_distinct_from_integers(rows: pa.Table) -> pa.Table:
    """Write real features whose values are all whole as 1.0: otherwise they are read back as integers."""
    known = roles_of(rows.column_names)
    for index, name in enumerate(rows.column_names):
        column = rows[name]
        if (
            name in known
            or not pa.types.is_floating(column.type)
            or pc.any(pc.not_equal(pc.floor(column), column)).as_py()
        ):
            continue
        text = pc.replace_substring_regex(column.cast(pa.string()), "^(-?[0-9]+)$", r"\1.0")
        rows = rows.set_column(index, name, text)
    return rows


def _head(file: BinaryIO, path: Path) -> bytes:
    """The first MiB of the file, as UTF-8."""
    head = file.read(1 << 20)
    return as_utf8(head[: len(head) & ~1], path)


def read_table(path: Path, columns: Mapping[str, str]) -> Rows:
    """Read all rows."""
    with path.open("rb") as file:
        refuse_if_too_large(path, path.stat().st_size, file.read(SAMPLE))
    return rows_in(path.read_bytes(), path, columns)


def rows_in(content: bytes, path: Path, columns: Mapping[str, str]) -> Rows:
    """All rows in the content of a file."""
    text = as_utf8(content, path)
    layout = layout_of(text, path, columns)
    reals = _reals(layout.names, columns)
    try:
        rows = _parse(text, layout, reals, path)
    except pa.ArrowInvalid as error:
        raise _complaint(text, layout, reals, path, str(error)) from None

    unit = layout.unit or unit_beside(path)
    if unit is None and _lost_its_record(path, layout.names):
        _LOG.warning(
            "%s: no run record (%s) states the unit: positions are taken for pixels.", path,
            record_path(path).name,
        )  # fmt: skip

    def cell(row: int, column: str) -> str:
        line, fields = next(record for k, record in enumerate(_records(text, layout, path)) if k == row)
        value = fields[layout.names.index(column)].strip()
        return f"line {line}: {column} is {value[:60]!r}" if value else f"line {line}: {column} is blank"

    try:
        return Rows(path, rows, cell, unit, columns, layout.clock)
    except InputError as error:
        raise InputError(str(error).replace(f"{path}:", f"{path}, line {layout.header}:", 1)) from None


def _lost_its_record(path: Path, names: list[str]) -> bool:
    """Whether Outbid wrote a table of a movie that had a unit, by its columns, and its record is gone."""
    ours = "frame,z,y,x," in ",".join(names[: len(_OURS)]) + "," and not _OF_MOVIES.isdisjoint(names)
    return ours and not record_path(path).is_file()


def refuse_if_too_large(path: Path, size: int, head: bytes) -> None:
    """Check the memory, estimated from the first lines: the text, and twice 8 bytes for each number."""
    lines = head.count(b"\n") or head.count(b"\r") or 1
    fields = max(head.count(mark) for mark in (b",", b";", b"\t")) / lines + 1
    refuse_if_larger_than_memory(path, size + size / len(head) * lines * fields * 16)


def _parse(text: bytes, layout: Layout, reals: list[int], path: Path) -> pa.Table:
    quotes = text.count(b'"', layout.start)
    if quotes % 2:
        raise InputError(f"{path}: a quotation mark is opened and never closed. Close it, or remove it.")
    if text.startswith(codecs.BOM_UTF8, layout.start):  # pyarrow would leave it out
        raise InputError(f"{path}, line {layout.line}: a byte order mark before the first row. Remove it.")
    named = [index for index, name in enumerate(layout.names) if not is_nameless(name)]
    body = pa.py_buffer(text).slice(layout.start)
    if not re.compile(rb"\S").search(text, layout.start):
        return pa.table([pa.nulls(0)] * len(named), [layout.names[index] for index in named])
    rows = _converted(body, layout, dict.fromkeys(map(str, reals), pa.float64()), quotes > 0)
    if text.find(b"0x", layout.start) >= 0 or text.find(b"0X", layout.start) >= 0:
        whole = [name for name in rows.column_names if pa.types.is_integer(rows[name].type)]
        as_text = _converted(body, layout, dict.fromkeys(whole, pa.string()), quotes > 0)
        for name in whole:
            if pc.any(pc.match_substring_regex(as_text[name], _HEXADECIMAL)).as_py():
                rows = rows.set_column(rows.column_names.index(name), name, as_text[name])
    return rows.rename_columns(layout.names).select(named)


def _converted(body: pa.Buffer, layout: Layout, types: Mapping[str, pa.DataType], quoted: bool) -> pa.Table:
    """Parse the rows into columns called 0, 1, …; those without a given type get the type of their values."""
    return pyarrow.csv.read_csv(
        pa.BufferReader(body),
        pyarrow.csv.ReadOptions(column_names=list(map(str, range(len(layout.names))))),
        pyarrow.csv.ParseOptions(delimiter=layout.separator, newlines_in_values=quoted),
        pyarrow.csv.ConvertOptions(
            column_types=types, null_values=_BLANK, strings_can_be_null=True, decimal_point=layout.decimal
        ),
    )


def _reals(names: list[str], given: Mapping[str, str]) -> list[int]:
    """Places of columns that contain real numbers, even if all are whole: -0 is not an integer."""
    axes = {plain(given[axis]) for axis in "zyx" if given.get(axis)}
    return [
        at
        for at, name in enumerate(names)
        if coordinate_of(name) is not None or plain(name) in axes or name.startswith(LINK_MEASURES)
    ]


def _records(text: bytes, layout: Layout, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and fields of every row; slow, used only to locate an error."""
    lines = io.TextIOWrapper(io.BytesIO(text[layout.start :]), "latin-1", newline="")
    reader = csv.reader(lines, delimiter=layout.separator)
    line = layout.line
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = layout.line + reader.line_num
    except csv.Error as error:
        raise InputError(f"{path}, line {line}: {error}. Fix the row.") from None


def _complaint(text: bytes, layout: Layout, columns: list[int], path: Path, reason: str) -> InputError:
    """Report the first row with too many or too few fields, or without a number where one is needed."""
    to_point = str.maketrans({layout.decimal: ".", ".": layout.decimal})
    for line, fields in _records(text, layout, path):
        where = f"{path}, line {line}: "
        if len(fields) != len(layout.names):
            return InputError(
                f"{where}{len(fields)} fields where the header has {len(layout.names)}. "
                "Remove the stray separator, or add what is missing."
            )
        for column in columns:
            value = fields[column].strip()
            if value not in _BLANK and not _NUMBER.fullmatch(value.translate(to_point)):
                return InputError(
                    f"{where}{layout.names[column]} is {value[:60]!r}; a number is needed. Fix the row."
                )
    return InputError(f"{path}: {reason}. Fix the row.")


FORMAT = replace(
    table.format_of_tables(read_table, write_table), recognises=recognises, holds_tracks=holds_tracks,
    read_record=record_beside,
)  # fmt: skip
