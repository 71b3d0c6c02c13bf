"""A pin: one statement on detections, and which statements contradict each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import SettingsError

Place = tuple[int, tuple[float, float, float]]
"""A detection: its frame, and its position z, y, x in the unit of the detections."""

EDITS = {"add": 1, "move": 2, "remove": 1}
"""Kinds of pins that change what there is to link, and the places that each names."""
KINDS = {
    "link": 2, "forbid": 2, "start": 1, "end": 1, "no_particle": 1, "same_cell": 2, "division": 3, **EDITS,
}  # fmt: skip
"""Detections that each kind of pin names."""


class Pin(NamedTuple):
    """A statement on one to three detections.

    Parameters
    ----------
    kind : str
        link: the second follows the first, with no detection between; forbid: it does not. start, end: the
        first, or last, detection of a particle. no_particle: clutter. same_cell: both are of one particle,
        over any number of frames and links. division: of the first into the other two. add, remove: a
        detection is there, or is not; move: it is at the second place, not at the first.
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
    """The pin of plain values, as a run record has them; raises SettingsError if they are none.

    >>> pin_of(Pin("end", ((3, (0.0, 5.0, 2.0)),), p_before=0.5).as_dict()).p_before
    0.5
    """
    try:
        places = tuple(
            (int(frame), (float(z), float(y), float(x))) for frame, (z, y, x) in plain["detections"]
        )
        known, number = plain.get("p_before"), int(plain.get("number", 0))
        known = math.nan if known is None else float(known)
        return Pin(**{**plain, "detections": places, "number": number, "p_before": known})
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SettingsError(f"{plain!r} is not a pin. Give a table of pins.") from None


def check_pins(pins: Sequence[Pin], rows: Sequence[tuple[int, ...]] | None = None) -> None:
    """Refuse pins that are malformed or contradict each other, with both and what to do.

    Detections are the same by their rows, where these are given, else by frame and position, which later
    pins may move.

    >>> a, b, c = (0, (0.0, 0.0, 0.0)), (1, (0.0, 0.0, 1.0)), (1, (0.0, 0.0, 2.0))
    >>> check_pins([Pin("link", (a, b), 1), Pin("forbid", (a, c), 2)])
    >>> check_pins([Pin("end", (b,), 1), Pin("no_particle", (b,), 2)])
    >>> check_pins([Pin("end", (a,), 1), Pin("link", (a, c), 2)])
    Traceback (most recent call last):
    outbid.errors.SettingsError: pin 1: end frame 0 (0, 0, 0) contradicts pin 2: link frame 0 ...
    """
    held: dict[tuple[str, object], tuple[set[object], Pin]] = {}  # what comes before or after a detection
    named = list(zip(pins, [pin.detections for pin in followed(pins)] if rows is None else rows, strict=True))
    for pin, of in named:
        _check_form(pin)
        first, *others = of
        said: list[tuple[str, object, set[object]]] = []
        if pin.kind in ("link", "division"):
            said = [("after", first, {*others}), *(("before", other, {first}) for other in others)]
        said += [("after", first, set())] * (pin.kind in ("end", "no_particle"))
        said += [("before", first, set())] * (pin.kind in ("start", "no_particle"))
        for side, one, what in said:
            stated, earlier = held.setdefault((side, one), (what, pin))
            if stated != what:
                _refuse(earlier, pin)
    for pin, of in named:
        if pin.kind in ("forbid", "same_cell"):
            for end in (("after", of[0]), ("before", of[1])):
                stated, other = held.get(end, ({None}, pin))
                if stated & {*of} if pin.kind == "forbid" else not stated:
                    _refuse(other, pin)


def followed(pins: Sequence[Pin]) -> list[Pin]:
    """The pins, on the places to which later ones move the detections that they name.

    >>> a, b = (1, (0.0, 8.0, 0.0)), (1, (0.0, 9.0, 0.0))
    >>> followed([Pin("end", (a,)), Pin("move", (a, b))])[0].detections == (b,)
    True
    """
    now: list[Pin] = []
    for pin in pins:
        if pin.kind == "move" and len(pin.detections) == KINDS["move"]:
            before, after = pin.detections
            now = [_with_moved(one, before, after) for one in now]
        now.append(pin)
    return now


def _with_moved(pin: Pin, before: Place, after: Place) -> Pin:
    if pin.kind in EDITS or before not in pin.detections:
        return pin
    return pin._replace(detections=tuple(after if one == before else one for one in pin.detections))


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
    if max(map(abs, frames)) >= 2**31:
        raise SettingsError(f"{pin}: frames are numbered below 2147483648. Give the number of the frame.")
    if pin.kind == "move":
        if frames[0] != frames[1]:
            raise SettingsError(f"{pin}: a detection moves within its frame. Remove it, and add another one.")
    elif any(frame <= frames[0] for frame in frames[1:]):
        raise SettingsError(f"{pin}: all but the first detection must be in a later frame. Exchange them.")
    if len(set(pin.detections)) < len(pin.detections):
        raise SettingsError(f"{pin}: it names one detection twice. Name different detections.")
