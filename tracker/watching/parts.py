"""The output while it grows: parts that are only added, the state of the run, and a current table.

The parts are a folder that all commands read as one table. After each part the state is replaced: a run that
was killed goes on from there, and does the frames after it anew.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from ..formats import check_output
from ..formats.files.outputs import remove_folder, write_whole
from ..formats.files.records import record_bytes
from ..formats.tables.parquet import RECORD, calibration_in
from ..formats.tables.parquet_write import Packer
from ..formats.tables.parts import begin_folder
from ..particles import tables
from ..particles.arrow import column_of
from ..particles.detections import Detections
from .following import Followed
from .tail import Tail

_ROWS = 1 << 16
"""Guard: rows of a group of the current table, so that it is written without holding all of it."""
_SHARE = 20.0
"""Guard: the current table is replaced after so many times the seconds that its last writing took."""
_EVERY = 1.0
"""Guard: seconds from part to part, at least: frames that come faster share one."""
_STATE, EVENTS, STOP, ENDED = "state.npz", "events.jsonl", "stop", "ended"
_OWN = ("track_id", "frame", "z", "y", "x", "parent", "link_probability")
"""Columns of a part that are no features."""


class GrowingOutput:
    """The folder of parts beside an output, which is the current table until the end; a ``with`` block.

    Parameters
    ----------
    output : Path
        A Parquet file.
    record : mapping
        What is done, with which settings: only the same goes on with an earlier folder.
    overwrite : bool
        Whether an output of another run may be replaced.

    Raises
    ------
    SettingsError
        If the output exists, or the folder is of a run with other settings.
    """

    def __init__(self, output: Path, record: Mapping[str, object], *, overwrite: bool) -> None:
        self.output, self._record = output, dict(record)
        self.folder = live_folder(output)
        goes_on = self.folder.is_dir()
        check_output(output, overwrite=overwrite or goes_on)
        self._locks = ExitStack()
        begin_folder(self.folder, self._record, self._locks, resume=goes_on)
        self.state = self._read_state()
        self._parts = int(self.state["parts"]) if self.state else 0
        for part in self.folder.glob("part-*.parquet"):
            if int(part.stem.removeprefix("part-")) >= self._parts:
                part.unlink()
        self._tail = Tail(self.folder)
        for left in (self.folder / STOP, *self.folder.glob("tail-*.bin")):
            left.unlink(missing_ok=True)
        self._schema: pa.Schema | None = None
        if self._parts:
            self._schema = pa.parquet.read_schema(self._part(0))
        self._waiting: list[Followed] = []
        self._written, self._table_due = 0.0, 0.0
        self._table_parts = 0

    def __enter__(self) -> GrowingOutput:
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder.exists() and not (self._parts or self.spool.exists() or self.ended):
            remove_folder(self.folder)  # for example, there was nothing to follow
        self._locks.close()

    @property
    def spool(self) -> Path:
        """Where rows from stdin are kept."""
        return self.folder / "stdin.csv"

    @property
    def events(self) -> Path:
        """The log of events."""
        return self.folder / EVENTS

    @property
    def ended(self) -> bool:
        """Whether the recording had ended, so that only the last pass is left."""
        return (self.folder / ENDED).exists()

    @property
    def is_stopped(self) -> bool:
        """Whether who looks on asked to end the recording."""
        return (self.folder / STOP).exists()

    @property
    def live(self) -> dict[str, Any]:
        """What happened until the recording had ended."""
        return json.loads((self.folder / ENDED).read_text("utf-8"))

    def end(self, live: Mapping[str, Any]) -> None:
        """State that the recording has ended, and what happened until then."""
        content = json.dumps(live).encode()
        write_whole(self.folder / ENDED, lambda file: file.write(content), overwrite=True)

    def took(self, frame: int, image: int, behind: int) -> None:
        """Note for who looks on that a frame was taken; see `Tail`."""
        self._tail.took(self._parts, frame, image, behind)

    def add(self, frames: list[Followed]) -> None:
        """Frames for the next part."""
        self._waiting += frames
        for one in frames:
            self._tail.linked(self._parts, one)

    def is_due(self) -> bool:
        """Whether there is something to write, and the last part is old enough."""
        return bool(self._waiting) and time.monotonic() > self._written + _EVERY

    def commit(self, state: Mapping[str, NDArray]) -> None:
        """Write a part of the frames that wait, and the state after them."""
        if not self._waiting:
            return
        rows = self._table()
        write_whole(self._part(self._parts), lambda file: self._pack(file, [rows]), overwrite=True)
        self._parts += 1
        content = io.BytesIO()
        arrays: dict[str, Any] = {**state, "parts": np.array(self._parts)}
        np.savez(content, **arrays)
        write_whole(self.folder / _STATE, lambda file: file.write(content.getvalue()), overwrite=True)
        self._waiting, self._written = [], time.monotonic()
        self._tail.drop(self._parts - 2)  # who looks on has a second for the latest

    def refresh(self, *, now: bool = False) -> None:
        """Replace the current table by all parts, unless its last writing was just before."""
        if self._table_parts == self._parts or not (now or time.monotonic() >= self._table_due):
            return
        begin = time.monotonic()
        write_whole(self.output, lambda file: self._pack(file, self._all_rows()), overwrite=True)
        end = time.monotonic()
        self._table_parts, self._table_due = self._parts, end + max(_SHARE * (end - begin), _EVERY)

    def frames(self) -> Iterator[Followed]:
        """The frames of all parts that have detections, one after the other."""
        for number in range(self._parts):
            yield from frames_of(self._part(number))

    def remove(self) -> None:
        """Remove the folder, after the last pass."""
        remove_folder(self.folder)

    def _table(self) -> pa.Table:
        """The rows of the frames that wait."""
        seen = Detections.joined([one.detections for one in self._waiting])
        track, parent, probability = (
            np.concatenate([getattr(one, name) for one in self._waiting])
            for name in ("track", "parent", "probability")
        )
        own = {"track_id": column_of(track)} | tables.place_columns(seen)
        own["parent"] = column_of(parent, parent < 0)
        after = {"link_probability": column_of(probability, np.isnan(probability))}
        rows = tables.together(own, seen, after)
        if self._schema is None:
            self._schema = rows.schema.with_metadata({RECORD: record_bytes(self._record)})
        return pa.table({name: _cast(rows, name, self._schema) for name in self._schema.names}, self._schema)

    def _pack(self, file: BinaryIO, pieces: Any) -> None:
        assert self._schema is not None
        with Packer(file, self._schema) as output:
            for rows in pieces:
                output.add(rows)

    def _all_rows(self) -> Iterator[pa.Table]:
        """The rows of all parts, some at a time."""
        pieces: list[pa.Table] = []
        for number in range(self._parts):
            pieces.append(pa.parquet.read_table(self._part(number)))
            if sum(map(len, pieces)) >= _ROWS or number == self._parts - 1:
                yield pa.concat_tables(pieces)
                pieces = []

    def _read_state(self) -> dict[str, NDArray]:
        with suppress(FileNotFoundError), np.load(self.folder / _STATE, allow_pickle=False) as kept:
            return dict(kept)
        return {}

    def _part(self, number: int) -> Path:
        return part_of(self.folder, number)


def live_folder(output: Path) -> Path:
    """The folder of parts beside an output."""
    return output.with_name(f"{output.stem}.live.parquet")


def part_of(folder: Path, number: int) -> Path:
    """The file of a part."""
    return folder / f"part-{number:06d}.parquet"


def frames_of(path: Path) -> Iterator[Followed]:
    """The frames of a part that have detections, one after the other."""
    rows = pa.parquet.read_table(path)
    names = [name for name in rows.column_names if name not in _OWN]
    seen = Detections(
        rows["frame"].to_numpy(), np.column_stack([rows[axis].to_numpy() for axis in "zyx"]),
        calibration_in(path), {name: rows[name].to_numpy() for name in names},
    )  # fmt: skip
    track, probability = rows["track_id"].to_numpy(), rows["link_probability"].to_numpy()
    parent = rows["parent"].fill_null(-1).to_numpy()
    for frame in np.unique(seen.frame).tolist():
        own = seen.rows_of(frame)
        yield Followed(frame, seen.take(own), track[own], probability[own], parent[own])


def _cast(rows: pa.Table, name: str, schema: pa.Schema) -> pa.ChunkedArray | pa.Array:
    """A column as the first part has it; missing values where it is not there."""
    kind = schema.field(name).type
    return rows[name].cast(kind) if name in rows.column_names else pa.nulls(len(rows), kind)
