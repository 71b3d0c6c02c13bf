"""Pins by row: the links they force and forbid among the detections of a movie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..detections import Detections
from .pin import Pin, check_pins

_NEAR = 0.25
"""Prior: distance, in that of neighbours in a frame, up to which a detection is the one that a pin names."""
_SAMPLE = 200
"""Guard: detections of a frame from which the distance between neighbours is estimated."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PinnedRows:
    """What pins say of N detections.

    Parameters
    ----------
    forced : (K, 2) int64 array
        Links that hold, a row of source and of target each; also those from a mother to her daughters.
    forbidden : (M, 2) int64 array
        Links that do not hold.
    same : (S, 2) int64 array
        Detections of one particle, the earlier first.
    divided : (D, 3) int64 array
        Mothers and their daughters.
    row_closed, column_closed : (N,) bool arrays
        Detections whose successors, and whose predecessors, are stated; no other link is possible there.
    clutter : (N,) bool array
        Which are no particle.
    """

    forced: Rows
    forbidden: Rows
    same: Rows
    divided: Rows
    row_closed: NDArray[np.bool_]
    column_closed: NDArray[np.bool_]
    clutter: NDArray[np.bool_]

    @classmethod
    def of(cls, pins: Sequence[Pin], rows: Sequence[tuple[int, ...]], count: int) -> PinnedRows:
        """From pins and the rows of their detections, among `count`."""
        by = {
            kind: np.array([row for pin, row in zip(pins, rows, strict=True) if pin.kind == kind], np.int64)
            for kind in ("link", "forbid", "start", "end", "no_particle", "same_cell", "division")
        }
        divided = by["division"].reshape(-1, 3)
        forced = np.concatenate([by["link"].reshape(-1, 2), divided[:, :2], divided[:, ::2]])
        forced = np.unique(forced, axis=0)
        row, column, clutter = (np.zeros(count, np.bool_) for _ in range(3))
        for mask, closed in (
            (clutter, by["no_particle"]),
            (row, np.concatenate([forced[:, 0], by["end"].ravel(), by["no_particle"].ravel()])),
            (column, np.concatenate([forced[:, 1], by["start"].ravel(), by["no_particle"].ravel()])),
        ):
            mask[closed.ravel()] = True
        some = np.unique(by["forbid"].reshape(-1, 2), axis=0)
        return cls(forced, some, by["same_cell"].reshape(-1, 2), divided, row, column, clutter)

    def __len__(self) -> int:
        return len(self.row_closed)


class Found(NamedTuple):
    """Pins among the detections of a movie.

    Parameters
    ----------
    pins : tuple of Pin
        Those whose detections are all there.
    rows : tuple of tuple of int
        Rows of their detections.
    unmatched : tuple of Pin
        The others, which are left out.
    """

    pins: tuple[Pin, ...]
    rows: tuple[tuple[int, ...], ...]
    unmatched: tuple[Pin, ...]


def resolve_pins(
    pins: Sequence[Pin],
    detections: Detections,
    tolerance: float | None = None,
    *,
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Found:
    """Find the detections that pins name, each the nearest of its frame.

    Parameters
    ----------
    pins : sequence of Pin
    detections : Detections
        Those on which pins were stated, or of another run of a detector.
    tolerance : float, optional
        Largest distance, in the unit of position x spacing. Default: a quarter of the median distance
        between neighbours in that frame.
    spacing : (float, float, float)
        Size of a voxel along z, y, x.

    Returns
    -------
    Found

    Raises
    ------
    SettingsError
        As `check_pins`, by the detections found.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 8, 0]])
    >>> some = [Pin("link", ((0, (0, 0, 0)), (1, (0, 0, 1)))), Pin("end", ((7, (0, 0, 0)),))]
    >>> found = resolve_pins(some, seen)
    >>> found.rows, len(found.unmatched)
    (((0, 1),), 1)
    """
    scale, frames = np.asarray(spacing, np.float64), dict[int, tuple[int, NDArray[np.float64], float]]()

    def row_of(frame: int, at: tuple[float, float, float]) -> int:
        if frame not in frames:
            rows = detections.rows_of(frame)
            place = detections.position[rows] * scale
            frames[frame] = rows.start, place, _reach(place) if tolerance is None else tolerance
        start, place, reach = frames[frame]
        if not len(place):
            return -1
        apart = np.linalg.norm(place - np.asarray(at) * scale, axis=1)
        k = int(apart.argmin())
        return start + k if apart[k] <= reach else -1

    held: list[tuple[Pin, tuple[int, ...]]] = []
    unmatched = []
    for pin in pins:
        rows = tuple(row_of(*place) for place in pin.detections)
        if min(rows) < 0:
            unmatched.append(pin)
        else:
            held.append((pin, rows))
    kept, every = tuple(pin for pin, _ in held), tuple(rows for _, rows in held)
    check_pins(kept, every)
    return Found(kept, every, tuple(unmatched))


def _reach(place: NDArray[np.float64]) -> float:
    """Distance up to which a place is that of a detection of this frame (n, 3)."""
    if len(place) < 2:
        return float(np.abs(place).max(initial=0.0)) * 1e-9
    some = place[:: max(1, len(place) // _SAMPLE)]
    apart = np.linalg.norm(some[:, None] - place[None], axis=2)
    return _NEAR * float(np.median(np.partition(apart, 1, axis=1)[:, 1]))
