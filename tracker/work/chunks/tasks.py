"""Tasks of a movie in chunks of frames: link, number and write each chunk, in any process.

A task reads its own rows and the first frame of the next chunk, links, and writes a file with an atomic
name; a task that runs twice writes the same file again. Chunks end where a group of frames ends that is
solved together, so links, costs and margins are those of the whole movie, however many chunks there are.
`chains` joins the track numbers over the borders; then a second task for each chunk writes its rows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...compute.threads import in_threads
from ...edit.crop import Crop
from ...formats.tables.parquet import RECORD
from ...formats.tables.table import table_of
from ...gated.movie import gated_links
from ...particles.arrow import column_of
from ...tracking import TrackingSettings
from ..jobs import DetectJob
from .files import ChunkFiles, links_file, numbers_file, part_file, save_arrays, save_rows, written
from .plan import Chunk


class Task(Protocol):
    """A task that any process can run, also repeatedly; its output is a file that is written atomically."""

    @property
    def output(self) -> Path:
        """Path of the file that the task writes."""

    def __call__(self) -> dict[str, Any]:
        """Write the file; return which worker ran the task, and its seconds."""


Runner = Callable[[Sequence[Task]], Iterator[dict[str, Any]]]
"""Runs tasks and yields the account of each, in any order.

The sequence may grow while accounts are taken; a runner may leave tasks that were added to its next call.
"""


def here(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """Run tasks in this process, one after the other."""
    for task in tasks:
        yield task()


def side_by_side(tasks: Sequence[Task], at_once: int) -> Iterator[dict[str, Any]]:
    """Run tasks in threads of this process, so many at a time: one uses the GPU while another reads."""
    return in_threads(lambda task: task(), tasks, at_once)


@dataclass(frozen=True)
class LinkChunk:
    """Link a chunk; write the links, and what other chunks need to join their chains to it."""

    files: ChunkFiles
    chunk: Chunk
    settings: TrackingSettings

    @property
    def output(self) -> Path:
        return links_file(Path(self.files.folder), self.chunk.number)

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        own = self.chunk.end - self.chunk.begin
        seen = self.files.rows(self.chunk.begin, self.chunk.beyond)
        links = gated_links(seen, replace(self.settings, max_gap=0), self.files.threads)
        source, target = links.pairs.T
        inside = target < own
        first = int(np.searchsorted(seen.frame[:own], seen.frame[0], "right")) if own else 0
        values = np.stack([links.cost, links.margin])
        origin = _origin(links.pairs[inside], own, first)
        facts = {"links": len(links.pairs), "worst_gap": links.gap, **links.batches.as_dict()}
        arrays: dict[str, NDArray] = {
            "facts": np.frombuffer(json.dumps(facts).encode(), np.uint8),
            "first": np.array(first),
            "later": np.array(origin.max(initial=-1) + 1),
            "origin": origin,
            "into": target[inside],
            "into_values": values[:, inside],
            "onto": np.column_stack([source[~inside], target[~inside] - own]),
            "onto_origin": origin[source[~inside]],
            "onto_values": values[:, ~inside],
        }
        if self.settings.max_gap:
            free = np.ones((2, own), dtype=bool)
            free[0, source] = False
            free[1, target[inside]] = False
            for name, rows in zip(("end", "start"), map(np.flatnonzero, free), strict=True):
                arrays |= {
                    f"{name}_row": rows,
                    f"{name}_frame": seen.frame[rows],
                    f"{name}_position": seen.position[rows],
                }
        return written(self.output, lambda file: save_arrays(file, arrays), own, begun)


@dataclass(frozen=True)
class WriteChunk:
    """Write the rows of a chunk with their track numbers, as a part of the output."""

    files: ChunkFiles
    chunk: Chunk
    record: bytes

    @property
    def output(self) -> Path:
        return part_file(Path(self.files.folder), self.chunk.number)

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        own, folder = self.chunk.end - self.chunk.begin, Path(self.files.folder)
        seen = self.files.rows(self.chunk.begin, self.chunk.end)
        arrays = np.load(links_file(folder, self.chunk.number))
        numbers = np.load(numbers_file(folder, self.chunk.number))
        origin = arrays["origin"]
        later = origin >= 0
        track_id = np.empty(own, dtype=np.int64)
        track_id[later] = numbers["later"][origin[later]]
        track_id[~later] = numbers["first"][-1 - origin[~later]]
        values, unknown = np.zeros((2, own)), np.ones(own, dtype=bool)
        into = [(of["into"], of["into_values"]) for of in (arrays, numbers)]
        if self.chunk.number:
            before = np.load(links_file(folder, self.chunk.number - 1))
            into.append((before["onto"][:, 1], before["onto_values"]))
        for target, of in into:
            values[:, target] = of
            unknown[target] = False
        rows = table_of(seen).add_column(0, "track_id", column_of(track_id))
        for name, each in zip(("link_cost", "link_margin"), values, strict=True):
            rows = rows.append_column(name, column_of(each, unknown))
        rows = rows.replace_schema_metadata({RECORD: self.record})
        return written(self.output, lambda file: save_rows(file, rows), own, begun)


@dataclass(frozen=True)
class DetectChunk:
    """Detect spots in some frames of a movie, which the task opens itself."""

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
        crop = Crop(self.job.crop.region, f"{first}:{end}", self.job.crop.mask)
        found, _ = replace(self.job, crop=crop).detect(self.job.opening.open(self.source))
        rows = table_of(found)
        return written(self.output, lambda file: save_rows(file, rows), len(found), begun)


def _origin(pairs: NDArray[np.int64], own: int, first: int) -> NDArray[np.int64]:
    """(own,) int64: the chain of each row of a chunk.

    The origin of a chain is -1 - j if the chain begins in row j of the first frame of the chunk, or s if
    it is the s-th chain that begins later.

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
    """(N,) int64: the first element of each element's chain, given each predecessor (or itself).

    By pointer doubling: the number of passes is the logarithm of the longest chain.

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
