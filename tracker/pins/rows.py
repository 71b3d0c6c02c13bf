"""Pins by row: the links they force and forbid among the detections of a movie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compute.arrays import BACKWARD, ROW, Arrays, Axis
from ..particles.calibration import Calibration, calibration_given
from ..particles.detections import Detections
from .pin import EDITS, KINDS, Pin, check_pins, followed

_NEAR = 0.25
"""Prior: distance, in that of neighbours in a frame, up to which a detection is the one that a pin names."""
_SAMPLE = 200
"""Guard: detections of a frame from which the distance between neighbours is estimated."""
_ROUNDED = 1e-9
"""Guard: rounding of a position, relative to it."""
Rows = NDArray[np.int64]


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


@dataclass(frozen=True, eq=False)
class PinnedRows(Arrays):
    """What pins say of N detections."""

    forced: Rows  # (K, 2) source and target of links that hold, without those of divisions
    divided: Rows  # (D, 3) mothers and their daughters
    forbidden: Rows  # (M, 2) links that do not hold
    same: Rows  # (S, 2) detections of one particle, the earlier first
    row_closed: NDArray[np.bool_] = field(metadata=ROW)  # (N,) whose successors are stated
    column_closed: NDArray[np.bool_] = field(metadata=ROW)  # (N,) whose predecessors are stated
    clutter: NDArray[np.bool_] = field(metadata=ROW)  # (N,) which are no particle
    fresh: NDArray[np.bool_] = field(metadata=ROW)  # (N,) of which no link is a candidate yet

    @classmethod
    def of(cls, found: Found, count: int) -> PinnedRows:
        """From pins found among `count` detections."""
        by = {
            kind: np.array([row for pin, row in zip(*found[:2], strict=True) if pin.kind == kind], np.int64)
            for kind in KINDS
        }
        forced, divided = np.unique(by["link"].reshape(-1, 2), axis=0), by["division"].reshape(-1, 3)
        row, column, clutter = (np.zeros(count, np.bool_) for _ in range(3))
        for mask, stated in (
            (clutter, ()),
            (row, (forced[:, 0], divided[:, 0], by["end"])),
            (column, (forced[:, 1], divided[:, 1:], by["start"])),
        ):
            for of in (*stated, by["no_particle"]):
                mask[of] = True
        forbidden, same = (by[kind].reshape(-1, 2) for kind in ("forbid", "same_cell"))
        return cls(
            forced=forced, divided=divided, forbidden=forbidden, same=same, row_closed=row,
            column_closed=column, clutter=clutter, fresh=np.zeros(count, np.bool_),
        )  # fmt: skip

    @property
    def pairs(self) -> Rows:
        """(K + 2 D, 2) all links that hold."""
        return np.concatenate([self.forced, self.divided[:, :2], self.divided[:, ::2]])

    def allows(self, tail: NDArray, head: NDArray) -> NDArray[np.bool_]:
        """(E,) whether links of these rows may be, or are forced; those of pinned divisions may not."""
        count = np.int64(len(self.clutter))
        key = tail.astype(np.int64) * count + head
        forced, forbidden = (np.isin(key, pairs @ [count, 1]) for pairs in (self.forced, self.forbidden))
        return np.asarray(forced | ~(self.row_closed[tail] | self.column_closed[head] | forbidden))

    def allows_divisions(self, slots: Rows) -> NDArray[np.bool_]:
        """(P,) whether divisions of mothers and daughters (3, P), other than the pinned ones, may be."""
        mother, *daughters = slots
        allowed = [self.allows(mother, daughter) for daughter in daughters]
        return np.asarray(~self.row_closed[mother] & allowed[0] & allowed[1])

    def acts(self, tails: slice, heads: slice) -> bool:
        """Whether they change how some rows are linked to others."""
        low, high = np.array([[tails.start, heads.start], [tails.stop, heads.stop]])
        between = ((self.forbidden >= low) & (self.forbidden < high)).all(axis=1)
        return bool(self.row_closed[tails].any() or self.column_closed[heads].any() or between.any())

    def beside(self, gone: NDArray[np.bool_], fresh: Rows) -> PinnedRows:
        """The same where some (N,) are clutter, and of other rows no link is a candidate yet."""
        new = self.fresh.copy()
        new[fresh] = True
        closed = (each | gone for each in (self.row_closed, self.column_closed, self.clutter))
        row, column, clutter = closed
        return replace(self, row_closed=row, column_closed=column, clutter=clutter, fresh=new)

    def with_forced(self, pairs: Rows) -> PinnedRows:
        """The same with further forced links, which are allowed."""
        row, column = self.row_closed.copy(), self.column_closed.copy()
        row[pairs[:, 0]] = column[pairs[:, 1]] = True
        forced = np.unique(np.concatenate([self.forced, pairs]), axis=0)
        return replace(self, forced=forced, row_closed=row, column_closed=column)

    def take(self, axis: Axis, index: Any) -> PinnedRows:
        """As of all `Arrays`; of rows that are taken all are named anew, and pins on others are left out."""
        part = super().take(axis, index)
        if axis != "row":
            return part
        new = np.full(len(self.clutter), -1)
        new[index] = np.arange(len(part.clutter))
        stated = [new[each] for each in (self.forced, self.divided, self.forbidden, self.same)]
        forced, divided, forbidden, same = (each[(each >= 0).all(axis=1)] for each in stated)
        return replace(part, forced=forced, divided=divided, forbidden=forbidden, same=same)

    def in_reverse(self) -> PinnedRows:
        """What they say of the movie in reversed time, in which row i is row N - 1 - i."""
        back = self.take("row", BACKWARD)
        return replace(
            back, forced=back.forced[:, ::-1], divided=back.divided[:0], forbidden=back.forbidden[:, ::-1],
            same=back.same[:, ::-1], row_closed=back.column_closed, column_closed=back.row_closed,
        )  # fmt: skip


def resolve_pins(
    pins: Sequence[Pin],
    detections: Detections,
    *,
    calibration: Calibration | None = None,
    spacing: Sequence[float] | None = None,
) -> Found:
    """Find the detections that pins name, each the nearest within a quarter of the distance of neighbours.

    Pins that add, move or remove detections are left out; see `edited`, which comes before.

    Parameters
    ----------
    pins : sequence of Pin
    detections : Detections
        Those on which pins were stated, or of another run of a detector.
    calibration : Calibration, optional
        What the positions mean; by default that of the detections.
    spacing
        The former argument, for one release.

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
    pins = [pin for pin in followed(pins) if pin.kind not in EDITS]
    scale = np.asarray(calibration_given(calibration, detections.calibration, spacing).spacing)
    rows = [tuple(_row_of(detections, *place, scale) for place in pin.detections) for pin in pins]
    there = [min(of) >= 0 for of in rows]
    kept = tuple(compress(pins, there)), tuple(compress(rows, there))
    check_pins(*kept)
    return Found(*kept, tuple(pin for pin, held in zip(pins, there, strict=True) if not held))


def _row_of(
    detections: Detections, frame: int, at: tuple[float, float, float], scale: NDArray[np.float64]
) -> int:
    """Row of the detection at a place, else of the nearest that is near enough, else -1."""
    rows = detections.rows_of(frame)
    place = detections.position[rows]
    if not len(place):
        return -1
    apart = np.where((place == at).all(axis=1), -1.0, np.linalg.norm((place - at) * scale, axis=1))
    k = int(apart.argmin())
    return rows.start + k if apart[k] < 0 or apart[k] <= _reach(place * scale) else -1


def _reach(place: NDArray[np.float64]) -> float:
    """Distance up to which a place is that of a detection of this frame."""
    if len(place) < 2:
        return float(np.abs(place).max()) * _ROUNDED
    some = place[:: max(1, len(place) // _SAMPLE)]
    apart = np.linalg.norm(some[:, None] - place[None], axis=2)
    return _NEAR * float(np.median(np.partition(apart, 1, axis=1)[:, 1]))
