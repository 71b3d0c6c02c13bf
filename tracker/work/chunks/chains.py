"""Join the chains of links of all chunks, and number the tracks of the whole movie.

To join the chains, only links over the borders of chunks are needed, so chunks are joined while later
ones are linked. Gaps are one assignment between the ends and starts of all chunks, as in a movie that is
linked as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.threads import in_threads
from ...formats.files.outputs import write_whole
from ...gated.linking import host_share, link
from ...gated.movie import costs_of
from ...tracking import TrackingSettings
from .files import WRITERS, links_file, numbers_file, save_arrays
from .plan import Chunk
from .tasks import roots


@dataclass(eq=False)
class _OfChunk:
    """The chains of one chunk.

    `first` (n,) are the chains of its first frame, counted through the movie; those that begin later are
    `base`, `base` + 1, … up to `end`. `into` are the rows that a link over a gap reaches, with its values.
    """

    chunk: Chunk
    first: NDArray[np.int64]
    base: int
    end: int
    into: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    into_values: NDArray[np.float64] = field(default_factory=lambda: np.empty((2, 0)))

    def chains(self, origin: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers in the whole movie of chains that `LinkChunk` numbered within the chunk."""
        found = self.base + origin
        early = origin < 0
        found[early] = self.first[-1 - origin[early]]
        return found


@dataclass(frozen=True, eq=False)
class Chains:
    """The tracks of the whole movie, and counts of all chunks.

    Parameters
    ----------
    tracks : int
        How many there are.
    stats : list of mapping
        What each chunk counted.
    gap_links : int
        Links over gaps.
    gap : float
        Largest gap between cost and bound of their assignment.
    """

    tracks: int
    stats: list[dict[str, Any]]
    gap_links: int = 0
    gap: float = 0.0


class Joining:
    """The chains of the chunks that are linked so far, in the order of the chunks.

    Parameters
    ----------
    chunks : sequence of Chunk
    folder : Path
        With the files that `LinkChunk` writes; the files that `WriteChunk` reads are written there.
    """

    def __init__(self, chunks: Sequence[Chunk], folder: Path) -> None:
        self._chunks, self._folder = chunks, folder
        self._found: list[_OfChunk] = []
        self._stats: list[dict[str, Any]] = []
        self._count = self._saved = 0
        self._last, self._reached = np.empty(0, np.int64), np.empty(0, np.int64)

    def go_on(self) -> None:
        """Join all chunks up to the first one that is not linked yet."""
        for each in self._chunks[len(self._found) :]:
            path = links_file(self._folder, each.number)
            if not path.exists():
                return
            with np.load(path) as arrays:
                self._stats.append(json.loads(arrays["facts"].tobytes()))
                first = np.full(int(arrays["first"]), -1, dtype=np.int64)
                first[self._reached] = self._last
                new = first < 0
                first[new] = self._count + np.arange(new.sum())
                base = self._count + int(new.sum())
                self._count = base + int(arrays["later"])
                self._found.append(_OfChunk(each, first, base, self._count))
                self._last = self._found[-1].chains(arrays["onto_origin"])
                self._reached = arrays["onto"][:, 1]

    def numbered(self) -> range:
        """Go on, and write the track numbers of the chunks that are new: their indices are returned.

        Only without gaps to close: then a chunk that is joined has its numbers, whatever comes later.
        """
        self.go_on()
        new = range(self._saved, len(self._found))
        for of in self._found[self._saved :]:
            self._save(of, of.first, np.arange(of.base, of.end))
        self._saved = len(self._found)
        return new

    def _save(self, of: _OfChunk, first: NDArray[np.int64], later: NDArray[np.int64]) -> None:
        """Write the track numbers of a chunk: of chains of its first frame, and of those that begin later."""
        arrays = {"first": first, "later": later, "into": of.into, "into_values": of.into_values}
        path = numbers_file(self._folder, of.chunk.number)
        write_whole(path, lambda file: save_arrays(file, arrays), overwrite=True)

    def number_tracks(self, settings: TrackingSettings) -> Chains:
        """Write the track numbers of each chunk that has none yet; all chunks are linked.

        Numbers are 0, 1, 2, … in the order of the tracks' first detections.

        Parameters
        ----------
        settings : TrackingSettings
            With a `max_distance`.
        """
        self.go_on()
        count, found = self._count, self._found
        before = np.arange(count)
        has_gaps = settings.max_gap and count
        links, gap = _close_gaps(found, self._folder, settings, before) if has_gaps else (0, 0.0)
        begins = before == np.arange(count)
        number = (np.cumsum(begins) - 1)[roots(before)]

        def save(of: _OfChunk) -> None:
            self._save(of, number[of.first], number[of.base : of.end])

        list(in_threads(save, found[self._saved :], WRITERS))
        return Chains(int(begins.sum()), self._stats, links, gap)


def _close_gaps(
    found: list[_OfChunk], folder: Path, settings: TrackingSettings, before: NDArray[np.int64]
) -> tuple[int, float]:
    """Close gaps: write each chain's predecessor and the links into each chunk; return count and gap."""
    ends, starts = (_loose(found, folder, side) for side in ("end", "start"))
    frames = np.concatenate([ends.frame, starts.frame])
    ends = ends.take(ends.frame < frames.max(initial=0))
    starts = starts.take(starts.frame > frames.min(initial=0))
    links = link(
        (ends.position * settings.spacing, starts.position * settings.spacing),
        (2, int(settings.max_gap or 0) + 1),
        costs_of(settings)[1],
        blocks=(ends.frame, starts.frame),
        most_bytes=host_share(),
    )
    source, target = links.pairs.T
    before[starts.chain[target]] = ends.chain[source]
    values = np.stack([links.cost, links.margin])
    for number, of in enumerate(found):
        here = starts.chunk[target] == number
        of.into, of.into_values = starts.row[target[here]], values[:, here]
    return len(links.pairs), links.gap


class _Loose(NamedTuple):
    """Ends or starts of chains: their positions, and the chains that they belong to."""

    frame: NDArray[np.int32]
    position: NDArray[np.float64]
    row: NDArray[np.int64]
    chunk: NDArray[np.int64]
    chain: NDArray[np.int64]

    def take(self, kept: NDArray[np.bool_]) -> _Loose:
        return _Loose._make(each[kept] for each in self)


def _loose(found: list[_OfChunk], folder: Path, side: str) -> _Loose:
    """The ends or the starts of all chunks, in the order of the chunks."""
    parts = []
    for number, of in enumerate(found):
        with np.load(links_file(folder, of.chunk.number)) as arrays:
            rows = arrays[f"{side}_row"]
            part = _Loose(
                arrays[f"{side}_frame"], arrays[f"{side}_position"], rows, np.full(len(rows), number),
                of.chains(arrays["origin"][rows]),
            )  # fmt: skip
        if side == "start" and number:  # what the chunk before reaches is none
            with np.load(links_file(folder, found[number - 1].chunk.number)) as arrays:
                part = part.take(~np.isin(rows, arrays["onto"][:, 1]))
        parts.append(part)
    return _Loose._make(map(np.concatenate, zip(*parts, strict=True)))
