"""Detections that a person added, moved or removed: pins that change what there is to link."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..particles.detections import Detections
from .pin import EDITS, Pin, Place

_ROUNDED = 1e-9
"""Guard: rounding of a position, relative to the largest of its frame."""
_BACK = {"add": "remove", "remove": "add", "move": "move"}


class Edited(NamedTuple):
    """Detections after pins that add, move or remove some.

    Parameters
    ----------
    detections : Detections
    row : (N,) int64 array
        The row that each of the N detections has now; -1 if it is removed.
    new : (K,) int64 array
        Rows of those that were added or moved, now.
    unmatched : tuple of Pin
        Pins that name no detection, which are left out.
    """

    detections: Detections
    row: NDArray[np.int64]
    new: NDArray[np.int64]
    unmatched: tuple[Pin, ...]


def edited(detections: Detections, pins: Iterable[Pin]) -> Edited:
    """Add, move and remove detections, in the order of the pins; other pins change nothing.

    A place is that of a detection up to rounding. What is there already is neither added nor moved there
    again, so the pins may be applied to detections that have them. An added detection has no features, a
    moved one keeps its own.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1, 1], [[0, 0, 0], [0, 0, 1], [0, 8, 0]])
    >>> pins = [Pin("add", ((0, (0, 5, 5)),)), Pin("move", ((1, (0, 8, 0)), (1, (0, 9, 0))))]
    >>> now = edited(seen, [*pins, Pin("remove", ((1, (0, 0, 1)),))])
    >>> now.detections.position.tolist(), now.row.tolist(), now.new.tolist()
    ([[0.0, 0.0, 0.0], [0.0, 5.0, 5.0], [0.0, 9.0, 0.0]], [0, -1, 2], [1, 2])
    """
    acts = [pin for pin in pins if pin.kind in EDITS]
    count = len(detections)
    if not acts:
        return Edited(detections, np.arange(count), np.empty(0, np.int64), ())
    placed: dict[int, Place] = {}  # those that were added or moved; those added have rows from N on
    gone: set[int] = set()
    left, many = [], count
    for k, pin in enumerate(acts):
        row = _row_at(detections, pin.detections[0], placed, gone)
        end = _end_of(pin.detections[-1], acts[k + 1 :])
        is_there = _row_at(detections, end, placed, gone) >= 0
        if pin.kind == "add":
            if row < 0 and not is_there:
                placed[many], many = pin.detections[0], many + 1
        elif row >= 0 and pin.kind == "move":
            placed[row] = pin.detections[1]
        elif row >= 0:
            gone.add(row)
            placed.pop(row, None)
        elif pin.kind == "remove" or not is_there:
            left.append(pin)
    if not placed and not any(row < count for row in gone):
        return Edited(detections, np.arange(count), np.empty(0, np.int64), tuple(left))
    now, seen = _made(detections, placed, gone, many)
    return Edited(seen, now[:count], np.sort(now[list(placed)]).astype(np.int64), tuple(left))


def edits_in(detections: Detections, pins: Iterable[Pin]) -> tuple[Pin, ...]:
    """The first of the edits, as many as the detections have already: those that can be taken back there.

    Examples
    --------
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 9, 0]])
    >>> pins = [Pin("move", ((1, (0, 8, 0)), (1, (0, 9, 0)))), Pin("add", ((0, (0, 5, 5)),))]
    >>> [pin.kind for pin in edits_in(seen, pins)]
    ['move']
    """
    acts = tuple(pin for pin in pins if pin.kind in EDITS)
    return next((acts[:k] for k in range(len(acts), 0, -1) if _are_in(detections, acts[:k])), ())


def _are_in(detections: Detections, acts: Sequence[Pin]) -> bool:
    placed: dict[int, Place] = {}
    gone: set[int] = set()
    for k, pin in enumerate(taken_back(acts), len(detections)):
        row = _row_at(detections, pin.detections[0], placed, gone)
        if (row < 0) != (pin.kind == "add"):
            return False
        if pin.kind == "remove":
            gone.add(row)
            placed.pop(row, None)
        elif pin.kind == "move" and _row_at(detections, pin.detections[1], placed, gone) >= 0:
            return False
        else:
            placed[k if row < 0 else row] = pin.detections[-1]
    return True


def taken_back(edits: Sequence[Pin]) -> tuple[Pin, ...]:
    """Edits that take these back, the last first; a detection comes back without features.

    Examples
    --------
    >>> a, b = (1, (0.0, 8.0, 0.0)), (1, (0.0, 9.0, 0.0))
    >>> [pin[:2] for pin in taken_back([Pin("add", (a,)), Pin("move", (a, b))])] == [
    ...     ("move", (b, a)), ("remove", (a,))]
    True
    """
    return tuple(Pin(_BACK[pin.kind], pin.detections[::-1]) for pin in reversed(edits))


def _end_of(place: Place, later: Iterable[Pin]) -> Place:
    """Where later pins move what is at a place."""
    for pin in later:
        if pin.kind == "move" and pin.detections[0] == place:
            place = pin.detections[1]
    return place


def _row_at(detections: Detections, place: Place, placed: dict[int, Place], gone: set[int]) -> int:
    """The row of the detection at a place, up to rounding; -1 if there is none."""
    frame, at = place
    rows = detections.rows_of(frame)
    near = np.abs(detections.position[rows] - at).max(axis=1, initial=0.0)
    most = _ROUNDED * max(float(np.abs(detections.position[rows]).max(initial=0.0)), *map(abs, at))
    here = [rows.start + k for k in np.flatnonzero(near <= most).tolist()]
    here = [row for row in here if row not in gone and row not in placed]
    here += [row for row, (when, other) in placed.items() if when == frame and math.dist(other, at) <= most]
    return here[0] if here else -1


def _made(
    detections: Detections, placed: dict[int, Place], gone: set[int], many: int
) -> tuple[NDArray[np.int64], Detections]:
    """The row of each detection, and of each that was added, or -1 if it is removed; and the detections."""
    more = many - len(detections)
    frame = np.append(detections.frame, np.zeros(more, np.int32))
    position = np.append(detections.position, np.zeros((more, 3)), axis=0)
    for k, (when, at) in placed.items():
        frame[k], position[k] = when, at
    kept = np.full(many, True)
    kept[list(gone)] = False
    order = np.argsort(frame, kind="stable")
    order = order[kept[order]]
    row = np.full(many, -1)
    row[order] = np.arange(len(order))
    every = {name: _lengthened(values, more) for name, values in detections.features.items()}
    features = {name: values[order] for name, values in every.items()}
    return row, Detections(frame[order], position[order], detections.calibration, features)


def _lengthened(values: NDArray, more: int) -> NDArray:
    """The values with as many that are not known."""
    if not more:
        return values
    missing = {"U": "", "O": None}.get(values.dtype.kind, math.nan)
    return np.append(values, np.array([missing] * more))
