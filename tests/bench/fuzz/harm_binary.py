"""Ways to harm what has a structure: tags of TIFF, members of an archive, columns of Parquet."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import tifffile

from . import harm, harm_text
from .cases import Harm

_ODD = (0, 1, 2, 3, 7, 8, 16, 255, 65535, 2**31, 2**32 - 1)
_TAGS = (254, 256, 257, 258, 259, 262, 270, 273, 274, 277, 278, 279, 284, 317, 322, 323, 324, 325, 339)
_TYPES = (
    pa.int8(), pa.uint64(), pa.float32(), pa.string(), pa.large_string(), pa.bool_(), pa.null(), pa.date32(),
    pa.decimal128(20, 3), pa.float16(), pa.int64(), pa.timestamp("s"), pa.dictionary(pa.int32(), pa.string()),
)  # fmt: skip
_VALUES = (None, -1, 0, 3, 1.5, float("nan"), float("inf"), -0.0, 2**40, 2**31, 1e300)
_NAMES = (
    "frame", "t", "x", "y", "z", "posZ", "track_id", "parent", "id", "parent_id", "unit", "x_um", "mass",
    " x",
)  # fmt: skip


def _tag(content: bytes, rng: random.Random) -> bytes:
    """An entry of a TIFF's directory gets another tag, type, count or value; or the chain is bent."""
    changed = bytearray(content)
    try:
        with tifffile.TiffFile(io.BytesIO(content)) as tiff:
            pages = [tiff.pages.get(k, aspage=True) for k in range(len(tiff.pages))]
            wide, width, order = ("Q", 20, tiff.byteorder) if tiff.is_bigtiff else ("I", 12, tiff.byteorder)
            entries = sorted(tag.offset for tag in rng.choice(pages).tags)  # type: ignore[union-attr]
        fields = [("H", 0, _TAGS), ("H", 2, range(1, 19)), (wide, 4, _ODD)]
        form, inside, values = rng.choice([*fields, (wide, 4 + struct.calcsize(wide), _ODD)])
        place = rng.choice(entries) + inside
        if rng.random() < 0.15:
            offsets = [page.offset for page in pages]
            form, place, values = wide, entries[-1] + width, (0, *offsets, *_ODD)
        struct.pack_into(order + form, changed, place, rng.choice(list(values)))
    except Exception:  # harmed before
        return content
    return bytes(changed)


def _member(content: bytes, rng: random.Random) -> bytes:
    """A file in an archive is harmed, lost or called otherwise, and the archive made anew."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {one: archive.read(one) for one in archive.namelist()}
    except Exception:  # harmed before
        return content
    ways = [*harm.BYTES.values(), *harm.WHOLE.values(), *harm_text.NUMBERS.values(), *harm_text.XML.values()]
    rng.choice(ways)(members, rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, inside in members.items():
            archive.writestr(one, inside)
    return packed.getvalue()


def _column(content: bytes, rng: random.Random) -> bytes:
    """A column of a Parquet file is lost, renamed, of another type, or has another value."""
    file = io.BytesIO()
    try:
        rows = pq.read_table(io.BytesIO(content))
        changed = rng.choice(_COLUMN_WAYS)(rows, rng.randrange(rows.num_columns), rng)
        pq.write_table(changed, file, write_page_checksum=True)
    except Exception:  # harmed before, or no such change
        return content
    return file.getvalue()


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


_COLUMN_WAYS: tuple[Callable[[pa.Table, int, random.Random], pa.Table], ...] = (
    *(_call,) * 2, *(_cast,) * 3, *(_value,) * 4,
    lambda rows, column, rng: rows.remove_column(column),
    lambda rows, column, rng: rows.take(rng.sample(range(len(rows)), len(rows))),
    lambda rows, column, rng: rows[:0],
)  # fmt: skip

TAGS: dict[str, Harm] = {"tag": harm.in_one(_tag, lambda content: content[:2] in (b"II", b"MM"))}
MEMBERS: dict[str, Harm] = {"member": harm.in_one(_member, lambda content: content.startswith(b"PK"))}
COLUMNS: dict[str, Harm] = {"column": harm.in_one(_column, lambda content: content.startswith(b"PAR1"))}
