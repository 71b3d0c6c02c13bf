"""Candidates: pairs of detections that may be linked, to the next frame and over gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._threads import in_threads
from ..errors import ResourceError
from .movie import Movie

_PAIR_BYTES = 12
"""Least memory for a pair."""
_GUESS = 12
"""Initial capacity in pairs per row."""
_CELLS, _SOME = 12, 500
"""Largest number of cells per point; number of points that are sampled to find the dense region."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of detections within the gate, row by row, shorter gaps first.

    Parameters
    ----------
    indptr : (N + 1,) int64 array
        Row i has the pairs indptr[i] up to, but not including, indptr[i + 1].
    indices : (P,) int32 array
        The later detection of each pair.
    log_density : (N,) float64 array
        Log of the detections per volume around each detection.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    log_density: NDArray[np.float64]

    @property
    def row(self) -> NDArray[np.int32]:
        """(P,) earlier detection of each pair."""
        return np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), np.diff(self.indptr))

    def where(self, kept: NDArray[np.bool_]) -> Pairs:
        """The pairs selected by a mask (P,)."""
        indptr, indices, *_ = kept_above(self.indptr, self.indices, kept.astype(np.float64), 0.5)
        return replace(self, indptr=indptr, indices=indices)


def pairs_of(
    movie: Movie, gate: tuple[float, ...], *, workers: int = 1, most_bytes: int | None = None
) -> Pairs:
    """Find all pairs of detections in consecutive frames within the gate.

    Parameters
    ----------
    movie : Movie
    gate : tuple of float
        Radii along the axes.
    workers : int
        Threads; they do not change the result.
    most_bytes : int, optional
        Memory limit for the pairs.

    Raises
    ------
    ResourceError
        If the pairs need more memory.
    """
    everyone = np.arange(len(movie.frame))
    *_, indptr, indices = _within(movie, gate, 1, everyone, everyone, workers, most_bytes)
    count, axes = movie.position.shape
    volume = (2.0, np.pi, 4 / 3 * np.pi)[axes - 1] * float(np.prod(gate))
    others = np.maximum(np.bincount(indices, minlength=count) - 1, 0)
    # Of a box that is thinner than the gate all is within it.
    least = (2.0, np.pi / 2, 4 / 3)[axes - 1] * np.asarray(gate)
    box = float(np.prod(np.maximum(np.diff(movie.bounds, axis=0)[0], least)))
    evenly = max(count, 1) / max(len(movie.frame_start) - 1, 1) * volume / box
    # Counted around a detection, usually counted, and in the box at large: a few neighbours tell little.
    later = others[movie.frame_start[:2].max() :]  # none comes before the first frame
    usual = (float(later.mean()) if len(later) else 0.0) + evenly
    density = (np.arange(others.max(initial=0) + 1) + usual) / 3 / volume
    return Pairs(indptr, indices, np.log(density)[others])


def over_gaps(
    movie: Movie,
    pairs: Pairs,
    gates: Sequence[tuple[float, ...]],
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    ahead: Sequence[NDArray[np.float64]],
    *,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Pairs:
    """Add pairs of some rows with some columns 2, 3, … frames later.

    Parameters
    ----------
    pairs : Pairs
        Pairs to the next frame.
    gates : sequence of tuple of float
        Radii along the axes for links over 2, 3, … frames; 0 for none.
    rows, cols : increasing int64 arrays
        Detections without a certain link to the next frame, or from the previous one.
    ahead : sequence of (R, axes) float64 arrays
        Predicted displacement of each row after 2, 3, … frames.
    movie, workers, most_bytes
        As in `pairs_of`.
    """
    everyone = np.arange(len(movie.frame))
    parts = [_Found(everyone, everyone, pairs.indptr, pairs.indices)]
    parts += [
        _within(movie, gate, gap, rows, cols, workers, most_bytes, way)
        for gap, (gate, way) in enumerate(zip(gates, ahead, strict=True), start=2)
        if min(gate) > 0
    ]
    return replace(_joined(movie, parts), log_density=pairs.log_density)


def near_points(
    movie: Movie,
    point: NDArray[np.float64],
    start: NDArray[np.int64],
    gate: tuple[float, ...],
    ahead: int,
    *,
    workers: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The detections within the gate around points, a number of frames later.

    Parameters
    ----------
    movie : Movie
    point : (R, axes) float64 array
        Sorted by frame.
    start : (F + 1,) int64 array
        Start of the points of each frame.
    gate : tuple of float
        Radii along the axes.
    ahead : int
        Number of frames; negative for earlier frames.
    workers : int
        Threads; they do not change the result.

    Returns
    -------
    indptr, indices : (R + 1,) int64, (P,) int32 arrays
        As in `Pairs`.
    """
    rows, cols = (_scaled(place, gate) for place in (point, movie.position))
    return _listed(rows, start, cols, movie.frame_start, ahead, workers, None)


def starts_of(row: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Start of the pairs of each row.

    Parameters
    ----------
    row : (Q,) int32 array
        Row of each pair, in sorted order.
    count : int
        Rows.

    Returns
    -------
    (count + 1,) int64 array
    """
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=count), out=starts[1:])
    return starts


