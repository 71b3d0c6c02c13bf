"""The table of pins: a CSV file to which lines are appended; undo drops the last."""

from __future__ import annotations

import csv
import io
import math
import os
from datetime import UTC, datetime
from pathlib import Path

from ..errors import InputError
from .pin import KINDS, Pin, Place, check_pins

_FIXED = ("number", "time", "user", "kind", "p_before", "audit")
_MOST = max(KINDS.values())
_HEADER = (*_FIXED, *(f"{name}_{k}" for k in range(1, _MOST + 1) for name in ("frame", "z", "y", "x")))


def read_pins(path: str | os.PathLike[str]) -> tuple[Pin, ...]:
    """Read a table of pins, in the order in which they were stated.

    Parameters
    ----------
    path : path
        CSV with the columns number, time, user, kind, p_before, audit, and frame_1, z_1, y_1, x_1, frame_2, …

    Raises
    ------
    InputError
        If it is no such table; the message names the line.
    SettingsError
        As `check_pins`.
    """
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a table of pins: {error}. Check the name.") from None
    lines = list(csv.DictReader(io.StringIO(text)))
    missing = {"kind", "frame_1", "y_1", "x_1"} - set(lines[0] if lines else _HEADER)
    if missing:
        raise InputError(
            f"{path} has no column {', '.join(sorted(missing))}: it is not a table of pins. Check the name."
        )
    pins = []
    for k, line in enumerate(lines, 1):
        try:
            pins.append(_pin(line, k))
        except (TypeError, ValueError):
            raise InputError(
                f"{path}, line {k + 1}: a value is not a number. Fix or remove the line."
            ) from None
    check_pins(pins)
    return tuple(pins)


def append_pin(path: str | os.PathLike[str], pin: Pin) -> Pin:
    """Append a pin to a table, which is made if it is not there.

    It is returned with its number, and the time if it had none.

    Raises
    ------
    InputError, SettingsError
        As `read_pins`; also if the pin contradicts one of the table, which stays as it is.
    """
    path = Path(path)
    earlier = read_pins(path) if path.exists() else ()
    time = pin.time or datetime.now(UTC).isoformat(timespec="seconds")
    pin = pin._replace(number=max((one.number for one in earlier), default=0) + 1, time=time)
    check_pins([*earlier, pin])
    places = [value for frame, at in pin.detections for value in (frame, *map(float, at))]
    known = "" if math.isnan(pin.p_before) else float(pin.p_before)
    fixed = [pin.number, pin.time, pin.user, pin.kind, known, pin.audit]
    try:
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not file.tell():
                writer.writerow(_HEADER)
            writer.writerow([*fixed, *places, *[""] * (len(_HEADER) - len(fixed) - len(places))])
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}. Nothing was changed: save in another folder."
        ) from None
    return pin


def drop_last(path: str | os.PathLike[str]) -> Pin | None:
    """Drop the last pin of a table, and return it; None if the table is empty."""
    if earlier := read_pins(path):
        os.truncate(path, Path(path).read_bytes().rstrip(b"\r\n").rfind(b"\n") + 1)
    return earlier[-1] if earlier else None


def _pin(line: dict[str, str], number: int) -> Pin:
    """The pin of a line; raises ValueError where a value is no number."""
    places: list[Place] = []
    for k in range(1, _MOST + 1):
        if (line.get(f"frame_{k}") or "").strip():
            z, y, x = (float(line.get(f"{name}_{k}") or 0) for name in "zyx")
            places.append((int(line[f"frame_{k}"]), (z, y, x)))
    time, user, audit = (line.get(name) or "" for name in ("time", "user", "audit"))
    known = float(line.get("p_before") or math.nan)
    return Pin(line["kind"], tuple(places), int(line.get("number") or number), time, user, known, audit)
