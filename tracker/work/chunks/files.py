"""Files of a run in chunks: their paths, and writing them atomically."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from ...compute.threads import begun
from ...formats.files.outputs import write_whole
from ...formats.files.records import record_bytes
from ...formats.tables.parquet import RECORD, rows_between
from ...formats.tables.parquet_write import GROUP, Packer
from ...formats.tables.parts import complete_record
from ...particles.detections import Detections

WRITERS = 8
"""Files that one process writes at the same time: each waits for the disk."""


@dataclass(frozen=True)
class ChunkFiles:
    """The paths that the tasks of a movie read and write, and their number of threads.

    Parameters
    ----------
    source : str
        Parquet with the detections of the movie.
    folder : str
        Of the files that tasks write.
    columns : tuple of (str, str)
        As for `outbid.read_detections`.
    threads : int
    """

    source: str
    folder: str
    columns: tuple[tuple[str, str], ...] = ()
    threads: int = 1

    def rows(self, begin: int, end: int) -> Detections:
        """Read a chunk of rows of the movie."""
        return rows_between(Path(self.source), begin, end, dict(self.columns))


def links_file(folder: Path, number: int) -> Path:
    """Path of the file that `LinkChunk` writes."""
    return folder / f"links-{number:06d}.npz"


def numbers_file(folder: Path, number: int) -> Path:
    """Path of the file that passes the results of other chunks of frames to `WriteChunk`."""
    return folder / f"numbers-{number:06d}.npz"


def part_file(folder: Path, number: int) -> Path:
    """Path of a part of the output."""
    return folder / f"part-{number:06d}.parquet"


def join_parts(parts: Sequence[Path], output: Path, record: Mapping[str, object], *, overwrite: bool) -> None:
    """Join parts to one Parquet file, with the same bytes as if all rows had been written at once.

    Raises
    ------
    OSError
        If the disk is full; nothing has changed then.
    """

    def write(file: BinaryIO) -> None:
        schema = pa.parquet.read_schema(parts[0]).with_metadata({RECORD: record_bytes(record)})
        with Packer(file, schema) as packer:
            waiting = schema.empty_table()
            for part in parts:
                rows = pa.parquet.read_table(part, use_threads=False).replace_schema_metadata(schema.metadata)
                waiting = pa.concat_tables([waiting, rows.cast(schema)])
                whole = len(waiting) - len(waiting) % GROUP
                if whole:
                    packer.add(waiting[:whole].combine_chunks())
                    waiting = waiting[whole:]
            if len(waiting):
                packer.add(waiting.combine_chunks())

    write_whole(output, write, overwrite=overwrite)


@contextmanager
def recorded_beside(
    draft: Path | None, record: Callable[[], dict[str, object]], extent: Mapping[str, object]
) -> Iterator[Future[dict[str, object]]]:
    """Make the record of a run in a thread; yields what will be the record.

    Parameters
    ----------
    draft : Path or None
        A folder in which the record, with its `extent`, then replaces a draft, unless the block has ended.
    record : callable
        Returns the record, after it has waited for the hash of the input.
    extent : mapping
        What of the options changes the files in the folder.
    """
    ended = Event()

    def complete() -> dict[str, object]:
        found = record()
        if draft is not None and not ended.is_set():
            complete_record(draft, found | dict(extent))
        return found

    try:
        yield begun(complete)
    finally:
        ended.set()


def written(path: Path, write: Callable[[BinaryIO], object], rows: int, begun: float) -> dict[str, Any]:
    """Write a file atomically, and return which worker wrote it."""
    write_whole(path, write, overwrite=True)
    where = f"{platform.node()}:{os.getpid()}"
    return {"file": path.name, "rows": rows, "process": where, "begun": begun, "ended": time.time()}


def save_arrays(file: BinaryIO, arrays: Mapping[str, NDArray]) -> None:
    """Write arrays with their names."""
    np.savez(file, **arrays)  # type: ignore[arg-type]  # they are names of arrays


def save_rows(file: BinaryIO, rows: pa.Table) -> None:
    """Write a table as Parquet."""
    with Packer(file, rows.schema) as output:
        output.add(rows)
