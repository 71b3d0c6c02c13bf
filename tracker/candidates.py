"""Candidates: which detections of a movie may be linked at all, in the next frame and over gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .gating import pairs_within
from .movie import Movie


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of detections within the gate, row by row, shorter gaps first.

    Parameters
    ----------
    indptr : (N + 1,) int64 array
        Pairs of row i stand at indptr[i] to indptr[i + 1].
    indices : (P,) int32 array
        The later detection of each pair.
    log_density : (N,) float64 array
        Log of the detections per volume around each detection.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    log_density: NDArray[np.float64]


def pairs_of(
    movie: Movie, gate: tuple[float, ...], *, workers: int = 1, most_bytes: int | None = None
) -> Pairs:
    """All pairs of a detection and one of the next frame within the gate.

    Parameters
    ----------
    movie : Movie
    gate : tuple of float
        Radii along the axes.
    workers : int
        Threads; they do not change the result.
    most_bytes : int, optional
        Memory that the pairs may take.

    Raises
    ------
    ResourceError
        If they would take more.
    """
    everyone = np.arange(len(movie.frame))
    pairs = _joined(movie, [_within(movie, gate, 1, everyone, everyone, workers, most_bytes)])
    count, axes = movie.position.shape
    volume = (2.0, np.pi, 4 / 3 * np.pi)[axes - 1] * float(np.prod(gate))
    others = np.maximum(np.bincount(pairs.indices, minlength=count) - 1.0, 0.0)
    box = float(np.prod(np.diff(movie.bounds, axis=0)))
    evenly = count / max(len(movie.frame_start) - 1, 1) * volume / box if box else 1.0
    # Counted around a detection, usually counted, and in the box at large: a few neighbours tell little.
    later = others[movie.frame > 0]  # none comes before the first frame
    density = (others + (later.mean() if len(later) else 0.0) + evenly) / 3 / volume
    return Pairs(pairs.indptr, pairs.indices, np.log(density))


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
    """The pairs, and those of some rows with some columns 2, 3, … frames later.

    Parameters
    ----------
    pairs : Pairs
        Within one frame.
    gates : sequence of tuple of float
        Radii along the axes for links over 2, 3, … frames; 0 for none.
    rows, cols : increasing int64 arrays
        Detections of which it is not sure that their particle is seen in the next frame, or was
        in the one before.
    ahead : sequence of (R, axes) float64 arrays
        How far each of the rows is expected to have gone after 2, 3, … frames.
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


def kept_above(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], gain: NDArray[np.float64], least: float
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    """The pairs that gain more: their indptr and indices, where they stood, and what they gain."""
    from . import candidates_cpu as kernels

    kept, room = np.empty_like(indptr), len(indices) + 1
    col, place, kept_gain = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room)
    kernels.take_above(indptr, indices, gain, least, kept, col, place, kept_gain)
    return kept, col[: kept[-1]], place[: kept[-1]], kept_gain[: kept[-1]]


def places_of(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], follower: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows whose followers, -1 for none, are among their pairs, and where those pairs stand."""
    from . import candidates_cpu as kernels

    place = np.empty(len(follower), dtype=np.int64)
    kernels.places(indptr, indices, follower, place)
    linked = np.nonzero(place >= 0)[0]
    return linked, place[linked]


def no_longer(movie: Movie, pairs: Pairs, most: int) -> Pairs:
    """The pairs at most so many frames apart."""
    frames = movie.frame[pairs.indices] - np.repeat(movie.frame, np.diff(pairs.indptr))
    if frames.max(initial=0) <= most:
        return pairs
    indptr, indices, *_ = kept_above(pairs.indptr, pairs.indices, -frames.astype(np.float64), -most - 0.5)
    return replace(pairs, indptr=indptr, indices=indices)


class _Found(NamedTuple):
    """Pairs as rows and columns of their own, and which of the movie's those are."""

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
    """Rows, moved ahead, and columns within the gate, `gap` frames apart."""

    def cloud(taken: NDArray[np.int64], ahead: NDArray[np.float64] | float) -> NDArray[np.float64]:
        scaled = np.zeros((len(taken), 3))
        np.divide(movie.position[taken] + ahead, gate, out=scaled[:, : movie.axes])
        return scaled

    # The same points are sorted once.
    row_start = col_start = np.searchsorted(rows, movie.frame_start)
    here = there = cloud(rows, ahead)
    if rows is not cols or np.any(ahead):
        col_start, there = np.searchsorted(cols, movie.frame_start), cloud(cols, 0.0)
    near = pairs_within(
        here, there, 1.0, row_start, col_start, (gap, gap), workers=workers, most_bytes=most_bytes
    )  # fmt: skip
    return _Found(rows[near.rows.order], cols[near.cols.order], near.indptr, near.indices)


def _joined(movie: Movie, parts: list[_Found]) -> Pairs:
    """All pairs of the parts, row by row, part after part."""
    from . import candidates_cpu as kernels

    degree = np.zeros(len(movie.frame) + 1, dtype=np.int64)
    for part in parts:
        degree[part.rows + 1] += np.diff(part.indptr)
    indptr = np.cumsum(degree)
    at, indices = indptr[:-1].copy(), np.empty(indptr[-1], dtype=np.int32)
    for part in parts:
        kernels.place_rows(*part, at, indices)
    return Pairs(indptr, indices, np.empty(0))
