"""Tables packed as Parquet by threads, a row group each, while another brings to the disk what is packed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from .parquet_footer import MAGIC, footer_of

GROUP = 1 << 20
"""Rows that are packed as one group, and then brought to the disk."""
_THREADS = min(os.cpu_count() or 1, 4)
"""Groups that are packed at the same time; each takes some seventy megabytes."""


@contextmanager
def packed(file: BinaryIO, schema: pa.Schema) -> Iterator[tuple[Packer, Callable[[pa.Table], None]]]:
    """What packs rows into a file, and its method that adds them.

    The bytes are the same for any number of threads. What goes wrong in a thread is raised when more rows
    are added, or at the end.
    """
    packer = Packer(file, schema)
    try:
        yield packer, packer.add
        packer.finish()
    finally:
        packer.stop()


class Packer:
    """Packs rows into a Parquet file.

    Parameters
    ----------
    file : file
        Open for writing, at its begin.
    schema : pyarrow.Schema
        Of the rows; its metadata are the file's.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._file, self._schema = file, schema
        self._footer, _ = footer_of(_file_of(None, schema))
        self._pack, self._disk = ThreadPoolExecutor(_THREADS), ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self._place = len(MAGIC)
        self._waiting.append(self._disk.submit(_put, file, MAGIC))

    def add(self, rows: pa.Table) -> None:
        """Add rows, in groups of `GROUP` and one of what is left."""
        for begin in range(0, len(rows), GROUP):
            while len(self._waiting) > _THREADS or (self._waiting and self._waiting[0].done()):
                self._waiting.popleft().result()
            packing = self._pack.submit(_file_of, rows[begin : begin + GROUP], self._schema)
            more = begin + GROUP < len(rows)
            self._waiting.append(self._disk.submit(self._write, packing, more))

    def note(self, notes: Mapping[bytes, bytes]) -> None:
        """Add keys with values to the file's metadata."""
        self._footer.note(notes)

    def finish(self) -> None:
        """Wait until all is written, and write the footer."""
        while self._waiting:
            self._waiting.popleft().result()
        self._file.write(self._footer.to_bytes())

    def stop(self) -> None:
        """End the threads; what is not packed is left out."""
        for pool in (self._pack, self._disk):
            pool.shutdown(cancel_futures=True)

    def _write(self, packing: Future[memoryview], more: bool) -> None:
        """Write a group behind those before; and bring it to the disk, if more will follow."""
        packed_group = packing.result()
        footer, end = footer_of(packed_group)
        _put(self._file, packed_group[len(MAGIC) : end])
        self._footer.add(footer, self._place)
        self._place += end - len(MAGIC)
        if more:
            os.fsync(self._file.fileno())


def _put(file: BinaryIO, content: bytes | memoryview) -> None:
    file.write(content)


def _file_of(rows: pa.Table | None, schema: pa.Schema) -> memoryview:
    """A Parquet file of one group, or of none."""
    content = pa.BufferOutputStream()
    with _writer(content, schema) as output:
        if rows is not None:
            output.write_table(rows, row_group_size=GROUP)
    return memoryview(content.getvalue())


def _writer(file: pa.NativeFile, schema: pa.Schema) -> pa.parquet.ParquetWriter:
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
