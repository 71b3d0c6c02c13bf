"""Link a movie chunk by chunk with a model that is learned from three chunks; chunks overlap.

The model is fitted once, to the first, the middle and the last chunk, and its median is fixed in all.
Each chunk is linked with some frames before and after it, which it shares with its neighbours, and keeps
the links that leave its own detections: links over gaps and divisions cross the borders like any others.
Two chunks may link one detection to different predecessors: the link with the higher probability is kept.
The links therefore differ a little from those of a movie that is linked as a whole, and are the same for
any number of workers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import free_device_memory, free_memory
from ...compute.timing import lap
from ...errors import InputError
from ...tracking import TrackingSettings, track
from ..pooled import PooledModel, pooled, values_of
from .files import ChunkFiles, links_file, save_arrays, written
from .plan import Chunk

ROWS = {"cpu": 200_000, "gpu": 5_000_000}
"""Rows of a chunk, by device: on the CPU fewer than with a gate, because learning needs more memory and time;
on a GPU so many that the sample, from which each chunk is learned once more, takes a third of its time."""
_ROW_BYTES = 5_000
"""Guard: bytes of memory that a row takes, on the host or on the GPU, with the frames around its chunk."""
FACTS = "worst_gap", "fallbacks"
_AT_ONCE = 3
"""Prior: chunks that share a GPU: one computes there while the host reads or decides for the others."""
OVERLAP = 10
"""Frames before and after a chunk that are linked with it; longer than the gaps that are closed."""


def rows_within(gigabytes: float | None) -> int | None:
    """Rows of a chunk that take about so much memory; None for None.

    Examples
    --------
    >>> rows_within(1.0), rows_within(None)
    (200000, None)
    """
    return None if gigabytes is None else max(int(gigabytes * 1e9 / _ROW_BYTES), 1)


@dataclass(frozen=True)
class LearnChunk:
    """Learn a model from one chunk."""

    files: ChunkFiles
    chunk: Chunk
    settings: TrackingSettings

    @property
    def output(self) -> Path:
        return Path(self.files.folder) / f"model-{self.chunk.number:06d}.json"

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        seen = self.files.rows(self.chunk.begin, self.chunk.end)
        run = track(seen, self.settings, workers=self.files.threads)
        values = {} if run.learned is None or not run.stats["links"] else values_of(run.learned)
        content = json.dumps({"name": f"range {self.chunk.number}", **values}).encode()
        return written(self.output, lambda file: file.write(content), len(seen), begun)


@dataclass(frozen=True)
class LinkLearned:
    """Link a chunk with a given model, together with the frames around it: rows [low, high)."""

    files: ChunkFiles
    chunk: Chunk
    around: tuple[int, int]
    settings: TrackingSettings

    @property
    def output(self) -> Path:
        return links_file(Path(self.files.folder), self.chunk.number)

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        seen = self.files.rows(*self.around)
        lap("read")
        run = track(seen, self.settings, workers=self.files.threads)
        pairs = run.tracks.links + self.around[0]
        own = (pairs[:, 0] >= self.chunk.begin) & (pairs[:, 0] < self.chunk.end)
        arrays: dict[str, NDArray] = {name: values[own] for name, values in run.tracks.measures.items()}
        arrays |= {name: np.array(run.stats[name], np.float64) for name in FACTS} | {"pairs": pairs[own]}
        account = written(self.output, lambda file: save_arrays(file, arrays), len(seen), begun)
        lap("write")
        return account


def at_once(rows: int) -> int:
    """Chunks of so many rows that share a GPU; all fit into the free memory, there and on the host."""
    free = min(free_device_memory(), free_memory())
    return max(min(_AT_ONCE, free // (_ROW_BYTES * rows)), 1)


def model_of(tasks: Sequence[LearnChunk]) -> PooledModel:
    """The median of the models learned from the chunks.

    Raises
    ------
    InputError
        If nothing could be learned from any.
    """
    rows = [json.loads(task.output.read_bytes()) for task in tasks]
    rows = [row for row in rows if len(row) > 1]
    if not rows:
        raise InputError("Nothing can be learned from the parts of the movie. Set --max-distance.")
    return pooled(rows)


def around(chunks: Sequence[Chunk], counts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Rows [low, high) of each chunk, including the frames before and after it.

    Examples
    --------
    >>> chunks = [Chunk(0, 0, 30, 31), Chunk(1, 30, 60, 60)]
    >>> around(chunks, np.ones(60, np.int64))
    [(0, 40), (20, 60)]
    """
    start = np.concatenate([[0], np.cumsum(counts)])
    found = []
    for each in chunks:
        first, end = np.searchsorted(start, [each.begin, each.end])
        found.append((int(start[max(first - OVERLAP, 0)]), int(start[min(end + OVERLAP, len(counts))])))
    return found


def together(
    tasks: Sequence[LinkLearned], detections: int
) -> tuple[NDArray[np.int64], Mapping[str, NDArray], Mapping[str, float]]:
    """Join the links of all chunks, sorted by source; of two links to one detection keep the likelier.

    Sources of chunks follow each other. Where two chunks link to one detection, the earlier wins a tie; both
    links of a merge are of one chunk.

    Returns
    -------
    pairs : (E, 2) int64 array
    measures : mapping of str to (E,) array
    facts : mapping
        The largest gap, and how many chunks were swept on the host though there is a GPU.
    """
    parts = [np.load(task.output) for task in tasks]
    likeliest, best = np.full(detections, -1.0), np.full(detections, -1, np.int32)
    for number, part in enumerate(parts):
        target, probability = part["pairs"][:, 1], part["link_probability"]
        before = likeliest[target]
        np.maximum.at(likeliest, target, probability)
        best[target[probability > before]] = number
    kept = [best[part["pairs"][:, 1]] == number for number, part in enumerate(parts)]
    joined = {
        name: np.concatenate([part[name][some] for part, some in zip(parts, kept, strict=True)])
        for name in parts[0].files
        if name not in FACTS
    }
    facts = {"worst_gap": max(float(part["worst_gap"]) for part in parts)}
    return joined.pop("pairs"), joined, facts | {"fallbacks": int(sum(part["fallbacks"] for part in parts))}
