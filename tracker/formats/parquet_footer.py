"""Merge the footers of Parquet files, so that threads can compress row groups of one file in parallel.

Each row group is first written as a separate small file. Its bytes are copied into the output, and its entry
in the small footer moves to the common footer with corrected offsets. Footers use Thrift's compact protocol
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md), with the field numbers of
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift. Fields that need no
change are copied unread.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_ROWS, _GROUPS, _NOTES = 3, 4, 5
"""Fields of a footer: number of rows, row groups, key-value metadata."""
_COLUMNS, _GROUP_ROWS, _GROUP_PLACE, _NUMBER = 1, 3, 5, 7
"""Fields of a row group."""
_CHUNK_PLACE, _CHUNK = 2, 3
_PLACES = (9, 10, 11)
"""Fields of a column: offsets of data, index and dictionary."""
_MOST_NUMBERED = 1 << 15
"""Largest number of row groups with ordinals, which have 16 bits."""

Struct = dict[int, tuple[int, Any]]
"""Fields of a struct: type and value by number."""


@dataclass
class Footer:
    """The footer of a file to which row groups are added."""

    fields: Struct

    def add(self, group: Footer, place: int) -> None:
        """Add the row groups of a small file whose data were copied to offset `place`."""
        for each in group.fields[_GROUPS][1][1]:
            listed = self.fields[_GROUPS][1][1]
            _move(each, place - len(MAGIC))
            if len(listed) < _MOST_NUMBERED:
                each[_NUMBER] = (_I16, len(listed))
            else:
                each.pop(_NUMBER, None)
            listed.append(each)
            self.fields[_ROWS] = (_I64, self.fields[_ROWS][1] + each[_GROUP_ROWS][1])

    def note(self, notes: Mapping[bytes, bytes]) -> None:
        """Add key-value metadata."""
        _, listed = self.fields.setdefault(_NOTES, (_LIST, (_STRUCT, [])))[1]
        listed += [{1: (_BINARY, key), 2: (_BINARY, value)} for key, value in notes.items()]

    def to_bytes(self) -> bytes:
        """The last bytes of the file: footer, its length and the signature."""
        content = bytearray()
        _put_struct(content, dict(sorted(self.fields.items())))
        return bytes(content) + struct.pack("<I", len(content)) + MAGIC


def footer_of(file: bytes | memoryview) -> tuple[Footer, int]:
    """Parse the footer of a complete file; returns it and its offset."""
    size = struct.unpack("<I", file[-8:-4])[0]
    begin = len(file) - 8 - size
    return Footer(_Reader(bytes(file[begin:-8])).struct()), begin


def _move(group: Struct, by: int) -> None:
    if group.get(_GROUP_PLACE, (_I64, 0))[1]:
        group[_GROUP_PLACE] = (_I64, group[_GROUP_PLACE][1] + by)
    for chunk in group[_COLUMNS][1][1]:
        if chunk[_CHUNK_PLACE][1]:
            chunk[_CHUNK_PLACE] = (_I64, chunk[_CHUNK_PLACE][1] + by)
        column = chunk[_CHUNK][1]
        for name in _PLACES:
            if name in column:
                column[name] = (_I64, column[name][1] + by)


class _Reader:
    """A reader of Thrift's compact protocol."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while head := self._take(1)[0]:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = (kind, self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:
                return None  # for booleans, the type is the value
            case 3:
                return self._take(1)
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return self._take(8)
            case 8:
                return self._take(self._unsigned())
            case 9 | 10:
                head = self._take(1)[0]
                of, count = head & 15, head >> 4
                if count == 15:
                    count = self._unsigned()
                return of, [self._take(1) if of < _BYTE else self._value(of) for _ in range(count)]
            case 12:
                return self.struct()
        raise ValueError(f"a footer holds type {kind}")

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._content[self._at - count : self._at]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)


def _put_struct(content: bytearray, fields: Struct) -> None:
    before = 0
    for number, (kind, value) in fields.items():
        if 0 < number - before < 16:
            content.append((number - before) << 4 | kind)
        else:
            content.append(kind)
            _put_signed(content, number)
        _put(content, kind, value)
        before = number
    content.append(0)


def _put(content: bytearray, kind: int, value: Any) -> None:
    match kind:
        case 3 | 7:
            content += value
        case 4 | 5 | 6:
            _put_signed(content, value)
        case 8:
            _put_unsigned(content, len(value))
            content += value
        case 9 | 10:
            of, listed = value
            content.append(min(len(listed), 15) << 4 | of)
            if len(listed) >= 15:
                _put_unsigned(content, len(listed))
            for each in listed:
                _put(content, max(of, _BYTE), each)
        case 12:
            _put_struct(content, value)


def _put_signed(content: bytearray, value: int) -> None:
    _put_unsigned(content, (value << 1) ^ (value >> 63))


def _put_unsigned(content: bytearray, value: int) -> None:
    while value > 127:
        content.append(value & 127 | 128)
        value >>= 7
    content.append(value)
