"""Link a movie range by range with a model that is learned from three ranges; ranges overlap.

The model is fitted once, to the first, the middle and the last range, and its median is fixed in all.
Each range is linked with some frames before and after it, which it shares with its neighbours, and keeps
the links that leave its own detections: links over gaps and divisions cross the borders like any others.
Two ranges may link one detection to different predecessors: the link with the higher probability is kept.
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

from ..errors import InputError
from ..movies.pooled import PooledModel, pooled, values_of
from ..tracking import TrackingSettings, track
from .files import RangeFiles, links_file, save_arrays, written
from .plan import Range

ROWS = 200_000
"""Rows of a range: smaller than with a gate, because learning needs more memory and time."""
OVERLAP = 10
"""Frames before and after a range that are linked with it; longer than the gaps that are closed."""


@dataclass(frozen=True)
class LearnRange:
    """Learn a model from one range."""

    place: RangeFiles
    range: Range
    settings: TrackingSettings

    @property
    def output(self) -> Path:
        return Path(self.place.folder) / f"model-{self.range.number:06d}.json"

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        seen = self.place.rows(self.range.begin, self.range.end)
        run = track(seen, self.settings, workers=self.place.threads)
        values = {} if run.learned is None or not run.stats["links"] else values_of(run.learned)
        content = json.dumps({"name": f"range {self.range.number}", **values}).encode()
        return written(self.output, lambda file: file.write(content), len(seen), begun)


@dataclass(frozen=True)
class LinkLearned:
    """Link a range with a given model, together with the frames around it: rows [low, high)."""

    place: RangeFiles
    range: Range
    around: tuple[int, int]
    settings: TrackingSettings

    @property
    def output(self) -> Path:
        return links_file(Path(self.place.folder), self.range.number)

    def __call__(self) -> dict[str, Any]:
        begun = time.time()
        run = track(self.place.rows(*self.around), self.settings, workers=self.place.threads)
        pairs = run.tracks.links + self.around[0]
        own = (pairs[:, 0] >= self.range.begin) & (pairs[:, 0] < self.range.end)
        held: dict[str, NDArray] = {name: values[own] for name, values in run.tracks.measures.items()}
        held |= {"pairs": pairs[own], "worst_gap": np.array(run.stats["worst_gap"], dtype=np.float64)}
        return written(self.output, lambda file: save_arrays(file, held), len(run.tracks.detections), begun)


def model_of(tasks: Sequence[LearnRange]) -> PooledModel:
    """The median of the models learned from the ranges.

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


def around(ranges: Sequence[Range], counts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Rows [low, high) of each range, including the frames before and after it.

    Examples
    --------
    >>> ranges = [Range(0, 0, 30, 31), Range(1, 30, 60, 60)]
    >>> around(ranges, np.ones(60, np.int64))
    [(0, 40), (20, 60)]
    """
    start = np.concatenate([[0], np.cumsum(counts)])
    found = []
    for each in ranges:
        first, end = np.searchsorted(start, [each.begin, each.end])
        found.append((int(start[max(first - OVERLAP, 0)]), int(start[min(end + OVERLAP, len(counts))])))
    return found


def together(tasks: Sequence[LinkLearned]) -> tuple[NDArray[np.int64], Mapping[str, NDArray], float]:
    """Join the links of all ranges, sorted by source; of two links to one detection keep the likelier.

    Returns
    -------
    pairs : (E, 2) int64 array
    measures : mapping of str to (E,) array
    worst_gap : float
    """
    parts = [np.load(task.output) for task in tasks]
    sizes = [len(part["pairs"]) for part in parts]
    pairs = np.concatenate([part["pairs"] for part in parts])
    measures = {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0].files
        if name not in ("pairs", "worst_gap")
    }
    origin = np.repeat(np.arange(len(parts)), sizes)
    likely = measures.get("link_probability", np.ones(len(pairs)))
    order = np.lexsort((pairs[:, 0], -likely, pairs[:, 1]))
    target, source = pairs[order, 1], origin[order]
    first = np.concatenate([[True], target[1:] != target[:-1]])[: len(order)]
    best = np.repeat(source[first], np.diff(np.append(np.flatnonzero(first), len(order))))
    kept = np.sort(order[source == best])
    kept = kept[np.lexsort((pairs[kept, 1], pairs[kept, 0]))]
    gap = max((float(part["worst_gap"]) for part in parts), default=0.0)
    return pairs[kept], {name: values[kept] for name, values in measures.items()}, gap
