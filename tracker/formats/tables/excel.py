"""Excel .xlsx: the table on the first sheet; the first non-empty row is the header."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from ...errors import InputError
from ..files.memory import refuse_if_larger_than_memory
from ..files.packages import package, refused_if_damaged
from .columns import is_nameless
from .rows import Rows
from .table import format_of_tables

_SWELLS = 10
"""Bytes of memory per byte of XML: each cell becomes several objects."""
_ROW = re.compile(rb"""<(?:\w+:)?row\b[^>]*?\sr=["']([^"']*)["']""")
"""Pattern of the row number in the XML."""
_HEAD = 4096
"""Number of bytes at the start of a part that are searched for a document type."""


def read_table(path: Path, columns: Mapping[str, str]) -> Rows:
    """Read all rows of the first sheet."""
    header, rows, first = _cells(path)
    named = [at for at, name in enumerate(header) if not is_nameless(name)]
    made = pa.table([_column([row[at] for row in rows]) for at in named], [header[at] for at in named])

    def cell(row: int, column: str) -> str:
        value = rows[row][header.index(column)]
        return f"row {first + row}: {column} is {'blank' if value is None else repr(value)[:60]}"

    return Rows(path, made, cell, None, columns)


def _cells(path: Path) -> tuple[list[str], list[tuple[object, ...]], int]:
    """The header, the non-empty rows below it, and Excel's number of the first of these."""
    excel = package("openpyxl", "Excel, unless the table is saved as CSV,", "excel")
    with refused_if_damaged(path, "is damaged or no workbook", "Save it again in Excel."):
        _refuse_harmful(path)
        book = excel.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        kept = [
            (number, row)
            for number, row in enumerate(sheet.iter_rows(values_only=True), 1)
            if any(value is not None for value in row)
        ]
        book.close()
    if not kept:
        raise InputError(f"{path}: the first sheet is empty. Let the table be on the first sheet.")
    header = ["" if name is None else str(name).strip() for name in kept[0][1]]
    number = kept[1][0] if len(kept) > 1 else kept[0][0] + 1
    return header, [row for _, row in kept[1:]], number


def _refuse_harmful(path: Path) -> None:
    """Refuse parts that do not fit into memory or declare entities, before they are unpacked."""
    with zipfile.ZipFile(path) as archive:
        refuse_if_larger_than_memory(path, _SWELLS * sum(info.file_size for info in archive.infolist()))
        for info in archive.infolist():
            content = archive.read(info) if info.filename.endswith((".xml", ".rels")) else b""
            if b"<!DOCTYPE" in content[:_HEAD]:
                raise InputError(
                    f"{path} declares a document type in {info.filename}, which no workbook needs. It may be "
                    "an attack; save the table as CSV if you trust it."
                )
            if "worksheets/" in info.filename:
                _refuse_rows_out_of_order(path, content)


def _refuse_rows_out_of_order(path: Path, sheet: bytes) -> None:
    """Refuse a sheet whose row numbers decrease: openpyxl would skip those rows."""
    last = 0
    for number in _ROW.findall(sheet):
        if not (number.isdigit() and len(number) < 10):
            raise InputError(
                f"{path}: {number.decode('ascii', 'replace')!r} is no number of a row. It is damaged; "
                "save it again in Excel."
            )
        row = int(number)
        if row <= last:
            raise InputError(f"{path}: row {row} follows row {last}. It is damaged; save it again in Excel.")
        last = row


def _column(values: list[object]) -> pa.Array:
    """Convert a cell to a number or to text; text is refused later where a number is needed."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        numbers = all(value is None or isinstance(value, int | float) for value in values)
        if numbers:
            return pa.array([None if value is None else float(str(value)) for value in values])
        return pa.array([None if value is None else str(value) for value in values])


FORMAT = replace(format_of_tables(read_table), recognises=lambda path, _: zipfile.is_zipfile(path))
