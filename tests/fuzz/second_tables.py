"""Second readers of tables: Python's csv module, and rules of their own for what is a number."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from .cases import Seed
from .second import (
    DECIMAL,
    Broken,
    Found,
    Row,
    Unsure,
    decimal,
    finite,
    frame_of,
    links_by_label,
    whole,
    with_links,
)

T = TypeVar("T")
_BLANK = {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None"}
_NOT_JUDGED = ("parent_2", "track_id_2")
csv.field_size_limit(2**31 - 1)


def read_csv(path: Path, seed: Seed) -> Found:
    """Rows under the header that the seed has."""
    if not _columns(seed):
        raise Unsure("no columns are known")
    lines = list(_lines(path, str(seed.hint["separator"])))
    names, rows = _table(lines, seed)
    columns = {role: name for role, name in _columns(seed).items() if name in names}
    cells = [dict(zip(names, (field.strip(" \t") for field in row), strict=True)) for row in rows]
    mark = _decimal_mark(cells, columns, str(seed.hint["separator"]))
    parsed = [{name: _value(text, mark) for name, text in row.items()} for row in cells]
    if "edges" not in seed.hint:
        return read_rows(parsed, columns, seed)
    places = read_rows(parsed, columns, seed)
    return _with_edges(path.parent / str(seed.hint["edges"]), parsed, columns, places, seed)


def _lines(path: Path, separator: str) -> list[list[str]]:
    return _lines_in(path.read_bytes(), separator)


def _lines_in(content: bytes, separator: str) -> list[list[str]]:
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


def _table(lines: Sequence[list[str]], seed: Seed) -> tuple[list[str], list[list[str]]]:
    """Names of the columns and all rows."""
    place, skip = int(seed.hint["header"]), int(seed.hint.get("skip", 0))  # type: ignore[call-overload]
    known = set(_columns(seed).values())
    if place >= len(lines) or not known & {name.strip() for name in lines[place]}:
        raise Unsure("another header")
    names = [name.strip() for name in lines[place]]
    original = _header_of(seed)
    if names != original:
        raise Unsure("other columns")
    rows = [row for row in lines[place + 1 + skip :] if row]
    if skip and any(DECIMAL.fullmatch(field) for row in lines[place + 1 : place + 1 + skip] for field in row):
        raise Unsure("numbers among the lines of the header")
    if any(len(row) != len(names) for row in rows):
        raise Broken("rows of another length")
    return names, rows


def _header_of(seed: Seed) -> list[str]:
    content = seed.files[seed.given]
    lines = _lines_in(content, str(seed.hint["separator"]))
    return [name.strip() for name in lines[int(seed.hint["header"])]]  # type: ignore[call-overload]


def _columns(seed: Seed) -> Mapping[str, str]:
    return seed.hint["columns"]  # type: ignore[return-value]


def _decimal_mark(cells: Sequence[Mapping[str, str]], columns: Mapping[str, str], separator: str) -> str:
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


def read_rows(parsed: Sequence[Mapping[str, Any]], columns: Mapping[str, str], seed: Seed) -> Found:
    """Rows whose values are numbers, None or text, with the column of each role."""
    if not {"frame", "y", "x"} <= set(columns):
        raise Unsure("no columns")
    features = [name for name in seed.hint.get("features", ()) if parsed and name in parsed[0]]  # type: ignore[attr-defined]
    if any(all(row[name] is None for row in parsed) for name in features):
        raise Unsure("a feature without a value, which may be left out")
    if columns["frame"].lower() in ("t", "time", "position_t") and any(
        isinstance(row[columns["frame"]], float) for row in parsed
    ):
        raise Unsure("times")
    rows: list[Row] = []
    for row in parsed:
        frame = frame_of(_needed(row[columns["frame"]]))
        place = [finite(float(_needed(row[columns[axis]]))) if axis in columns else 0.0 for axis in "zyx"]
        rows.append((frame, *place, *(_feature(row[name]) for name in features)))
    return with_links(rows, lambda: _links(parsed, columns, [row[0] for row in rows]))


def _needed(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Broken(f"{value!r} where a number is needed")
    return value


def _is_none(value: Any) -> bool:
    """Whether there is no number: where whole numbers may be missing, pandas makes them NaN."""
    return value is None or value != value


def _feature(value: Any) -> float:
    if value is None:
        return float("nan")
    if not isinstance(value, int | float):
        raise Unsure("text among the features")
    return float(value)


def _links(
    parsed: Sequence[Mapping[str, Any]], columns: Mapping[str, str], frames: Sequence[float]
) -> list[tuple[int, int]] | None:
    if {"node", "node_parent"} <= set(columns):
        return _links_of_nodes(parsed, columns, frames)
    if "track_id" not in columns or any(name in parsed[0] for name in _NOT_JUDGED if parsed):
        return None
    values = [row[columns["track_id"]] for row in parsed]
    labels = [-1 if _is_none(value) else whole(_needed(value), 2**63) for value in values]
    links = links_by_label(labels, frames)
    if "parent" in columns:
        links += _mothers([row[columns["parent"]] for row in parsed], labels, frames)
    return links


def _mothers(parents: Sequence[Any], labels: Sequence[int], frames: Sequence[float]) -> list[tuple[int, int]]:
    """Links from the last detection of a parent to the first of its child."""
    parents = [None if _is_none(parent) else parent for parent in parents]
    first, last = {}, {}
    for place in sorted(range(len(labels)), key=lambda place: frames[place]):
        first.setdefault(labels[place], place)
        last[labels[place]] = place
    if 0 not in labels and any(parent == 0 for parent in parents):
        parents = [None if parent == 0 else parent for parent in parents]
    links = []
    for label, child in first.items():
        of_track = {parents[place] for place, one in enumerate(labels) if one == label}
        parent = parents[child]
        if label < 0 or parent is None or parent == label:
            continue
        if len(of_track) > 1 or not isinstance(parent, int) or parent <= 0 or parent not in last:
            raise Unsure("parents that are not plain")
        if frames[last[parent]] >= frames[child]:
            raise Broken("a parent that ends after its child begins")
        links.append((last[parent], child))
    if any(isinstance(parent, float | str) for parent in parents) or 0 in parents:
        raise Unsure("parents that are not plain")
    return links


def _links_of_nodes(
    parsed: Sequence[Mapping[str, Any]], columns: Mapping[str, str], frames: Sequence[float]
) -> list[tuple[int, int]]:
    numbers = [row[columns["node"]] for row in parsed]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise Unsure("numbers that are not plain")
    place = {number: k for k, number in enumerate(numbers)}
    if len(place) < len(numbers):
        raise Broken("a number twice")
    links = []
    for child, row in enumerate(parsed):
        parent = row[columns["node_parent"]]
        if _is_none(parent) or (isinstance(parent, int) and parent < 0) or (parent == 0 and 0 not in place):
            continue
        mother = place.get(whole(_needed(parent)))
        if mother is None or frames[mother] == frames[child]:
            raise Broken("a parent that is not there, or in the same frame")
        links.append((mother, child))
    return links


def _with_edges(
    path: Path, parsed: Sequence[Mapping[str, Any]], columns: Mapping[str, str], places: Found, seed: Seed
) -> Found:
    if not path.is_file():
        return places
    try:
        lines = _lines(path, ",")
    except Broken:
        return Found(places.rows, None, no_tracks=True)
    if not lines or lines[0] != _lines_in(seed.files[str(seed.hint["edges"])], ",")[0]:
        raise Unsure("other columns of the edges")
    name = next(name for name in parsed[0] if name.lower() == "id") if parsed else "ID"
    place = {row[name]: k for k, row in enumerate(parsed)}
    if len(place) < len(parsed) or not all(isinstance(number, int) for number in place):
        raise Unsure("numbers of spots")
    rows = [
        tuple(float(row[columns[role]]) if role in columns else 0.0 for role in ("frame", "z", "y", "x"))
        for row in parsed
    ]
    return with_links(rows, lambda: _edges(lines, place))


def _edges(lines: Sequence[Sequence[str]], place: Mapping[int, int]) -> list[tuple[int, int]]:
    first = [name.strip().upper() for name in lines[0]].index("SPOT_SOURCE_ID")
    links = []
    for count, row in enumerate(lines[1:]):
        if not row or (count < 3 and not any(DECIMAL.fullmatch(field) for field in row)):
            continue
        ends = [place.get(whole(decimal(field.strip()))) for field in row[first : first + 2]]
        if len(ends) < 2 or ends[0] is None or ends[1] is None:
            raise Broken("an edge between spots that are not there")
        links.append((ends[0], ends[1]))
    return links


def read_parquet(path: Path, seed: Seed) -> Found:
    """Rows as Python's values, once the checksums of their pages are right.

    Where only the pages of tracks are damaged, the detections can be read, and the tracks cannot.
    """
    names = _checked(lambda: pq.read_schema(path).names)
    columns = _columns(seed)
    placed = [columns[role] for role in ("frame", "z", "y", "x") if role in columns]
    placed += seed.hint.get("features", ())  # type: ignore[arg-type]

    def read(used: Collection[str]) -> pa.Table:
        used = [name for name in names if name in used]
        return _checked(lambda: pq.read_table(path, columns=used, page_checksum_verification=True))

    rows, is_damaged = read(placed), False
    try:
        rows = read([*placed, *columns.values()])
    except Broken:
        is_damaged = True
    known = {role: name for role, name in _columns(seed).items() if name in rows.column_names}
    if set(names) - set(_header_of_parquet(seed)) or len(set(names)) < len(names):
        raise Unsure("other columns")
    if any(str(kind) in ("bool", "date32[day]", "timestamp[s]") for kind in rows.schema.types if known):
        for role, name in known.items():
            if str(rows.schema.field(name).type) in ("bool", "date32[day]", "timestamp[s]"):
                raise (
                    Broken("no numbers")
                    if role in ("frame", "z", "y", "x")
                    else Unsure("no numbers of tracks")
                )
    parsed = [{name: _number(value) for name, value in row.items()} for row in rows.to_pylist()]
    found = read_rows(parsed, known, seed)
    return Found(found.rows, None, no_tracks=True) if is_damaged else found


def _checked(read: Callable[[], T]) -> T:
    """What pyarrow reads, unless a checksum is wrong."""
    try:
        return read()
    except Exception as error:
        if "CRC" in str(error):
            raise Broken("checksum") from None
        raise Unsure("pyarrow cannot read it") from None


def _header_of_parquet(seed: Seed) -> list[str]:
    return pq.read_schema(io.BytesIO(seed.files[seed.given])).names


def _number(value: Any) -> Any:
    return float(value) if type(value).__name__ == "Decimal" else value
