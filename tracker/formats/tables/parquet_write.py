"""Write Parquet: threads compress one row group each, while another thread writes finished groups.

Each group is first written as a small file of its own. Its bytes are copied into the output, and its entry in
the small footer moves to the common one with corrected offsets. For this, footers are read and written in
Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md)
with the field numbers of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift;
fields that need no change are copied unread. `pyarrow.parquet.ParquetWriter` alone encodes in one thread, 9
million rows a second: 100 million would take as long as to read, link and write them with a GPU.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet

from ...compute.threads import FEW

GROUP = 1 << 20
"""Rows of a row group; each that is compressed, `FEW` at the same time, needs about 70 MB."""
_FLUSH = 1 << 28
"""Bytes of a file after which they are flushed to the disk, so that the end need not wait for all."""
_MAGIC = b"PAR1"
_INTEGERS, _I16, _I64, _BINARY, _LIST, _STRUCT = (4, 5, 6), 4, 6, 8, 9, 12
_BYTES = {1: 0, 2: 0, 3: 1, 7: 8}
"""Types of Thrift; and bytes of the values that are copied: for true and false, the type is the value."""
_ROWS, _GROUPS, _NOTES = 3, 4, 5
"""Fields of a footer: number of rows, row groups, key-value metadata."""
_COLUMNS, _GROUP_ROWS, _GROUP_START, _NUMBER = 1, 3, 5, 7
"""Fields of a row group."""
_CHUNK_START, _CHUNK = 2, 3
_OFFSETS = (9, 10, 11)
"""Fields of a column: offsets of data, index and dictionary."""
_MOST_NUMBERED = 1 << 15
"""Largest number of row groups with ordinals, which have 16 bits."""
_Struct = dict[int, tuple[int, Any]]
"""Fields of a struct: type and value by number."""


class Packer:
    """Writes rows into a Parquet file, in a ``with`` block, at whose end it is complete.

    The output is byte-identical for any number of threads. An error in a thread is raised when more rows are
    added, or at the end.

    Parameters
    ----------
    file : file
        Open for writing, at its start.
    schema : pyarrow.Schema
        Schema of the rows; its metadata become those of the file.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._file, self._schema = file, schema
        self._footer, _ = _footer_of(_file_of(None, schema))
        self._pack, self._disk, self._flush = (ThreadPoolExecutor(count) for count in (FEW, 1, 1))
        self._flushed: Future[None] | None = None
        self._unflushed = 0
        file.write(_MAGIC)
        self._offset = len(_MAGIC)
        self._waiting = deque[Future[None]]()

    def __enter__(self) -> Packer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Wait until all row groups are written, then write the footer; after an error discard the groups."""
        try:
            if kind is None:
                self._wait(0)
                if self._flushed is not None:
                    self._flushed.result()
                content = BytesIO()
                _put(content, _STRUCT, self._footer)
                size = struct.pack("<I", content.tell())
                self._file.write(content.getvalue() + size + _MAGIC)
        finally:
            for pool in (self._pack, self._disk, self._flush):
                pool.shutdown(cancel_futures=True)

    def add(self, rows: pa.Table) -> None:
        """Add rows, in groups of `GROUP` and a last, smaller one."""
        for begin in range(0, len(rows), GROUP):
            self._wait(FEW)
            packing = self._pack.submit(_file_of, rows[begin : begin + GROUP], self._schema)
            self._waiting.append(self._disk.submit(self._write, packing))

    def note(self, notes: Mapping[bytes, bytes]) -> None:
        """Add key-value metadata to the file."""
        _, listed = self._footer.setdefault(_NOTES, (_LIST, (_STRUCT, [])))[1]
        listed += [{1: (_BINARY, key), 2: (_BINARY, value)} for key, value in notes.items()]

    def _wait(self, most: int) -> None:
        """Wait until no more than this many groups are not written yet."""
        while len(self._waiting) > most or (self._waiting and self._waiting[0].done()):
            self._waiting.popleft().result()

    def _write(self, packing: Future[memoryview]) -> None:
        """Append a row group; another thread flushes what is written, which takes the disk long."""
        group = packing.result()
        footer, end = _footer_of(group)
        self._file.write(group[len(_MAGIC) : end])
        for each in footer[_GROUPS][1][1]:
            self._list(each, self._offset - len(_MAGIC))
        self._offset += end - len(_MAGIC)
        self._unflushed += end - len(_MAGIC)
        if self._unflushed >= _FLUSH:
            if self._flushed is not None:
                self._flushed.result()
            self._flushed, self._unflushed = self._flush.submit(os.fsync, self._file.fileno()), 0

    def _list(self, group: _Struct, by: int) -> None:
        """Add the entry of a row group, whose data were moved by some bytes, to the footer."""
        listed = self._footer[_GROUPS][1][1]
        _move(group, (_GROUP_START,), by)
        for chunk in group[_COLUMNS][1][1]:
            _move(chunk, (_CHUNK_START,), by)
            _move(chunk[_CHUNK][1], _OFFSETS, by)
        group[_NUMBER] = (_I16, len(listed))
        if len(listed) >= _MOST_NUMBERED:
            del group[_NUMBER]
        listed.append(group)
        self._footer[_ROWS] = (_I64, self._footer[_ROWS][1] + group[_GROUP_ROWS][1])


def _move(fields: _Struct, keys: tuple[int, ...], by: int) -> None:
    """Add to the offsets that a struct has; 0 is none."""
    fields |= {key: (_I64, fields[key][1] + by) for key in keys if fields.get(key, (_I64, 0))[1]}


def _file_of(rows: pa.Table | None, schema: pa.Schema) -> memoryview:
    """Encode one row group, or none, as a small Parquet file.

    Integers are encoded as differences, floats as byte streams and text by a dictionary: track numbers and
    frames increase slowly, and positions have repeated bytes. Compared with the default dictionaries, this
    takes half the time and gives three quarters of the size. Minimum and maximum are stored for columns by
    which readers skip rows.
    """
    types = {field.name: field.type for field in schema}
    whole = {name: "DELTA_BINARY_PACKED" for name, of in types.items() if pa.types.is_integer(of)}
    encoding = whole | {name: "BYTE_STREAM_SPLIT" for name, of in types.items() if pa.types.is_floating(of)}
    content = pa.BufferOutputStream()
    with pa.parquet.ParquetWriter(
        content,
        schema,
        use_dictionary=[name for name in types if name not in encoding],
        column_encoding=encoding,
        write_statistics=[*whole],
        write_page_checksum=True,
    ) as output:
        if rows is not None:
            output.write_table(rows, row_group_size=GROUP)
    return memoryview(content.getvalue())


def _footer_of(file: memoryview) -> tuple[_Struct, int]:
    """Parse the footer of a complete file; returns it and its offset."""
    begin = len(file) - 8 - struct.unpack("<I", file[-8:-4])[0]
    fields: _Struct = _get(BytesIO(file[begin:-8]), _STRUCT)
    return fields, begin


def _get(file: BytesIO, kind: int) -> Any:
    """Read a value of a type."""
    if kind in _INTEGERS:
        number = _get_unsigned(file)
        return (number >> 1) ^ -(number & 1)
    if kind == _BINARY:
        return file.read(_get_unsigned(file))
    if kind == _LIST:
        head = file.read(1)[0]
        count = head >> 4 if head >> 4 < 15 else _get_unsigned(file)
        return head & 15, [_get(file, head & 15) for _ in range(count)]
    if kind == _STRUCT:
        fields, number = {}, 0
        while head := file.read(1)[0]:
            number += head >> 4
            fields[number] = (head & 15, _get(file, head & 15))
        return fields
    return file.read(_BYTES[kind])


def _put(file: BytesIO, kind: int, value: Any) -> None:
    """Write a value of a type; the numbers of fields that follow each other differ by less than 16."""
    if kind in _INTEGERS:
        _put_unsigned(file, (value << 1) ^ (value >> 63))
    elif kind == _BINARY:
        _put_unsigned(file, len(value))
        file.write(value)
    elif kind == _LIST:
        of, listed = value
        file.write(bytes([min(len(listed), 15) << 4 | of]))
        if len(listed) >= 15:
            _put_unsigned(file, len(listed))
        for each in listed:
            _put(file, of, each)
    elif kind == _STRUCT:
        before = 0
        for number, (of, each) in sorted(value.items()):
            file.write(bytes([(number - before) << 4 | of]))
            _put(file, of, each)
            before = number
        file.write(b"\0")
    else:
        file.write(value)


def _get_unsigned(file: BytesIO) -> int:
    value = shift = 0
    while (byte := file.read(1)[0]) > 127:
        value, shift = value | (byte & 127) << shift, shift + 7
    return value | byte << shift


def _put_unsigned(file: BytesIO, value: int) -> None:
    while value > 127:
        file.write(bytes([value & 127 | 128]))
        value >>= 7
    file.write(bytes([value]))
