"""A pin: one statement on detections, and which statements contradict each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import SettingsError

Place = tuple[int, tuple[float, float, float]]
"""A detection: its frame, and its position z, y, x in the unit of the detections."""

KINDS = {"link": 2, "forbid": 2, "start": 1, "end": 1, "no_particle": 1, "same_cell": 2, "division": 3}
"""Detections that each kind of pin names."""


class Pin(NamedTuple):
    """A statement on one to three detections.

    Parameters
    ----------
    kind : str
        link: the second follows the first, with no detection between; forbid: it does not. start, end: the
        first, or last, detection of a particle. no_particle: clutter. same_cell: both are of one particle,
        whatever lies between. division: of the first into the other two.
    detections : tuple of (int, (float, float, float))
        Frame and position z, y, x of each.
    number : int
        In its table, from 1; 0 before it is there.
    time, user : str
        When it was stated (ISO 8601), and by whom.
    p_before : float
        Probability of what is stated before it was; NaN where it is not known.
    audit : str
        Of an answer about a link chosen at random whether the link was "right" or "wrong"; else empty.

    Examples
    --------
    >>> Pin("end", ((3, (0.0, 5.0, 2.0)),)).detections[0][0]
    3
    """

    kind: str
    detections: tuple[Place, ...]
    number: int = 0
    time: str = ""
    user: str = ""
    p_before: float = math.nan
    audit: str = ""

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records; `pin_of` reads them."""
        known = None if math.isnan(self.p_before) else self.p_before
        return self._asdict() | {"p_before": known}

    def __str__(self) -> str:
        places = (f"frame {frame} ({', '.join(f'{x:g}' for x in at)})" for frame, at in self.detections)
        return f"pin {self.number or '(new)'}: {self.kind} {', '.join(places)}"


def pin_of(plain: Mapping[str, Any]) -> Pin:
    """The pin of plain values, as a run record has them.

    Raises
    ------
    SettingsError
        If they are none.

    Examples
    --------
    >>> pin_of(Pin("end", ((3, (0.0, 5.0, 2.0)),), p_before=0.5).as_dict()).p_before
    0.5
    """
    try:
        places = tuple(
            (int(frame), (float(z), float(y), float(x))) for frame, (z, y, x) in plain["detections"]
        )
        known = plain.get("p_before")
        return Pin(
            str(plain["kind"]), places, int(plain.get("number", 0)), str(plain.get("time", "")),
            str(plain.get("user", "")), math.nan if known is None else float(known),
            str(plain.get("audit", "")),
        )  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SettingsError(f"{plain!r} is no pin. Give a table of pins.") from None


def check_pins(pins: Sequence[Pin], rows: Sequence[tuple[int, ...]] | None = None) -> None:
    """Refuse pins that are malformed or contradict each other.

    Parameters
    ----------
    pins : sequence of Pin
    rows : sequence of tuple of int, optional
        Row of each detection, by which detections are the same; else by frame and position.

    Raises
    ------
    SettingsError
        A `ValueError` that names both pins and says what to do.

    Examples
    --------
    >>> a, b, c = (0, (0.0, 0.0, 0.0)), (1, (0.0, 0.0, 1.0)), (1, (0.0, 0.0, 2.0))
    >>> check_pins([Pin("link", (a, b), 1), Pin("forbid", (a, c), 2)])
    >>> check_pins([Pin("end", (b,), 1), Pin("no_particle", (b,), 2)])
    >>> check_pins([Pin("end", (a,), 1), Pin("link", (a, c), 2)])
    Traceback (most recent call last):
    outbid.errors.SettingsError: pin 1: end frame 0 (0, 0, 0) contradicts pin 2: link frame 0 ...
    """
    after: dict[object, tuple[object, Pin]] = {}
    before: dict[object, tuple[object, Pin]] = {}
    for k, pin in enumerate(pins):
        _check_form(pin)
        first, *others = pin.detections if rows is None else rows[k]
        if pin.kind == "link":
            _state(after, first, {others[0]}, pin)
            _state(before, others[0], {first}, pin)
        elif pin.kind == "division":
            _state(after, first, set(others), pin)
            for daughter in others:
                _state(before, daughter, {first}, pin)
        elif pin.kind in ("end", "no_particle"):
            _state(after, first, set(), pin)
        if pin.kind in ("start", "no_particle"):
            _state(before, first, set(), pin)
    for k, pin in enumerate(pins):
        if pin.kind not in ("forbid", "same_cell"):
            continue
        first, last = pin.detections if rows is None else rows[k]
        stated, other = after.get(first, (None, pin))
        if pin.kind == "forbid" and stated and last in stated:  # type: ignore[operator]
            _refuse(other, pin)
        if pin.kind == "same_cell":
            for held, side in ((after, first), (before, last)):
                stated, other = held.get(side, (None, pin))
                if stated == set():
                    _refuse(other, pin)


def _state(held: dict[object, tuple[object, Pin]], of: object, what: set[object], pin: Pin) -> None:
    """Note what comes after, or before, a detection; refuse what differs from an earlier statement."""
    stated, earlier = held.setdefault(of, (what, pin))
    if stated != what:
        _refuse(earlier, pin)


def _refuse(one: Pin, other: Pin) -> None:
    raise SettingsError(f"{one} contradicts {other}. Remove one of the two from the table of pins.")


def _check_form(pin: Pin) -> None:
    """Refuse an unknown kind, a wrong number of detections, and frames in a wrong order."""
    if pin.kind not in KINDS:
        raise SettingsError(f"There is no pin of kind {pin.kind!r}. Choose one of: {', '.join(KINDS)}.")
    if len(pin.detections) != KINDS[pin.kind]:
        raise SettingsError(
            f"{pin}: it names {len(pin.detections)} detections; {KINDS[pin.kind]} are needed."
        )
    frames = [frame for frame, _ in pin.detections]
    if any(frame <= frames[0] for frame in frames[1:]):
        raise SettingsError(f"{pin}: all but the first detection must be in a later frame. Exchange them.")
    if len(set(pin.detections)) < len(pin.detections):
        raise SettingsError(f"{pin}: it names one detection twice. Name different ones.")
