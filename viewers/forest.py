"""All lineages in one picture, tracks across and time down, and as many of its lines as a view can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outbid.particles.tracks import Tracks

from .lineage import Spans, spans_of

ORDERS = ("start", "most tracks", "least certain")
"""By what families are put side by side."""
DOUBTFUL = 0.9
"""Error level: probability of a link below which it is marked; so many of ten are right at the least."""
_MOST_LINKS = 15_000
"""Guard: links that are drawn one by one; more are drawn as a line a track."""
_MOST_MARKED = 1_000
"""Guard: doubtful links that are marked in a view, the least probable first."""
_MOST_SOUGHT = 20_000
"""Guard: links of a view among which these are sought; of more, among the least probable of the movie."""


class Lines(NamedTuple):
    """What a view shows: L lines and P spots.

    Parameters
    ----------
    x, y : (L, 2) float64 arrays
        Column and frame of both ends.
    value : (L,) float64 array
        By which each is coloured; NaN where it is not known.
    spots : (P,) int64 array
        Rows of detections; none where a track, or many tracks, are one line.
    doubtful : (D,) int64 array
        Doubtful links.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    value: NDArray[np.float64]
    spots: NDArray[np.int64]
    doubtful: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Forest:
    """Places of tracks in the picture; made by `forest_of`.

    Parameters
    ----------
    tracks : Tracks
    spans : Spans
    column : (T,) float64 array
        Place of each track across; NaN for tracks that are left out.
    width : int
        Columns in all.
    """

    tracks: Tracks
    spans: Spans
    column: NDArray[np.float64]
    width: int

    @cached_property
    def across(self) -> NDArray[np.int64]:
        """Tracks that are shown, from left to right."""
        shown = np.flatnonzero(np.isfinite(self.column))
        return shown[np.argsort(self.column[shown], kind="stable")]

    @cached_property
    def _columns(self) -> NDArray[np.float64]:
        """Places of `across`."""
        return self.column[self.across]

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of detections by track, then time; and where each track begins among them, (T + 1,)."""
        number = self.tracks.track_id
        order = np.argsort(number, kind="stable")
        return order, np.searchsorted(number[order], np.arange(len(self.column) + 1))

    @cached_property
    def _by_target(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Links by the track that they reach, and where each track begins among them, (T + 1,)."""
        number = self.tracks.track_id[self.tracks.links[:, 1]]
        order = np.argsort(number, kind="stable")
        return order, np.searchsorted(number[order], np.arange(len(self.column) + 1))

    @cached_property
    def _joints(self) -> NDArray[np.int64]:
        """Links from one track to another, at divisions and merges."""
        source, target = self.tracks.track_id[self.tracks.links].T
        return np.flatnonzero(source != target)

    @cached_property
    def _doubtful(self) -> NDArray[np.int64]:
        """Links below `DOUBTFUL`, the least probable first."""
        chance = self.tracks.link_probability
        if chance is None:
            return np.empty(0, np.int64)
        order = np.argsort(chance, kind="stable")
        return order[: int((chance < DOUBTFUL).sum())]

    def rows_of(self, track: int) -> NDArray[np.int64]:
        """Rows of the detections of a track, in time."""
        order, first = self._rows
        return order[first[track] : first[track + 1]]

    def family_of(self, tracks: ArrayLike) -> NDArray[np.int64]:
        """All tracks of the lineages of some tracks.

        Examples
        --------
        >>> from outbid.particles.detections import Detections
        >>> seen = Detections.from_table([0, 1, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 9, 9]])
        >>> forest_of(Tracks(seen, np.array([[0, 1], [0, 2]]))).family_of([1]).tolist()
        [0, 1, 2]
        """
        root = root_of(self.spans.parent)
        return np.flatnonzero(np.isin(root, root[np.asarray(tracks, np.int64)]))

    def nearest(self, x: float, y: float, reach: tuple[float, float]) -> int:
        """Row of the detection nearest to a place, -1 if none is within reach across and in time."""
        near = slice(*np.searchsorted(self._columns, [x - reach[0], x + reach[0]]))
        tracks = self.across[near]
        first, last = self.spans.first[tracks], self.spans.last[tracks]
        in_time = np.maximum(np.maximum(first - y, y - last), 0.0) / reach[1]
        away = np.hypot((self.column[tracks] - x) / reach[0], in_time)
        away[in_time > 1] = np.inf
        if not len(away) or not np.isfinite(away.min()):
            return -1
        rows = self.rows_of(int(tracks[away.argmin()]))
        return int(rows[np.abs(self.tracks.detections.frame[rows] - y).argmin()])

    def lines(self, x: Sequence[float], y: Sequence[float], pixels: int, value: NDArray[np.float64]) -> Lines:
        """Lines of what is between two columns and two frames, in a view of so many pixels across.

        Parameters
        ----------
        x, y : (float, float)
        pixels : int
        value : (N,) float64 array
            Of each detection, and so of the link that reaches it.
        """
        here = slice(*np.searchsorted(self._columns, [x[0] - 1, x[1] + 1]))
        tracks = self.across[here]
        tracks = tracks[(self.spans.last[tracks] >= y[0]) & (self.spans.first[tracks] <= y[1])]
        marked = self._marked(tracks, y)
        if len(tracks) > pixels:
            return Lines(
                *self._together(tracks, max((x[1] - x[0]) / pixels, 1e-9), value), marked[:0], marked
            )
        joints = self._joints_at(tracks)
        order, first = self._by_target
        links = _ranges(order, first, tracks)
        frame = self.tracks.detections.frame
        source, target = self.tracks.links[links].T
        seen = (frame[target] >= y[0]) & (frame[source] <= y[1])
        if seen.sum() > _MOST_LINKS:
            return Lines(*_joined(self._whole(tracks, value), self._drawn(joints, value)), marked[:0], marked)
        inside = np.setdiff1d(links[seen], self._joints)
        spots = _ranges(*self._rows, tracks)
        spots = spots[(frame[spots] >= y[0]) & (frame[spots] <= y[1])]
        return Lines(*_joined(self._drawn(inside, value), self._drawn(joints, value)), spots, marked)

    def _marked(self, tracks: NDArray[np.int64], y: Sequence[float]) -> NDArray[np.int64]:
        """Doubtful links to these tracks in a range of frames, the least probable first."""
        chance = self.tracks.link_probability
        if chance is None:
            return np.empty(0, np.int64)
        seen = np.zeros(len(self.column), np.bool_)
        seen[tracks] = True
        order, first = self._by_target
        if (first[tracks + 1] - first[tracks]).sum() > _MOST_SOUGHT:
            links = self._doubtful[:_MOST_SOUGHT]
        else:
            links = _ranges(order, first, tracks)
            links = links[chance[links] < DOUBTFUL]
            links = links[np.argsort(chance[links], kind="stable")]
        source, target = self.tracks.links[links].T
        frame = self.tracks.detections.frame
        kept = seen[self.tracks.track_id[target]] & (frame[target] >= y[0]) & (frame[source] <= y[1])
        return links[np.flatnonzero(kept)[:_MOST_MARKED]]

    def _joints_at(self, tracks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Divisions and merges of which one end is of these tracks."""
        seen = np.zeros(len(self.column), np.bool_)
        seen[tracks] = True
        ends = self.tracks.track_id[self.tracks.links[self._joints]]
        shown = np.isfinite(self.column[ends]).all(axis=1)
        return self._joints[seen[ends].any(axis=1) & shown]

    def _together(
        self, tracks: NDArray[np.int64], pixel: float, value: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """A line for all tracks of a pixel, from their first frame to their last, of their mean value."""
        of = np.floor(self.column[tracks] / pixel).astype(np.int64)
        start = np.flatnonzero(np.diff(of, prepend=of[0] - 1))
        at = self.column[tracks][start]
        first = np.minimum.reduceat(self.spans.first[tracks], start)
        last = np.maximum.reduceat(self.spans.last[tracks], start)
        of_track = self._means(value)[tracks]
        known = np.isfinite(of_track)
        count = np.add.reduceat(known.astype(np.float64), start)
        total = np.add.reduceat(np.where(known, of_track, 0.0), start)
        mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return np.column_stack([at, at]), np.column_stack([first, last]).astype(np.float64), mean

    def _whole(
        self, tracks: NDArray[np.int64], value: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """A line a track."""
        at, ends = self.column[tracks], [self.spans.first[tracks], self.spans.last[tracks]]
        return (
            np.column_stack([at, at]), np.column_stack(ends).astype(np.float64), self._means(value)[tracks],
        )  # fmt: skip

    def _drawn(
        self, links: NDArray[np.int64], value: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """A line a link."""
        pairs = self.tracks.links[links]
        frame = self.tracks.detections.frame[pairs].astype(np.float64)
        return self.column[self.tracks.track_id[pairs]], frame, value[pairs[:, 1]]

    def place_of(self, rows: ArrayLike) -> NDArray[np.float64]:
        """(K, 2) float64: column and frame of detections; NaN for those that are left out."""
        rows = np.asarray(rows, np.int64)
        frame = self.tracks.detections.frame[rows]
        return np.column_stack([self.column[self.tracks.track_id[rows]], frame]).astype(np.float64)

    def _means(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """(T,) mean of the known values of each track; kept while the values are the same array."""
        kept = self.__dict__.get("_kept")
        if kept is None or kept[0] is not value:
            number, known = self.tracks.track_id, np.isfinite(value)
            count = np.bincount(number[known], minlength=len(self.column))
            total = np.bincount(number[known], value[known], minlength=len(self.column))
            mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
            kept = self.__dict__["_kept"] = value, mean
        return kept[1]


def forest_of(tracks: Tracks, shown: NDArray[np.bool_] | None = None, order: str = "start") -> Forest:
    """Put the lineages of tracks side by side: each track in a column, a mother amid her daughters.

    Parameters
    ----------
    tracks : Tracks
    shown : (N,) bool array, optional
        Detections; tracks without any of these are left out.
    order : str
        One of `ORDERS`: by first frame, by number of tracks, or by least certain link.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 9, 9]])
    >>> forest = forest_of(Tracks(seen, np.array([[0, 1], [0, 2]])))
    >>> forest.column.tolist(), forest.width
    ([0.5, 0.0, 1.0, 2.0], 3)
    >>> forest.lines((0, 2), (0, 1), 500, np.zeros(4)).x.tolist()
    [[0.5, 0.0], [0.5, 1.0]]
    >>> forest.nearest(0.9, 1.2, (0.5, 0.5))
    2
    """
    spans = spans_of(tracks)
    kept = np.full(tracks.track_count, shown is None)
    if shown is not None:
        kept[tracks.track_id[shown]] = True
    parent = np.where(kept & (spans.parent >= 0) & kept[spans.parent], spans.parent, -1)
    root = root_of(parent)
    rank = _rank(tracks, spans, root, order)
    column, width = _columns(parent, kept, rank)
    return Forest(tracks, spans, column, width)


def root_of(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    """(T,) The first mother of each track, or itself."""
    root = np.where(parent >= 0, parent, np.arange(len(parent)))
    while True:
        above = root[root]
        if np.array_equal(above, root):
            return root
        root = above


def _rank(tracks: Tracks, spans: Spans, root: NDArray[np.int64], order: str) -> NDArray[np.float64]:
    """(T,) What the roots are sorted by."""
    if order == "most tracks":
        return -np.bincount(root, minlength=len(root)).astype(np.float64)
    least = np.full(len(root), np.inf)
    if order == "least certain":
        certain = tracks.link_margin if tracks.link_probability is None else tracks.link_probability
        if certain is not None:
            np.minimum.at(least, root[tracks.track_id[tracks.links[:, 1]]], certain)
        return least
    return spans.first.astype(np.float64)


def _columns(
    parent: NDArray[np.int64], kept: NDArray[np.bool_], rank: NDArray[np.float64]
) -> tuple[NDArray[np.float64], int]:
    """Place of each track and number of leaves; generation by generation, first up, then down."""
    levels, at = [np.flatnonzero(kept & (parent < 0))], 0
    by_parent = np.argsort(parent, kind="stable")
    first = np.searchsorted(parent[by_parent], np.arange(len(parent) + 1))
    while len(levels[at]):
        levels.append(_ranges(by_parent, first, levels[at]))
        at += 1
    leaves = np.zeros(len(parent), np.int64)
    for level in reversed(levels):
        leaves[level] = np.maximum(leaves[level], 1)
        up = level[parent[level] >= 0]
        np.add.at(leaves, parent[up], leaves[up])
    begin = np.zeros(len(parent), np.int64)
    roots = levels[0][np.lexsort((levels[0], rank[levels[0]]))]
    begin[roots] = np.cumsum(leaves[roots]) - leaves[roots]
    for level in levels[1:]:  # in which siblings are next to each other
        before = np.cumsum(leaves[level]) - leaves[level]
        new = np.diff(parent[level], prepend=-1) != 0
        start = before[np.flatnonzero(new)[np.cumsum(new) - 1]] if len(level) else before
        begin[level] = begin[parent[level]] + before - start
    column = np.where(kept, begin + (leaves - 1) / 2, np.nan)
    return column, int(leaves[roots].sum())


def _ranges(
    values: NDArray[np.int64], first: NDArray[np.int64], wanted: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The values of several groups, one after the other; group k is values[first[k] : first[k + 1]]."""
    count = first[wanted + 1] - first[wanted]
    start = np.repeat(first[wanted] - np.cumsum(count) + count, count)
    return values[start + np.arange(len(start))]


def _joined(
    *parts: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    x, y, value = (np.concatenate(each) for each in zip(*parts, strict=True))
    return x, y, value
