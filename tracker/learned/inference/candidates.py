"""Candidate links: compressed rows (by tail) and columns (by head), and the search for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module, kernels, on_device, to_host
from ...geometry.neighbours import nearest
from ..model.movie import Movie, of_segments

_AT_ONCE = 1 << 16
"""Guard: rows whose neighbours are held at once, for the sake of memory."""


class Candidates(NamedTuple):
    """Candidate links of N detections, sorted by tail and then by head.

    Parameters
    ----------
    tail, head : (E,) int32 arrays
        The earlier and the later detection of each.
    lag : (E,) int32 array
        Frames between the two.
    row_start : (N + 1,) int64 array
        The links with tail i are row_start[i] up to, but not including, row_start[i + 1].
    row_link : (E,) int32 array
        0, 1, …; it makes rows and columns accessible in the same way.
    column_start : (N + 1,) int64 array
    column_link : (E,) int32 array
        The links with head j are column_link[column_start[j] : column_start[j + 1]].
    """

    tail: NDArray[np.int32]
    head: NDArray[np.int32]
    lag: NDArray[np.int32]
    row_start: NDArray[np.int64]
    row_link: NDArray[np.int32]
    column_start: NDArray[np.int64]
    column_link: NDArray[np.int32]

    @property
    def size(self) -> int:
        """E (the length of the named tuple is its number of fields)."""
        return len(self.tail)

    def key(self) -> NDArray[np.int64]:
        """(E,) increasing numbers, one for each pair of detections."""
        return self.tail * np.int64(len(self.row_start) - 1) + self.head

    def kept(self, keep: NDArray[np.bool_]) -> Candidates:
        """The candidates selected by a mask (E,)."""
        new, by_head, places = _running(keep), keep[self.column_link], np.flatnonzero(keep)
        column, tail = _running(by_head), self.tail[places]
        return Candidates(
            tail=tail, head=self.head[places], lag=self.lag[places], row_start=new[self.row_start],
            row_link=array_module(keep).arange(len(tail), dtype=np.int32),
            column_start=column[self.column_start],
            column_link=new[self.column_link[np.flatnonzero(by_head)]].astype(np.int32),
        )  # fmt: skip

    def between(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places (K,) of the links between some detections (M,), which increase, and keys among these."""
        xp = array_module(rows)
        place = xp.full(len(self.row_start) - 1, -1)
        place[rows] = xp.arange(len(rows))
        first, last = (int(self.row_start[end]) for end in (rows[0], rows[-1] + 1)) if len(rows) else (0, 0)
        tail, head = (place[end[first:last]] for end in self[:2])
        inner = np.flatnonzero((tail >= 0) & (head >= 0))
        return first + inner, tail[inner] * np.int64(len(rows)) + head[inner]

    def at_tails(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) sums of values (E,) over the links of each tail."""
        return of_segments(self.tail, self.row_start, self.row_link, values)

    def at_heads(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N,) sums of values (E,) over the links of each head."""
        return of_segments(self.head, self.column_start, self.column_link, values)


