"""A second reader of Excel's tables: the first sheet as the XML that it is."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

from lxml import etree

from .cases import Seed
from .second import DECIMAL, Found, Unsure
from .second_tables import read_rows

_SHEET = "xl/worksheets/sheet1.xml"
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


def read_excel(path: Path, seed: Seed) -> Found:
    """Cells by their places; the first row names the columns."""
    if "others" not in seed.hint:
        raise Unsure("no columns are known")
    try:
        with zipfile.ZipFile(path) as archive:
            sheet = etree.fromstring(archive.read(_SHEET))
            shared, book = _shared(archive), _book(archive)
    except Exception:
        raise Unsure("no archive with that sheet") from None
    with zipfile.ZipFile(io.BytesIO(seed.files[seed.given])) as archive:
        same = book == _book(archive)
    if not same:
        raise Unsure("another book")
    table: dict[int, dict[str, Any]] = {}
    for cell in sheet.iter(f"{_MAIN}c"):
        place = _PLACE.fullmatch(cell.get("r", ""))
        if place is None or cell.get("t", "n") not in ("n", "s", "inlineStr"):
            raise Unsure("cells of other kinds, or without places")
        if cell.get("s") not in (None, "0"):
            raise Unsure("formatted as a date, perhaps")
        value = _value(cell, shared)
        if value is not None:
            if place[1] in table.setdefault(int(place[2]), {}):
                raise Unsure("a cell twice")
            table[int(place[2])][place[1]] = value
    rows = [table[number] for number in sorted(table) if table[number]]
    known: dict[str, str] = seed.hint["columns"]  # type: ignore[assignment]
    if not rows or {str(name) for name in rows[0].values()} != {*known.values(), *seed.hint["others"]}:  # type: ignore[misc]
        raise Unsure("other columns")
    names = {str(name): column for column, name in rows[0].items()}
    if len(names) < len(rows[0]):
        raise Unsure("other columns")
    parsed = [{name: row.get(column) for name, column in names.items()} for row in rows[1:]]
    return read_rows(parsed, {role: name for role, name in known.items() if name in names}, seed)


def _book(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """What says which sheet is the first, and how cells are shown."""
    names = (name for name in archive.namelist() if name.endswith((".rels", "workbook.xml", "styles.xml")))
    return {name: archive.read(name) for name in names}


def _shared(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    root = etree.fromstring(archive.read("xl/sharedStrings.xml"))
    return ["".join(text.text or "" for text in one.iter(f"{_MAIN}t")) for one in root.iter(f"{_MAIN}si")]


def _value(cell: Any, shared: list[str]) -> Any:
    """A number, a text, or None."""
    if cell.get("t") == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{_MAIN}t"))
    given = cell.findtext(f"{_MAIN}v")
    if given is None or not given:
        return None
    if cell.get("t") == "s":
        if not given.isdigit() or int(given) >= len(shared):
            raise Unsure("a text that is not there")
        return shared[int(given)]
    if not DECIMAL.fullmatch(given):
        raise Unsure("no number")
    return int(given) if given.strip().lstrip("+-").isdigit() else float(given)
