"""Options of learning, one of them changed: for the sensitivity table and for ablations."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

_Options = TypeVar("_Options")


def varied(options: _Options, change: str) -> _Options:
    """A frozen dataclass with one field changed: ``field*factor``, ``field=off``, or nothing.

    A whole number stays one, at least 1. A tuple of whole numbers ends at the last one scaled.

    Raises
    ------
    ValueError
        If there is no such field, or it cannot be changed so.
    """
    if not change:
        return options
    name, sign, amount = change.replace("*", " * ").replace("=", " = ").split()
    if name not in names(options):
        raise ValueError(f"There is no option {name!r}; there are {', '.join(names(options))}.")
    value = getattr(options, name)
    if sign == "=" and amount == "off":
        return replace(options, **{name: type(value)()})  # type: ignore[type-var]
    if sign != "*" or isinstance(value, bool):
        raise ValueError(f"{name!r} is {value!r}, which {change!r} does not change.")
    return replace(options, **{name: _scaled(value, float(amount))})  # type: ignore[type-var]


def names(options: object) -> list[str]:
    """Fields of a dataclass."""
    return [field.name for field in fields(options)]  # type: ignore[arg-type]


def scalable(options: object) -> list[str]:
    """Fields that can be halved and doubled: numbers, and tuples of them, above 0."""
    found = []
    for name in names(options):
        value = getattr(options, name)
        numbers = value if isinstance(value, tuple) else (value,)
        if all(isinstance(n, (int, float)) and not isinstance(n, bool) and n > 0 for n in numbers):
            found.append(name)
    return found


def _scaled(value: object, factor: float) -> object:
    if isinstance(value, int):
        return max(round(value * factor), 1)
    if isinstance(value, tuple) and all(isinstance(part, int) for part in value):
        most = max(round(value[-1] * factor), 1)
        return tuple(part for part in range(value[0], most + 1)) or value[:1]
    if isinstance(value, tuple):
        return tuple(part * factor for part in value)
    assert isinstance(value, float)
    return value * factor
