"""Candidates: which detections of a movie may be linked at all, in the next frame and over gaps."""

from __future__ import annotations

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
    box = float(np.prod(np.ptp(movie.position, axis=0))) if count else 0.0
    evenly = count / max(len(movie.frame_start) - 1, 1) * volume / box if box else 1.0
    # Counted around a detection, usually counted, and in the box at large: a few neighbours tell little.
    density = (others + (others.mean() if count else 0.0) + evenly) / 3 / volume
    return Pairs(pairs.indptr, pairs.indices, np.log(density))


def over_gaps(
    movie: Movie,
    pairs: Pairs,
    gate: tuple[float, ...],
    longest: int,
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    *,
    workers: int = 1,
    most_bytes: int | None = None,
) -> Pairs:
    """The pairs, and those of some rows with some columns 2 to `longest` frames later.

    Over g frames the gate grows by g^(3/4), between diffusion and straight flight.

    Parameters
    ----------
    pairs : Pairs
        Within one frame.
    rows, cols : increasing int64 arrays
        Detections of which it is not sure that their particle is seen in the next frame, or was
        in the one before.
    movie, gate, workers, most_bytes
        As in `pairs_of`.
    """
    everyone = np.arange(len(movie.frame))
    parts = [_Found(everyone, everyone, pairs.indptr, pairs.indices)]
    gaps = range(2, longest + 1)
    parts += [_within(movie, gate, gap, rows, cols, workers, most_bytes) for gap in gaps]
    return replace(_joined(movie, parts), log_density=pairs.log_density)


def still_open(
    pairs: Pairs, follower: NDArray[np.int64], before: NDArray[np.int64], settled: NDArray[np.bool_]
) -> Pairs:
    """The links, and the pairs of detections that no settled link has taken.

    Parameters
    ----------
    pairs : Pairs
    follower, before : (N,) int64 arrays
        The detection linked after and before each; -1 for none.
    settled : (N,) bool array
        Whether the link to the follower is settled.
    """
    from . import candidates_cpu as kernels

    taken = (before >= 0) & settled[before]
    indptr, indices = np.empty_like(pairs.indptr), np.empty_like(pairs.indices)
    kernels.take_open(pairs.indptr, pairs.indices, ~settled, ~taken, follower, indptr, indices)
    return Pairs(indptr, indices[: indptr[-1]], pairs.log_density)


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
) -> _Found:
    """Rows and columns within the gate, `gap` frames apart."""
    radii = np.asarray(gate) * gap**0.75

    def cloud(taken: NDArray[np.int64]) -> NDArray[np.float64]:
        scaled = np.zeros((len(taken), 3))
        np.divide(movie.position[taken], radii, out=scaled[:, : movie.axes])
        return scaled

    row_start, col_start = (np.searchsorted(taken, movie.frame_start) for taken in (rows, cols))
    near = pairs_within(
        cloud(rows), cloud(cols), 1.0, row_start, col_start, (gap, gap),
        workers=workers, most_bytes=most_bytes,
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
