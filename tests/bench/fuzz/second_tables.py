"""Second readers of tables: Python's csv module and pyarrow, and rules of their own for what is a number."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .cases import Seed
from .second import DECIMAL, Broken, Found, Links, Row, Unsure, by_label, by_number, decimal, row_of, whole
from .second import with_links as found_with

_BLANK = {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None"}
_PLACED = ("frame", "z", "y", "x")
_NOT_JUDGED = {"parent_2", "track_id_2"}
csv.field_size_limit(2**31 - 1)
Parsed = Sequence[Mapping[str, Any]]
"""Rows whose values are numbers, None or text."""
Columns = Mapping[str, str]
"""Names of columns by their roles."""


def _hint(seed: Seed, name: str, default: Any) -> Any:
    return seed.hint.get(name, default)


def read_csv(path: Path, seed: Seed) -> Found:
    """Rows under the header that the seed has."""
    separator, head, skip = _hint(seed, "separator", ","), _hint(seed, "header", 0), _hint(seed, "skip", 0)
    columns = _hint(seed, "columns", {})
    if not columns:
        raise Unsure("no columns are known")
    lines, good = (_lines(content, separator) for content in (path.read_bytes(), seed.files[seed.given]))
    names = [name.strip() for name in good[head]]
    if len(lines) <= head or [name.strip() for name in lines[head]] != names:
        raise Unsure("another header")
    if any(DECIMAL.fullmatch(field) for row in lines[head + 1 : head + 1 + skip] for field in row):
        raise Unsure("numbers among the lines of the header")
    rows = [row for row in lines[head + 1 + skip :] if row]
    if any(len(row) != len(names) for row in rows):
        raise Broken("rows of another length")
    cells = [dict(zip(names, (field.strip(" \t") for field in row), strict=True)) for row in rows]
    columns = {role: name for role, name in columns.items() if name in names}
    mark = _decimal_mark(cells, columns, separator)
    parsed = [{name: _value(text, mark) for name, text in row.items()} for row in cells]
    if edges := _hint(seed, "edges", ""):
        return found_with(_rows(parsed, columns, seed), lambda: _edges(path.parent / edges, parsed, seed))
    return _found(parsed, columns, seed)


def _lines(content: bytes, separator: str) -> list[list[str]]:
    wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\0" in content and not wide:
        raise Unsure("UTF-16 without a mark, or damage")
    try:
        text = content.decode("utf-16") if wide else content.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        if wide:
            raise Broken("damaged UTF-16") from None
        text = content.decode("latin-1")
    if "\0" in text:
        raise Broken("a NUL")
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))


def _decimal_mark(cells: Sequence[Mapping[str, str]], columns: Columns, separator: str) -> str:
    places = [row[columns[axis]] for row in cells for axis in "zyx" if axis in columns]
    commas = any("," in text for text in places)
    if commas and any("." in text for text in places):
        raise Broken("points and commas")
    return "," if commas and separator != "," else "."


def _value(text: str, mark: str) -> Any:
    """A number, None for a blank, or the text."""
    if text in _BLANK:
        return None
    if text.lower().lstrip("+-") == "nan":  # how pandas and NumPy write that there is none
        return float("nan")
    plain = text.replace(mark, ".") if mark == "," and "." not in text else text
    if DECIMAL.fullmatch(plain) and (mark == "." or "." not in text):
        return int(plain) if plain.strip().lstrip("+-").isdigit() else float(plain)
    return text


def _found(parsed: Parsed, columns: Columns, seed: Seed) -> Found:
    rows = _rows(parsed, columns, seed)
    return found_with(rows, lambda: _links(parsed, columns, rows))


def _rows(parsed: Parsed, columns: Columns, seed: Seed) -> list[Row]:
    if not {"frame", "y", "x"} <= set(columns):
        raise Unsure("no columns")
    frame = columns["frame"]
    features = [name for name in _hint(seed, "features", ()) if parsed and name in parsed[0]]
    if any(all(row[name] is None for row in parsed) for name in features):
        raise Unsure("a feature without a value, which may be left out")
    if frame.lower() in ("t", "time", "position_t") and any(isinstance(row[frame], float) for row in parsed):
        raise Unsure("times")
    rows = []
    for row in parsed:
        place = [float(_needed(row[columns[axis]])) if axis in columns else 0.0 for axis in "zyx"]
        rows.append((*row_of(_needed(row[frame]), *place), *(_feature(row[name]) for name in features)))
    return rows


def _needed(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Broken(f"{value!r} where a number is needed")
    return value


def _feature(value: Any) -> float:
    if not isinstance(value, int | float | None):
        raise Unsure("text among the features")
    return float("nan" if value is None else value)


def _given(value: Any) -> Any:
    """The number of a track, or None: where whole numbers may be missing, pandas makes them NaN."""
    return None if value != value else value


def _links(parsed: Parsed, columns: Columns, rows: Sequence[Row]) -> Links | None:
    if {"node", "node_parent"} <= set(columns):
        return _links_of_nodes(
            [(row[columns["node"]], _given(row[columns["node_parent"]])) for row in parsed]
        )
    if "track_id" not in columns or (parsed and _NOT_JUDGED & set(parsed[0])):
        return None
    tracks = [_given(row[columns["track_id"]]) for row in parsed]
    labels = [-1 if track is None else whole(_needed(track), 2**63) for track in tracks]
    links = by_label(labels, rows)
    if "parent" in columns:
        links += _mothers([_given(row[columns["parent"]]) for row in parsed], labels, rows)
    return links


def _mothers(parents: Sequence[Any], labels: Sequence[int], rows: Sequence[Row]) -> Links:
    """Links from the last detection of a parent to the first of its child."""
    order = sorted(range(len(labels)), key=lambda place: rows[place][0])
    first, last = ({labels[place]: place for place in places} for places in (order[::-1], order))
    none = (None,) if 0 in labels else (None, 0)
    of_track = {
        (label, None if parent in none else parent) for label, parent in zip(labels, parents, strict=True)
    }
    if len(of_track) > len(first) or min(first, default=0) < 0:
        raise Unsure("parents that are not plain")
    pairs = [(parent, label) for label, parent in of_track if parent not in (None, label)]
    if any(not isinstance(parent, int) or parent <= 0 or parent not in last for parent, _ in pairs):
        raise Unsure("parents that are not plain")
    links = [(last[parent], first[label]) for parent, label in pairs]
    if any(rows[mother][0] >= rows[child][0] for mother, child in links):
        raise Broken("a parent that ends after its child begins")
    return links


def _links_of_nodes(nodes: Sequence[tuple[Any, Any]]) -> Links:
    numbers = [number for number, _ in nodes]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise Unsure("numbers that are not plain")
    pairs = [
        (whole(_needed(parent)), number)
        for number, parent in nodes
        if not (
            parent is None or (isinstance(parent, int) and parent < 0) or (parent == 0 and 0 not in numbers)
        )
    ]
    return by_number(numbers, pairs)


def _edges(path: Path, parsed: Parsed, seed: Seed) -> Links | None:
    """Links of the file beside, if it is there."""
    if not path.is_file():
        return None
    lines, good = (_lines(content, ",") for content in (path.read_bytes(), seed.files[path.name]))
    if lines[:1] != good[:1]:
        raise Unsure("other columns of the edges")
    numbers = [next(value for name, value in row.items() if name.lower() == "id") for row in parsed]
    if len({*numbers}) < len(numbers) or not all(isinstance(number, int) for number in numbers):
        raise Unsure("numbers of spots")
    first = [name.strip().upper() for name in good[0]].index("SPOT_SOURCE_ID")
    rows = (row for k, row in enumerate(lines[1:]) if row and (k > 2 or any(map(DECIMAL.fullmatch, row))))
    pairs = [[whole(decimal(field.strip())) for field in row[first : first + 2]] for row in rows]
    return by_number(numbers, pairs)


def read_parquet(path: Path, seed: Seed) -> Found:
    """Rows as Python's values, once the checksums of their pages are right.

    Where only the pages of tracks are damaged, the detections can be read, and the tracks cannot.
    """
    columns, features = _hint(seed, "columns", {}), _hint(seed, "features", ())
    placed = [*(columns[role] for role in _PLACED if role in columns), *features]
    good, is_damaged = pq.read_schema(io.BytesIO(next(iter(seed.files.values())))).names, False
    rows = _of_parquet(path, placed)
    try:
        rows = _of_parquet(path, [*placed, *columns.values()])
    except Broken:
        is_damaged = True
    names = pq.read_schema(path).names
    known = {role: name for role, name in columns.items() if name in rows.column_names}
    if set(names) - set(good) or len(set(names)) < len(names):
        raise Unsure("other columns")
    kinds = [rows.schema.field(name).type for role, name in known.items() if role not in _PLACED]
    if any(pa.types.is_boolean(kind) or pa.types.is_temporal(kind) for kind in kinds):
        raise Unsure("no numbers of tracks")
    parsed = [{name: _number(value) for name, value in row.items()} for row in rows.to_pylist()]
    found = _found(parsed, known, seed)
    return Found(found.rows, None, no_tracks=True) if is_damaged else found


def _of_parquet(path: Path, wanted: Collection[str]) -> pa.Table:
    """What pyarrow reads of these columns, unless a checksum is wrong."""
    try:
        names = [name for name in pq.read_schema(path).names if name in wanted]
        return pq.read_table(path, columns=names, page_checksum_verification=True)
    except Exception as error:
        if "CRC" in str(error):
            raise Broken("checksum") from None
        raise Unsure("pyarrow cannot read it") from None


def _number(value: Any) -> Any:
    return float(value) if type(value).__name__ == "Decimal" else value
