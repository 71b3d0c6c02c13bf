"""Tables packed as Parquet, while a thread brings to the disk what is packed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import RawIOBase
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

GROUP = 1 << 20
"""Rows that are packed as one group, and then brought to the disk."""
_PIECES = 256
"""Pages that may wait for the disk, of a megabyte or less."""


@contextmanager
def packed(
    file: BinaryIO, schema: pa.Schema
) -> Iterator[tuple[pa.parquet.ParquetWriter, Callable[[pa.Table], None]]]:
    """A writer to a file, and what adds rows to it.

    What is packed is brought to the disk by a thread while more is packed: else packing would wait for the
    disk, and the end of a large file for all of it.
    """
    with _Behind(file) as behind, _writer(behind, schema) as output:

        def add(rows: pa.Table) -> None:
            for begin in range(0, len(rows), GROUP):
                output.write_table(rows[begin : begin + GROUP])
                if begin + GROUP < len(rows):
                    behind.sync()

        yield output, add


class _Behind(RawIOBase):
    """A file to which a thread writes; what goes wrong there is raised at the next write, or at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._disk = ThreadPoolExecutor(1)
        self._waiting: deque[Future[object]] = deque()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        # Arrow ends a file that failed when that is removed from memory: in whatever other call, which may
        # hold the lock that giving work to a thread takes.
        if self.closed:
            raise ValueError("it is closed")
        data = bytes(data)  # itself, if it is bytes
        self._do(self._file.write, data)
        return len(data)

    def sync(self) -> None:
        self._do(lambda: os.fsync(self._file.fileno()))

    def close(self) -> None:
        """Wait until all is written."""
        try:
            while self._waiting:
                self._waiting.popleft().result()
        finally:
            self._disk.shutdown(cancel_futures=True)
            super().close()

    def _do(self, work: Callable[..., object], *given: bytes) -> None:
        while self._waiting and (self._waiting[0].done() or len(self._waiting) > _PIECES):
            self._waiting.popleft().result()
        self._waiting.append(self._disk.submit(work, *given))


def _writer(file: RawIOBase, schema: pa.Schema) -> pa.parquet.ParquetWriter:
    """What writes tables to a file: whole numbers as differences, others byte by byte, text by a dictionary.

    Track numbers and frames grow slowly, and positions have bytes that repeat; against the usual dictionaries
    that is half of the time and three quarters of the size. Least and largest values are written of what
    readers skip rows by.
    """
    types = {field.name: field.type for field in schema}
    encoding = {name: "DELTA_BINARY_PACKED" for name, of in types.items() if pa.types.is_integer(of)}
    skipped_by = list(encoding)
    encoding |= {name: "BYTE_STREAM_SPLIT" for name, of in types.items() if pa.types.is_floating(of)}
    return pa.parquet.ParquetWriter(
        file,
        schema,
        use_dictionary=[name for name in types if name not in encoding],
        column_encoding=encoding,
        write_statistics=skipped_by,
        write_page_checksum=True,
    )
