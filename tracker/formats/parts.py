"""A Parquet output that is made part by part, so that an interrupted run can go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from ..detections import Detections
from ..errors import InputError, SettingsError
from ..tracks import Tracks
from . import table
from .arrow import column_of, integers_of
from .atomic import move_whole, refuse_output, write_whole
from .parquet import RECORD, writer
from .records import record_bytes

_FACTS = b"outbid.part"
_WHOLE = "whole.parquet"
_STOP = -1


class Parts:
    """The parts of an output that are there, in a folder beside it with ``.parts`` after its name.

    Each is a file of plain columns, quickly written. As a context, a thread writes the output of them as
    they come; it stands in that folder until all are there.

    Parameters
    ----------
    output : Path
        The Parquet file that they will be.
    record : mapping
        Its run record; parts of a run with another one are never used.
    overwrite, resume : bool
        Whether the output may be there already, and whether parts of an earlier run may.

    Raises
    ------
    SettingsError
        If the output may not be written; or there are parts that are not to be resumed, or none that can.
    """

    def __init__(self, output: Path, record: Mapping[str, object], *, overwrite: bool, resume: bool) -> None:
        refuse_output(output, overwrite=overwrite)
        self.output, self.overwrite = output, overwrite
        self.folder = output.with_name(output.name + ".parts")
        self._record, told = dict(record), record_bytes(record)
        run = self.folder / "run.json"
        if resume:
            if not run.is_file():
                raise SettingsError(f"There is nothing to resume: no {run}. Leave out --resume.")
            if run.read_bytes() != told:
                raise SettingsError(
                    f"{self.folder} is of a run with another input or other settings. Repeat those, or leave "
                    "out --resume and remove that folder."
                )
        elif self.folder.exists():
            raise SettingsError(
                f"{self.folder} is left of an interrupted run. Go on with it (--resume), or remove it."
            )
        else:
            self.folder.mkdir()
            write_whole(run, lambda file: file.write(told), overwrite=False)
        self.done = 0
        while self._path(self.done).is_file():
            self.done += 1
        for half in self.folder.glob("*.tmp"):  # of a run that was killed
            half.unlink()
        self._facts: list[dict[str, Any]] = []
        self._ready: SimpleQueue[int | None] = SimpleQueue()
        for number in range(self.done):
            self._ready.put(number)
        self._writer = ThreadPoolExecutor(1)

    def __enter__(self) -> Parts:
        self._writing = self._writer.submit(write_whole, self.folder / _WHOLE, self._write, overwrite=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop writing the output, unless it is complete; the parts stay."""
        self._ready.put(_STOP)
        self._writer.shutdown()

    def add(
        self, number: int, tracks: Tracks, track_id: NDArray[np.int64], skip: int, facts: Mapping[str, object]
    ) -> None:
        """Write the next part: the rows after the first `skip`, with track numbers of the whole movie."""
        if self._writing.done():
            self._writing.result()  # says why, such as a disk that is full
        rows = table.table_of_tracks(tracks)
        rows = rows.set_column(0, "track_id", column_of(track_id))[skip:]
        rows = rows.replace_schema_metadata({_FACTS: json.dumps(dict(facts)).encode()})

        def write(file: BinaryIO) -> None:
            with pa.ipc.new_file(file, rows.schema) as part:
                part.write_table(rows)

        write_whole(self._path(number), write, overwrite=False)
        self._ready.put(number)

    def track_id(self, number: int, rows: int) -> NDArray[np.int64]:
        """Track numbers of a part that is there.

        Raises
        ------
        InputError
            If it has not so many rows.
        """
        found = self._read(number)["track_id"]
        if len(found) != rows:
            raise InputError(f"{self._path(number)} has {len(found)} rows, not {rows}. Remove {self.folder}.")
        return integers_of(found, -1)

    def join(self) -> list[dict[str, Any]]:
        """Make the output of all parts and remove them; returns the facts of each."""
        self._ready.put(None)
        self._writing.result()
        move_whole(self.folder / _WHOLE, self.output, overwrite=self.overwrite)
        shutil.rmtree(self.folder)
        return self._facts

    def _write(self, file: BinaryIO) -> None:
        """Write the output, part after part, as they come."""
        empty = table.table_of_tracks(Tracks(Detections.from_table([], []), np.empty((0, 2), np.int64)))
        number = self._ready.get()
        schema = (empty if number is None else self._read(number)).schema.remove_metadata()
        with writer(file, schema) as output:
            while number is not None:
                if number == _STOP:
                    raise InterruptedError("the parts are not all there")
                part = self._read(number)
                self._facts.append(json.loads(part.schema.metadata[_FACTS]))
                output.write_table(part.cast(schema))
                number = self._ready.get()
            fallbacks = sum(fact["fallbacks"] for fact in self._facts)
            record = record_bytes({**self._record, "fallbacks": fallbacks})
            output.add_key_value_metadata({RECORD: record})

    def _read(self, number: int) -> pa.Table:
        try:
            with pa.memory_map(str(self._path(number))) as file:
                return pa.ipc.open_file(file).read_all()
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self._path(number)}: {error}. Remove {self.folder} and begin anew.") from None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.arrow"
