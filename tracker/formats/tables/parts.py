"""A Parquet output that is written part by part, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from queue import Full, Queue
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from ...compute.timing import lap, timed_beside
from ...errors import InputError, SettingsError
from ...particles.arrow import column_of, integers_of
from ...particles.detections import Detections
from ...particles.tracks import Tracks
from ..files.outputs import (
    locked_here,
    move_whole,
    refuse_output,
    remove_folder,
    remove_leftovers,
    write_whole,
    write_whole_folder,
)
from ..files.records import record_bytes, record_from
from . import table
from .parquet import RECORD
from .parquet_write import Packer

_FACTS = b"outbid.part"
_WHOLE = "whole.parquet"
_RUN, _LOCK = "run.json", "process"
DRAFT = {"draft": True}
"""Part of the record of a run whose input is not hashed yet."""


class Parts:
    """The finished parts of an output, in a folder beside it with the suffix ``.parts``.

    Each part is a small file with the columns that the input lacks. Within a ``with`` block, a thread writes
    the output, a Parquet file, from the parts as they arrive; it stays in that folder until it is complete.
    Parts of an earlier run with the same record are used if `resume` is true.

    Raises
    ------
    SettingsError
        If the output must not be written; if there are parts but `resume` is false; or if `resume` is true
        but there are no parts of the same run.
    """

    def __init__(self, output: Path, record: Mapping[str, object], *, overwrite: bool, resume: bool) -> None:
        refuse_output(output, overwrite=overwrite)
        self.output, self.overwrite = output, overwrite
        self.folder = output.with_name(output.name + ".parts")
        self._record = dict(record)
        with ExitStack() as locks:
            begin_folder(self.folder, self._record, locks, resume=resume)
            self._locks = locks.pop_all()
        self.done = 0
        while self._path(self.done).is_file():
            self.done += 1
        self.facts: list[dict[str, Any]] = []
        self._ready: Queue[pa.Table | Mapping[str, object] | None] = Queue(1)
        self._pool, self._files = ThreadPoolExecutor(2), ThreadPoolExecutor(1)
        self._adding: Future[None] | None = None
        self._keeping: Future[None] | None = None

    def __enter__(self) -> Parts:
        write = partial(write_whole, self.folder / _WHOLE, self._write, overwrite=True)
        self._writing = self._pool.submit(timed_beside(write))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop writing an incomplete output; the parts are kept, and an empty folder is removed."""
        with suppress(Exception):  # its error was raised before, or another error is being raised
            self._hand_over(None)
        self._pool.shutdown()  # first, for its threads use the others
        self._files.shutdown()
        if self.folder.exists() and not self._path(0).is_file():  # for example, an input was refused at once
            remove_folder(self.folder)
        self._locks.close()

    def add(self, number: int, tracks: Tracks, track_id: NDArray[np.int64], facts: Mapping[str, Any]) -> None:
        """Write the next part: further rows of the tracks, with their track numbers in the whole movie.

        The columns that the input lacks go to the file of the part, all columns to the output.
        """
        self.facts.append(dict(facts))
        if self._adding is not None:
            self._adding.result()  # raises here if the previous part could not be written
        self._adding = self._pool.submit(timed_beside(self._add), number, tracks, track_id, self.facts[-1])

    def repeat(self, number: int, detections: Detections) -> NDArray[np.int64]:
        """Write an existing part to the output, with its detections; returns its track numbers.

        Raises InputError if the part has a different number of rows.
        """
        own, rows = self._read(number), table.table_of(detections)
        if len(own) != len(rows):
            raise InputError(
                f"{self._path(number)} has {len(own)} rows, not {len(rows)}. Remove {self.folder}."
            )
        self.facts.append(json.loads(own.schema.metadata[_FACTS]))
        for name in own.column_names[1:]:
            rows = rows.append_column(own.field(name), own[name])
        self._hand_over(rows.add_column(0, own.field(0), own[0]))
        return integers_of(own[0], -1)

    def join(self, report: Mapping[str, object]) -> None:
        """Complete the output and remove the parts; the report of the run is added to its record."""
        for last in (self._adding, self._keeping):
            if last is not None:
                last.result()
        self._hand_over({**self._record, **report})
        self._writing.result()
        move_whole(self.folder / _WHOLE, self.output, overwrite=self.overwrite)
        remove_folder(self.folder)

    def _hand_over(self, what: pa.Table | Mapping[str, object] | None) -> None:
        """Pass rows, the record or an end mark to the thread that writes the output."""
        while not self._writing.done():
            try:
                return self._ready.put(what, timeout=0.5)
            except Full:
                continue
        return self._writing.result()  # raises the reason, such as a full disk

    def _add(self, number: int, tracks: Tracks, track_id: NDArray[np.int64], facts: dict[str, Any]) -> None:
        """See `add`."""
        rows = table.table_of(tracks)[len(tracks.detections) - len(track_id) :]
        rows = rows.set_column(0, "track_id", column_of(track_id))
        own = rows.select(["track_id", *tracks.measures])
        own = own.replace_schema_metadata({_FACTS: json.dumps(facts).encode()})

        def write(file: BinaryIO) -> None:
            with pa.ipc.new_file(file, own.schema) as part:
                part.write_table(own)

        def write_part() -> None:
            write_whole(self._path(number), write, overwrite=False)
            lap("parts")

        lap("table")
        if self._keeping is not None:
            self._keeping.result()  # at most one part waits for the disk while the next is made
        self._keeping = self._files.submit(timed_beside(write_part))
        self._hand_over(rows)
        lap("waiting")

    def _write(self, file: BinaryIO) -> None:
        """Write the output, part by part, as the parts arrive."""
        lap("waiting")
        rows = self._ready.get()
        empty = table.table_of(Tracks(Detections.from_table([], []), np.empty((0, 2), np.int64)))
        schema = (rows if isinstance(rows, pa.Table) else empty).schema
        with Packer(file, schema) as output:
            while isinstance(rows, pa.Table):
                lap("waiting")
                output.add(rows.cast(schema))
                lap("output")
                rows = self._ready.get()
            if rows is None:
                raise InterruptedError("the parts are not all there")
            output.note({RECORD: record_bytes(rows)})

    def _read(self, number: int) -> pa.Table:
        try:
            with pa.memory_map(str(self._path(number))) as file:
                return pa.ipc.open_file(file).read_all()
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self._path(number)}: {error}. Remove {self.folder} and begin anew.") from None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.arrow"


