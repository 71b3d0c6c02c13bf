"""Detect the layout of a CSV file: encoding, separator, header and first row."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...errors import InputError
from ..files.units import TIMES
from .columns import divided, missing_roles, plain, roles_of

_POSITION = ("POSITION_X", "POSITION_Y", "POSITION_Z")
_HEAD = 1 << 20
_MOST_PREAMBLE = 50
_LINE = re.compile(rb"[^\r\n]*(\r\n|\r|\n|$)")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(rb"[;\t\r\n]\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*[;\t\r\n]")


@dataclass(frozen=True)
class Layout:
    """Position and format of the table within UTF-8 text."""

    names: list[str]  # of the columns, one for each field of a row
    header: int  # line number of the column names; the first line of the file is 1
    start: int  # byte offset of the first row
    line: int  # line number of the first row
    separator: str  # one character, as is `decimal`
    decimal: str
    unit: str | None  # of the positions, if the lines below the header state one
    clock: float = 0.0  # seconds in the unit of POSITION_T, if they state it


def as_utf8(content: bytes, path: Path) -> bytes:
    """Convert text to UTF-8 without a byte order mark; UTF-16 is recognised with or without its mark.

    Examples
    --------
    >>> as_utf8("frame,x".encode("utf-16"), Path("a.csv"))
    b'frame,x'

    Raises InputError if UTF-16 text is damaged, or a byte is NUL.
    """
    head = content[:4096]
    encoding = None
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif len(head) > 1 and 0 not in head[::2] and not any(head[1::2]):
        encoding = "utf-16-le"
    elif len(head) > 1 and 0 not in head[1::2] and not any(head[::2]):
        encoding = "utf-16-be"
    if encoding is not None:
        try:
            content = content.decode(encoding).encode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}: damaged UTF-16 text ({error.reason}). Save the file as UTF-8."
            ) from None
    content = content.removeprefix(codecs.BOM_UTF8)
    nul = content.find(b"\0")
    if nul >= 0:
        line = len(re.findall(rb"\r\n|\r|\n", content[:nul])) + 1
        raise InputError(f"{path}, line {line}: a NUL byte; the file is damaged or no text. Export it again.")
    return content


def layout_of(text: bytes, path: Path, columns: Mapping[str, str]) -> Layout:
    """Find the separator, the header and the first row, given the columns that the caller named.

    The header is the first line that contains columns for frame, y and x when split at some separator. Lines
    above it, as Imaris writes, are skipped. Three lines without numbers below a header of TrackMate belong to
    the header.

    Raises InputError if there is no such line; the message quotes the first line.
    """
    lines = list(islice(_first_lines(text), _MOST_PREAMBLE + 4))
    for number, (_, line) in enumerate(lines[:_MOST_PREAMBLE]):
        separator = _separator_of(line)
        names = fields_of(line, separator)
        if _is_header(names, columns):
            # A field that goes on in the next line would hold a part of the table.
            opened = [n for n, (_, above) in enumerate(lines[: number + 1]) if not _is_closed(above)]
            if opened:
                raise InputError(
                    f"{path}, line {opened[0] + 1}: a quotation mark is opened and never closed. Close it, "
                    "or remove it."
                )
            return _below_header(text, lines, number, names, separator)
    raise _no_header(path, [line for _, line in lines], columns)


def fields_of(line: str, separator: str) -> list[str]:
    """Split a line into fields, without surrounding spaces."""
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:  # a field of 128 KiB is no header
        return []


def _separator_of(line: str) -> str:
    """The separator (comma, semicolon or tab) that gives the most fields."""
    return max(",;\t", key=lambda mark: len(fields_of(line, mark)))


def _is_header(names: list[str], columns: Mapping[str, str]) -> bool:
    once = list(dict.fromkeys(names))  # duplicate names are reported when the rows are read
    spelled = set(map(plain, once))
    if not all(plain(divided(name, once)[0]) in spelled for name in columns.values() if name):
        return False
    try:
        return not missing_roles(roles_of(once, columns), once)
    except InputError:
        return True


def _first_lines(text: bytes) -> Iterator[tuple[int, str]]:
    """Offset and content of each line at the beginning of the file."""
    for found in _LINE.finditer(text[:_HEAD]):
        if found.group():
            line = found.group().rstrip(b"\r\n")
            try:
                yield found.start(), line.decode()
            except UnicodeDecodeError:  # µm, as Windows programs write it
                yield found.start(), line.decode("latin-1")


def _below_header(
    text: bytes, lines: list[tuple[int, str]], header: int, names: list[str], separator: str
) -> Layout:
    first, unit, clock = header + 1, None, 0.0
    more = [fields_of(line, separator) for _, line in lines[first : first + 3] if _is_closed(line)]
    if "POSITION_X" in names and len(more) == 3 and all(_names_things(row, names) for row in more):
        first += 3
        stated = dict(zip(names, (field.strip("()") for field in more[2]), strict=True))
        unit, clock = stated["POSITION_X"], TIMES.get(stated.get("POSITION_T", ""), 0.0)
        if lengths := {stated[name] for name in _POSITION if stated.get(name)} - {unit}:
            raise InputError(
                f"POSITION_X is in {unit}, another axis in {lengths.pop()}. Convert to one unit."
            )
    start = lines[first][0] if first < len(lines) else len(text)
    commas = separator != "," and _DECIMAL_COMMA.search(text, max(start - 1, 0))
    return Layout(names, header + 1, start, first + 1, separator, "," if commas else ".", unit, clock)


def _is_closed(line: str) -> bool:
    """Whether each quotation mark of a line has its second one, so that no field goes on in the next line."""
    return line.count('"') % 2 == 0


def _names_things(row: list[str], names: list[str]) -> bool:
    """Whether a line below the header has a field for each column, none of them a number."""
    return len(row) == len(names) and not any(_NUMBER.fullmatch(field) for field in row)


def _no_header(path: Path, lines: list[str], columns: Mapping[str, str]) -> InputError:
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return InputError(
            f"{path} is empty. It needs a header with frame, y, x and a row for each detection."
        )
    line = lines[first]
    names = fields_of(line, _separator_of(line))
    if all(_NUMBER.fullmatch(name) for name in names):
        return InputError(
            f"{path}, line {first + 1}: numbers ({line[:60]}) where the header should be. Write a first line "
            "that names the columns, such as track_id,frame,z,y,x."
        )
    once = list(dict.fromkeys(names))
    try:
        lacking = missing_roles(roles_of(once, columns), once)
    except InputError as error:
        lacking = str(error)
    return InputError(f"{path}, line {first + 1}: {lacking}")