def kept_above(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], gain: NDArray[np.float64], least: float
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    """The pairs with a gain above `least`.

    Parameters
    ----------
    indptr, indices : (R + 1,) int64, (P,) int32 arrays
        As in `Pairs`.
    gain : (P,) float64 array
    least : float

    Returns
    -------
    indptr, indices : (R + 1,) int64, (K,) int32 arrays
    place : (K,) int64 array
        Index of each in the original list.
    kept_gain : (K,) float64 array
    """
    from . import candidates_cpu as kernels

    kept, room = np.empty_like(indptr), len(indices) + 1
    col, place, kept_gain = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room)
    kernels.take_above(indptr, indices, gain, least, kept, col, place, kept_gain)
    return kept, col[: kept[-1]], place[: kept[-1]], kept_gain[: kept[-1]]


def places_of(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], follower: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows whose followers are among their pairs, and the indices of these pairs.

    Parameters
    ----------
    indptr, indices : (R + 1,) int64, (P,) int32 arrays
        As in `Pairs`.
    follower : (R,) int64 array
        -1 for none.

    Returns
    -------
    rows, places : (L,) int64 arrays
    """
    from . import candidates_cpu as kernels

    place = np.empty(len(follower), dtype=np.int64)
    kernels.places(indptr, indices, follower, place)
    linked = np.nonzero(place >= 0)[0]
    return linked, place[linked]


def no_longer(movie: Movie, pairs: Pairs, most: int) -> Pairs:
    """The pairs that are at most this number of frames apart."""
    frames = movie.frame[pairs.indices] - np.repeat(movie.frame, np.diff(pairs.indptr))
    if frames.max(initial=0) <= most:
        return pairs
    return pairs.where(frames <= most)


class _Found(NamedTuple):
    """Renumber the rows and columns of pairs consecutively; returns their rows in the movie as well."""

    rows: NDArray[np.int64]
    cols: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]


def _within(
    movie: Movie,
    gate: tuple[float, ...],
    gap: int,
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    workers: int,
    most_bytes: int | None,
    ahead: NDArray[np.float64] | float = 0.0,
) -> _Found:
    """Pairs of rows, at their predicted positions, and columns within the gate, `gap` frames apart."""

    def cloud(taken: NDArray[np.int64], ahead: NDArray[np.float64] | float) -> NDArray[np.float64]:
        position = movie.position if len(taken) == len(movie.frame) else movie.position[taken]
        return _scaled(position + ahead if np.any(ahead) else position, gate)

    row_start = col_start = np.searchsorted(rows, movie.frame_start)
    here = there = cloud(rows, ahead)
    if rows is not cols or np.any(ahead):
        col_start, there = np.searchsorted(cols, movie.frame_start), cloud(cols, 0.0)
    return _Found(rows, cols, *_listed(here, row_start, there, col_start, gap, workers, most_bytes))


def _scaled(place: NDArray[np.float64], gate: tuple[float, ...]) -> NDArray[np.float64]:
    """(N, 3) positions in units of the gate radii."""
    scaled = np.zeros((len(place), 3))
    np.divide(place, gate, out=scaled[:, : len(gate)])
    return scaled


def _listed(
    rows: NDArray[np.float64],
    row_start: NDArray[np.int64],
    cols: NDArray[np.float64],
    col_start: NDArray[np.int64],
    ahead: int,
    workers: int,
    most_bytes: int | None,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """All pairs of rows and columns at distances up to 1, in blocks `ahead` apart: indptr and indices.

    Like `pairs_within`, but in one pass with estimated capacity, which takes a third of the time.
    """
    from . import candidates_cpu as kernels

    cells, blocks = _cells(rows, cols, len(col_start) - 1), len(row_start) - 1
    widest = int(np.diff(col_start).max(initial=0))

    def listed(run: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        begun, ended = run
        first, end = int(row_start[begun]), int(row_start[ended])
        indptr, indices = np.zeros(len(rows) + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        row = first
        while row < end:
            known = indices[: indptr[row]]
            if most_bytes is not None and len(known) * _PAIR_BYTES > most_bytes:
                break
            indices = np.empty(max(2 * len(known), _GUESS * (end - row)) + widest + 1, dtype=np.int32)
            indices[: len(known)] = known
            row = kernels.list_pairs(
                row, begun, ended, rows, row_start, cols, col_start, ahead, *cells, indptr, indices
            )
        return indptr[first + 1 : row + 1] - indptr[first:row], indices[: indptr[row]]

    cuts = np.searchsorted(row_start, np.linspace(0, len(rows), max(workers, 1) + 1)[1:-1]).tolist()
    parts = list(in_threads(listed, zip([0, *cuts], [*cuts, blocks], strict=True), workers))
    pairs = sum(len(indices) for _, indices in parts)
    if most_bytes is not None and pairs * _PAIR_BYTES > most_bytes:
        raise ResourceError(
            f"{pairs:,} pairs or more are within the gate: {pairs * _PAIR_BYTES / 1e9:.1f} GB, more than the "
            f"{most_bytes / 1e9:.1f} GB that may be used. Give a smaller gate: --set gate=DISTANCE, or known."
        )
    degree = np.concatenate([[0], *(part for part, _ in parts)])
    return np.cumsum(degree), np.concatenate([indices for _, indices in parts])


def _cells(
    rows: NDArray[np.float64], cols: NDArray[np.float64], blocks: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Grid of cells of width at least 1 over the points: lowest corner, inverse edges, number per axis."""
    if not (len(rows) and len(cols)):
        return np.zeros(3), np.ones(3), np.full(3, 3)
    # Column by column: NumPy is ten times slower along the first axis of a narrow array.
    low, high = (
        np.array([limit([limit(column) for column in pair]) for pair in zip(rows.T, cols.T, strict=True)])
        for limit in (np.min, np.max)
    )
    # A hair wider, so that rounding never puts a pair at the gate two cells apart.
    edge, most = np.full(3, 1 + 1e-9), _CELLS * (len(cols) // blocks + 64)
    while np.prod((high - low) / edge + 3) > most:
        if edge[0] < 1.1:  # what strays stands in cells at the border
            some = np.sort(cols[:: max(1, len(cols) // _SOME)], axis=0)
            low, high = some[len(some) // 100], some[-1 - len(some) // 100]
        edge = 1.2 * edge
    return low, 1 / edge, ((high - low) / edge).astype(np.int64) + 3


def _joined(movie: Movie, parts: list[_Found]) -> Pairs:
    """Concatenate the pairs of several parts."""
    from . import candidates_cpu as kernels

    degree = np.zeros(len(movie.frame) + 1, dtype=np.int64)
    for part in parts:
        degree[part.rows + 1] += np.diff(part.indptr)
    indptr = np.cumsum(degree)
    at, indices = indptr[:-1].copy(), np.empty(indptr[-1], dtype=np.int32)
    for part in parts:
        kernels.place_rows(*part, at, indices)
    return Pairs(indptr, indices, np.empty(0))
