"""A movie in ranges of frames: what each task does, in whatever process, and writes for those after it.

A task reads its own rows and the first frame of the next range, links, and writes a file with an atomic name;
a task that runs twice writes the same file again. Ranges end where runs of frames end that are solved
together anyway, so links, costs and margins are those of the whole movie, however many ranges there are.
`chains` joins the track numbers over the borders; then a second task for each range writes its rows.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from . import linking
from .arrow import column_of
from .batches import runs
from .extent import Part
from .formats.atomic import write_whole
from .formats.parquet import GROUP, RECORD, packed, rows_between
from .formats.records import record_bytes
from .formats.table import table_of_detections
from .jobs import DetectJob
from .tracking import TrackingSettings, gated_links

_MEASURES = ("link_cost", "link_margin")


class Task(Protocol):
    """Work that any process can do, and do again; its output is a file that appears whole."""

    @property
    def output(self) -> Path:
        """The file that it makes."""

    def __call__(self) -> dict[str, Any]:
        """Make the file; who did it, and how long it took."""


Runner = Callable[[Sequence[Task]], Iterator[dict[str, Any]]]
"""Does tasks somewhere and gives the account of each, in any order."""


def here(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """Do tasks in this process, one after the other."""
    for task in tasks:
        yield task()


@dataclass(frozen=True)
class Range:
    """Rows of a range of frames: its own are [begin, end), and [end, beyond) the first frame of the next."""

    number: int
    begin: int
    end: int
    beyond: int


def plan(frames: NDArray[np.int64], counts: NDArray[np.int64], rows: int) -> list[Range]:
    """Ranges of about so many rows, of whole runs of frames.

    Parameters
    ----------
    frames : (F,) int64 array
        Frames that hold rows, increasing.
    counts : (F,) int64 array
        Rows of each.
    rows : int

    Examples
    --------
    >>> found = plan(np.arange(4), np.array([40_000, 10_000, 30_000, 5]), rows=50_000)
    >>> [(each.begin, each.end, each.beyond) for each in found]
    [(0, 40000, 50000), (40000, 80005, 80005)]
    """
    if len(frames) == 0:
        return []
    since = frames - frames[0]
    size = np.zeros(int(since[-1]) + 1, dtype=np.int64)
    size[since] = counts
    start = np.concatenate([[0], np.cumsum(size)])
    found: list[Range] = []
    begin = 0
    for frame, last in runs(start, linking.RUN):
        at = int(start[frame])
        if at > begin and int(start[last + 1]) - begin > rows:
            found.append(Range(len(found), begin, at, int(start[frame + 1])))
            begin = at
    return [*found, Range(len(found), begin, int(start[-1]), int(start[-1]))]


@dataclass(frozen=True)
class LinkRange:
    """Link a range, and write what the others and the output need of it."""

    source: str
    folder: str
    range: Range
    settings: TrackingSettings
    columns: tuple[tuple[str, str], ...] = ()
    workers: int = 1

    @property
    def output(self) -> Path:
        return links_file(Path(self.folder), self.range.number)

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        own = self.range.end - self.range.begin
        seen = rows_between(Path(self.source), self.range.begin, self.range.beyond, dict(self.columns))
        links = gated_links(seen, replace(self.settings, max_gap=0), self.workers)[0]
        source, target = links.pairs.T
        inside = target < own
        first = int(np.searchsorted(seen.frame[:own], seen.frame[0], "right")) if own else 0
        values = np.stack([links.cost, links.margin])
        facts = {"links": len(links.pairs), "worst_gap": links.gap, **links.batches.as_dict()}
        held: dict[str, NDArray] = {
            "facts": np.frombuffer(json.dumps(facts).encode(), np.uint8),
            "first": np.array(first),
            "origin": _origin(links.pairs[inside], own, first),
            "into": target[inside],
            "into_values": values[:, inside],
            "onto": np.column_stack([source[~inside], target[~inside] - own]),
            "onto_values": values[:, ~inside],
        }
        if self.settings.max_gap:
            free = np.ones((2, own), dtype=bool)
            free[0, source] = False
            free[1, target[inside]] = False
            for name, rows in zip(("end", "start"), map(np.flatnonzero, free), strict=True):
                held |= {
                    f"{name}_row": rows,
                    f"{name}_frame": seen.frame[rows],
                    f"{name}_position": seen.position[rows],
                }
        return written(self.output, lambda file: save_arrays(file, held), own, begun)


@dataclass(frozen=True)
class WriteRange:
    """Write the rows of a range with their track numbers, as a part of the output."""

    source: str
    folder: str
    range: Range
    record: bytes
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def output(self) -> Path:
        return part_file(Path(self.folder), self.range.number)

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        own, folder = self.range.end - self.range.begin, Path(self.folder)
        seen = rows_between(Path(self.source), self.range.begin, self.range.end, dict(self.columns))
        held = np.load(links_file(folder, self.range.number))
        numbers = np.load(numbers_file(folder, self.range.number))
        origin = held["origin"]
        later = origin >= 0
        track_id = np.empty(own, dtype=np.int64)
        track_id[later] = numbers["later"][origin[later]]
        track_id[~later] = numbers["first"][-1 - origin[~later]]
        values, unknown = np.zeros((2, own)), np.ones(own, dtype=bool)
        for of in (held, numbers):
            values[:, of["into"]] = of["into_values"]
            unknown[of["into"]] = False
        rows = table_of_detections(seen).add_column(0, "track_id", column_of(track_id))
        for name, each in zip(_MEASURES, values, strict=True):
            rows = rows.append_column(name, column_of(each, unknown))
        rows = rows.replace_schema_metadata({RECORD: self.record})
        return written(self.output, lambda file: _pack(file, rows), own, begun)


@dataclass(frozen=True)
class DetectRange:
    """Find the spots of some frames of a movie, which the process opens itself."""

    source: str
    folder: str
    number: int
    frames: tuple[int, int]
    job: DetectJob

    @property
    def output(self) -> Path:
        return part_file(Path(self.folder), self.number)

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        first, end = self.frames
        part = Part(self.job.part.region, f"{first}:{end}", self.job.part.mask)
        found, _ = replace(self.job, part=part).detect(self.job.opening.open(self.source))
        rows = table_of_detections(found)
        return written(self.output, lambda file: _pack(file, rows), len(found), begun)


def links_file(folder: Path, number: int) -> Path:
    """What `LinkRange` writes."""
    return folder / f"links-{number:06d}.npz"


def numbers_file(folder: Path, number: int) -> Path:
    """What `WriteRange` needs of the other ranges."""
    return folder / f"numbers-{number:06d}.npz"


def part_file(folder: Path, number: int) -> Path:
    """Rows of the output."""
    return folder / f"part-{number:06d}.parquet"


def join_parts(parts: Sequence[Path], output: Path, record: Mapping[str, object], *, overwrite: bool) -> None:
    """One Parquet file of the parts, with the same bytes as if all rows had been written at once.

    Raises
    ------
    OSError
        If the disk is full; nothing has changed then.
    """

    def write(file: BinaryIO) -> None:
        schema = pa.parquet.read_schema(parts[0]).with_metadata({RECORD: record_bytes(record)})
        with packed(file, schema) as (_, add):
            waiting = schema.empty_table()
            for part in parts:
                rows = pa.parquet.read_table(part, use_threads=False).replace_schema_metadata(schema.metadata)
                waiting = pa.concat_tables([waiting, rows.cast(schema)])
                whole = len(waiting) - len(waiting) % GROUP
                if whole:
                    add(waiting[:whole].combine_chunks())
                    waiting = waiting[whole:]
            if len(waiting):
                add(waiting.combine_chunks())

    write_whole(output, write, overwrite=overwrite)


def written(path: Path, write: Callable[[BinaryIO], object], rows: int, begun: float) -> dict[str, Any]:
    """Write a file, and who did it."""
    write_whole(path, write, overwrite=True)
    where = f"{platform.node()}:{os.getpid()}"
    return {"file": path.name, "rows": rows, "process": where, "begun": begun, "ended": time.time()}


def save_arrays(file: BinaryIO, held: Mapping[str, NDArray]) -> None:
    """Write arrays with their names."""
    np.savez(file, **held)  # type: ignore[arg-type]  # they are names of arrays


def _pack(file: BinaryIO, rows: pa.Table) -> None:
    with packed(file, rows.schema) as (_, add):
        add(rows)


def _origin(pairs: NDArray[np.int64], own: int, first: int) -> NDArray[np.int64]:
    """(own,) int64: the chain of each row.

    It is -1 - j if it begins in row j of the first frame, or s if it is the s-th that begins later.

    Examples
    --------
    >>> _origin(np.array([[0, 2], [2, 4]]), 5, 2).tolist()
    [-1, -2, -1, 0, -1]
    """
    chain = np.arange(own)
    chain[pairs[:, 1]] = pairs[:, 0]
    begins = chain == np.arange(own)
    begins[:first] = False
    chain = roots(chain)
    return np.where(chain < first, -1 - chain, (np.cumsum(begins) - 1)[chain])


def roots(before: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,) int64: where each chain begins, given what stands before each element, or itself.

    Pointers are doubled until all point to the first: as often as the logarithm of the longest chain.

    Examples
    --------
    >>> roots(np.array([0, 0, 1, 3])).tolist()
    [0, 0, 0, 3]
    """
    while True:
        further = before[before]
        if np.array_equal(further, before):
            return before
        before = further
