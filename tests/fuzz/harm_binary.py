"""Ways to harm what has a structure: tags of TIFF, members of an archive, columns of Parquet."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from . import harm, harm_text
from .cases import Files, Harm

_ODD = (0, 1, 2, 3, 7, 8, 16, 255, 65535, 2**31, 2**32 - 1)
_TAGS = (254, 256, 257, 258, 259, 262, 270, 273, 274, 277, 278, 279, 284, 317, 322, 323, 324, 325, 339)
_TYPES = (
    pa.int8(), pa.uint64(), pa.float32(), pa.string(), pa.large_string(), pa.bool_(), pa.null(), pa.date32(),
    pa.decimal128(20, 3), pa.float16(), pa.int64(), pa.timestamp("s"), pa.dictionary(pa.int32(), pa.string()),
)  # fmt: skip
_VALUES = (None, -1, 0, 3, 1.5, float("nan"), float("inf"), -0.0, 2**40, 2**31, 1e300)
_NAMES = (
    "frame",
    "t",
    "x",
    "y",
    "z",
    "posZ",
    "track_id",
    "parent",
    "id",
    "parent_id",
    "unit",
    "x_um",
    "mass",
    " x",
)


def _tag(files: Files, rng: random.Random) -> None:
    """An entry of a TIFF's directory gets another tag, type, count or value; or the chain is bent."""
    names = [name for name, content in files.items() if content[:2] in (b"II", b"MM") and len(content) > 16]
    if not names:
        return
    name = rng.choice(names)
    content = bytearray(files[name])
    order = "<" if content[:2] == b"II" else ">"
    big = struct.unpack_from(order + "H", content, 2)[0] == 43
    wide, width, count_form = ("Q", 20, "Q") if big else ("I", 12, "H")
    pages, (offset,) = [], struct.unpack_from(order + wide, content, 8 if big else 4)
    try:
        while offset and offset not in pages:
            pages.append(offset)
            (tags,) = struct.unpack_from(order + count_form, content, offset)
            (offset,) = struct.unpack_from(
                order + wide, content, offset + struct.calcsize(count_form) + tags * width
            )
        page = rng.choice(pages)
        (tags,) = struct.unpack_from(order + count_form, content, page)
        first = page + struct.calcsize(count_form)
        if rng.random() < 0.15:
            struct.pack_into(order + wide, content, first + tags * width, rng.choice([0, *pages, *_ODD]))
        else:
            entry = first + rng.randrange(tags) * width
            form, place, values = rng.choice(
                [
                    ("H", 0, _TAGS),
                    ("H", 2, range(1, 19)),
                    (wide, 4, _ODD),
                    (wide, 4 + struct.calcsize(wide), _ODD),
                ]
            )
            struct.pack_into(order + form, content, entry + place, rng.choice(list(values)))
    except (struct.error, IndexError, OverflowError, ValueError):
        return
    files[name] = bytes(content)


def _member(files: Files, rng: random.Random) -> None:
    """A file in an archive is harmed, lost or called otherwise, and the archive made anew."""
    names = [name for name, content in files.items() if content.startswith(b"PK")]
    if not names:
        return
    name = rng.choice(names)
    try:
        with zipfile.ZipFile(io.BytesIO(files[name])) as archive:
            members = {one: archive.read(one) for one in archive.namelist()}
    except Exception:  # harmed before
        return
    ways = [*harm.BYTES.values(), *harm.WHOLE.values(), *harm_text.NUMBERS.values(), *harm_text.XML.values()]
    rng.choice(ways)(members, rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, content in members.items():
            archive.writestr(one, content)
    files[name] = packed.getvalue()


def _column(files: Files, rng: random.Random) -> None:
    """A column of a Parquet file is lost, renamed, of another type, or has another value."""
    names = [name for name, content in files.items() if content.startswith(b"PAR1")]
    if not names:
        return
    name = rng.choice(names)
    try:
        rows = pq.read_table(io.BytesIO(files[name]))
        changed = rng.choice(_COLUMN_WAYS)(rows, rng.randrange(rows.num_columns), rng)
        file = io.BytesIO()
        pq.write_table(changed, file, write_page_checksum=True)
    except Exception:  # harmed before, or no such change
        return
    files[name] = file.getvalue()


def _lose(rows: pa.Table, column: int, _: random.Random) -> pa.Table:
    return rows.remove_column(column)


def _call(rows: pa.Table, column: int, rng: random.Random) -> pa.Table:
    names = rows.column_names
    names[column] = rng.choice(_NAMES)
    return rows.rename_columns(names)


def _cast(rows: pa.Table, column: int, rng: random.Random) -> pa.Table:
    kind = rng.choice(_TYPES)
    values = pa.nulls(len(rows), kind) if pa.types.is_null(kind) else rows[column].cast(kind, safe=False)
    return rows.set_column(column, rows.field(column).with_type(kind), values)


def _value(rows: pa.Table, column: int, rng: random.Random) -> pa.Table:
    values = rows[column].to_pylist()
    values[rng.randrange(len(values))] = rng.choice(_VALUES)
    try:
        made = pa.array(values, rows.field(column).type)
    except (pa.ArrowException, TypeError, OverflowError):
        made = pa.array([None if v is None else float(v) for v in values])
    return rows.set_column(column, pa.field(rows.column_names[column], made.type), made)


def _order(rows: pa.Table, column: int, rng: random.Random) -> pa.Table:
    order = list(range(len(rows)))
    rng.shuffle(order)
    return rows.take(order)


def _none(rows: pa.Table, column: int, rng: random.Random) -> pa.Table:
    return rows[:0]


_COLUMN_WAYS: tuple[Callable[[pa.Table, int, random.Random], pa.Table], ...] = (
    _lose, _call, _call, _cast, _cast, _cast, _value, _value, _value, _value, _order, _none,
)  # fmt: skip

TAGS: dict[str, Harm] = {"tag": _tag}
MEMBERS: dict[str, Harm] = {"member": _member}
COLUMNS: dict[str, Harm] = {"column": _column}
