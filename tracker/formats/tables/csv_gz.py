"""CSV and TSV packed by gzip; see `csv`. The same table is written as the same bytes: no time is stored."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from ...errors import InputError
from ..files.memory import refuse_if_larger_than_memory
from . import csv, table
from .rows import Rows

_PIECE = 1 << 24
"""Bytes that are unpacked between two looks at the memory: a small file can hold any number of them."""


def read_table(path: Path, columns: Mapping[str, str]) -> Rows:
    """Read all rows."""
    pieces, size = list[bytes](), 0
    with _unpacked(path) as file:
        while piece := file.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            refuse_if_larger_than_memory(path, size)
    if not size:
        raise InputError(f"{path} is empty. Check where it was made.")
    csv.refuse_if_too_large(path, size, pieces[0][: csv.SAMPLE])
    return csv.rows_in(b"".join(pieces), path, columns)


def holds_tracks(path: Path, columns: Mapping[str, str]) -> bool:
    """See `outbid.formats.holds_tracks`."""
    with _unpacked(path) as file:
        return csv.tracks_in(file, path, columns)


@contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    """The text of a file."""
    try:
        with gzip.open(path) as file:
            yield cast(BinaryIO, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} cannot be unpacked: {error}. Copy it again.") from None


def packed(file: BinaryIO) -> gzip.GzipFile:
    """The file to which a text is written that is packed into another one, without a time."""
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0)


FORMAT = replace(
    table.format_of_tables(read_table, partial(csv.write_table, packed=packed)), holds_tracks=holds_tracks,
    read_record=csv.FORMAT.read_record,
)  # fmt: skip