def begin_folder(folder: Path, record: Mapping[str, object], locks: ExitStack, *, resume: bool) -> None:
    """Lock a folder of parts with the record of this run: that of an earlier run, or a new one.

    A folder whose record is a draft (`DRAFT`) is emptied, for nobody knows of which input its files are.

    Raises SettingsError if there are parts of another run, parts that must not be resumed, or none to resume.
    """
    content, run = record_bytes(record), folder / _RUN
    remove_leftovers(folder)
    if resume and not folder.exists():
        raise SettingsError(f"There is nothing to resume: no {folder}. Leave out --resume.")
    if not folder.exists():

        def write(made: Path) -> None:
            made.mkdir()
            (made / run.name).write_bytes(content)

        write_whole_folder(folder, write, overwrite=False, foreign=lambda _: None)
        resume = True
    if not run.is_file():
        raise SettingsError(
            f"{folder} is in the way and is of no interrupted run: it has no {run.name}. Remove it, "
            "or choose another name for the output."
        )
    locks.enter_context(locked_here(folder / _LOCK))
    if _is_draft(run):
        for file in folder.iterdir():
            if file.name not in (_RUN, _LOCK):
                file.unlink()
        complete_record(folder, record)
        return
    if not resume:
        raise SettingsError(
            f"{folder} is left of an interrupted run. Go on with it (--resume), or remove it."
        )
    if run.read_bytes() != content:
        raise SettingsError(
            f"{folder} is of a run with another input or other settings. Repeat those, or leave "
            "out --resume and remove that folder."
        )


def _is_draft(run: Path) -> bool:
    with suppress(InputError):
        return record_from(run.read_bytes(), run).items() >= DRAFT.items()
    return False


def complete_record(folder: Path, record: Mapping[str, object]) -> None:
    """Replace the record of a run in its folder, which was a draft."""
    content = record_bytes(record)
    write_whole(folder / _RUN, lambda file: file.write(content), overwrite=True)