def _running(keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(E + 1,) how many are selected before each."""
    count: NDArray[np.int64] = array_module(keep).zeros(len(keep) + 1, np.int64)
    count[1:] = keep.cumsum()
    return count


def candidates_of(key: NDArray[np.int64], frame: NDArray[np.int64]) -> Candidates:
    """Candidates from increasing keys ``tail * N + head``.

    Examples
    --------
    >>> found = candidates_of(np.array([2, 3, 6]), np.array([0, 0, 1, 1]))
    >>> found.tail.tolist(), found.head.tolist(), found.column_link.tolist()
    ([0, 0, 1], [2, 3, 2], [0, 2, 1])
    """
    count, xp = len(frame), array_module(key)
    tail, head = (end.astype(np.int32) for end in np.divmod(key, max(count, 1)))
    start, column_link = xp.empty(count + 1, np.int64), xp.empty_like(head)
    kernels("outbid.learned.inference.propagation", key).by_head(head, start, column_link)
    return Candidates(
        tail=tail, head=head, lag=(frame[head] - frame[tail]).astype(np.int32),
        row_start=xp.searchsorted(tail, xp.arange(count + 1, dtype=np.int32)),
        row_link=xp.arange(len(key), dtype=np.int32), column_start=start, column_link=column_link,
    )  # fmt: skip


def distinct(keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Sorted distinct keys of some arrays; sorting is several times faster than hashing here.

    Examples
    --------
    >>> distinct([np.array([3, 1]), np.array([3])]).tolist()
    [1, 3]
    """
    every = np.sort(np.concatenate(keys))
    new = array_module(every).ones(len(every), np.bool_)
    new[1:] = every[1:] != every[:-1]
    return every[np.flatnonzero(new)]


@dataclass(frozen=True, eq=False)
class Search:
    """Parameters of a search for candidates.

    Parameters
    ----------
    lag : int
        Frames from tail to head.
    count : int
        Number of nearest heads for each tail, and of nearest tails for each head.
    expected : (N, D) float64 array
        Predicted position of each detection `lag` frames later.
    tails, heads : (N,) bool arrays, optional
        Which detections may be tails or heads. Default: all.
    radius : float or (N,) float64 array
        Largest distance between the predicted position (of each tail) and the head.
    asking : str
        Whether the nearest heads of ``tails``, the nearest tails of ``heads``, or ``both`` are candidates.
    """

    lag: int
    count: int
    expected: NDArray[np.float64]
    tails: NDArray[np.bool_] | None = None
    heads: NDArray[np.bool_] | None = None
    radius: float | NDArray[np.float64] = np.inf
    asking: str = "both"


def pairs_near(movie: Movie, search: Search) -> NDArray[np.int64]:
    """Sorted keys of the pairs in which either detection is among the nearest of the other.

    Examples
    --------
    >>> from outbid.learned.model.movie import movie_of
    >>> movie = movie_of(np.array([[0.0], [2.0], [0.1], [2.1]]), np.array([0, 2, 4]))
    >>> pairs_near(movie, Search(1, 1, movie.position)).tolist()
    [2, 7]
    """
    if search.lag >= movie.frames:
        return movie.frame[:0]
    xp = array_module(movie.frame)
    tails, heads = (
        xp.arange(len(movie)) if mask is None else np.flatnonzero(mask)
        for mask in (search.tails, search.heads)
    )
    # One cell list serves both ways: the frames of expected places stand before those of positions.
    places = np.concatenate([search.expected[tails], movie.position[heads]])
    tail_start, head_start = (
        to_host(xp.searchsorted(movie.frame[rows], xp.arange(movie.frames + 1))) for rows in (tails, heads)
    )
    head_start = head_start + len(tails)
    start, shift = np.concatenate([tail_start[:-1], head_start]), movie.frames + search.lag
    asking = np.flatnonzero(movie.frame[tails] < movie.frames - search.lag)
    asked = np.flatnonzero(movie.frame[heads] >= search.lag) + len(tails)
    keys, reach = [], xp.broadcast_to(xp.asarray(np.square(search.radius)), (len(movie),))
    farthest = float(np.max(search.radius)) if len(movie) else 0.0
    ways = {"tails": (asking, shift), "heads": (asked, -shift)}
    ways = ways if search.asking == "both" else {search.asking: ways[search.asking]}
    for rows, offset in ((part, way) for every, way in ways.values() for part in _parts(every)):
        near, square = nearest(places, start, rows, search.count, offset=offset, within=farthest)
        rank, place = np.nonzero(near >= 0)
        pair = (rows[rank], near[rank, place].astype(np.int64))
        first, second = pair if offset > 0 else pair[::-1]
        tail, head = tails[first], heads[second - len(tails)]
        within = np.flatnonzero(square[rank, place] <= reach[tail])
        keys.append(tail[within] * len(movie) + head[within])
    return distinct(keys)


def _parts(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows whose neighbours are held at once; a GPU takes all."""
    return [rows] if on_device(rows) else np.array_split(rows, 1 + len(rows) // _AT_ONCE)
