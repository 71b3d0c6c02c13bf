"""A Parquet output that is made part by part, so that an interrupted run can go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from ..detections import Detections
from ..errors import InputError, SettingsError
from ..tracks import Tracks
from . import table
from .arrow import column_of, integers_of
from .atomic import refuse_output, write_whole
from .parquet import RECORD, repeating
from .records import record_bytes

_FACTS = b"outbid.part"


class Parts:
    """The parts of an output that are there, in a folder beside it with ``.parts`` after its name.

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
        self._record = record_bytes(record)
        run = self.folder / "run.json"
        if resume:
            if not run.is_file():
                raise SettingsError(f"There is nothing to resume: no {run}. Leave out --resume.")
            if run.read_bytes() != self._record:
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
            write_whole(run, lambda file: file.write(self._record), overwrite=False)
        self.done = 0
        while self._path(self.done).is_file():
            self.done += 1

    def add(
        self, number: int, tracks: Tracks, track_id: NDArray[np.int64], skip: int, facts: Mapping[str, object]
    ) -> None:
        """Write the next part: the rows after the first `skip`, with track numbers of the whole movie."""
        rows = table.table_of_tracks(tracks)
        rows = rows.set_column(0, "track_id", column_of(track_id))[skip:]
        rows = rows.replace_schema_metadata({_FACTS: json.dumps(dict(facts)).encode()})
        write_whole(self._path(number), lambda file: pa.parquet.write_table(rows, file), overwrite=False)

    def track_id(self, number: int, rows: int) -> NDArray[np.int64]:
        """Track numbers of a part that is there.

        Raises
        ------
        InputError
            If it has not so many rows.
        """
        try:
            found = pa.parquet.read_table(self._path(number), columns=["track_id"])["track_id"]
        except (pa.ArrowException, OSError, KeyError) as error:
            raise InputError(f"{self._path(number)}: {error}. Remove {self.folder} and begin anew.") from None
        if len(found) != rows:
            raise InputError(f"{self._path(number)} has {len(found)} rows, not {rows}. Remove {self.folder}.")
        return integers_of(found, -1)

    def join(self) -> list[dict[str, Any]]:
        """Make the output of all parts and remove them; returns the facts of each."""
        paths = [self._path(number) for number in range(len(list(self.folder.glob("*.parquet"))))]
        facts = [json.loads(pa.parquet.read_schema(path).metadata[_FACTS]) for path in paths]
        write_whole(self.output, lambda file: self._write(paths, file), overwrite=self.overwrite)
        shutil.rmtree(self.folder)
        return facts

    def _write(self, paths: list[Path], file: BinaryIO) -> None:
        empty = table.table_of_tracks(Tracks(Detections.from_table([], []), np.empty((0, 2), np.int64)))
        schema = pa.parquet.read_schema(paths[0]) if paths else empty.schema
        schema = schema.with_metadata({RECORD: self._record})
        with pa.parquet.ParquetWriter(
            file, schema, use_dictionary=repeating(schema.names), write_page_checksum=True
        ) as writer:
            for path in paths:
                writer.write_table(pa.parquet.read_table(path).cast(schema))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.parquet"
