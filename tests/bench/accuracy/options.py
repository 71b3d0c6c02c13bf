"""Options of learning, one of them changed; or a constant of a module: for sensitivities and ablations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from typing import TypeVar

_Options = TypeVar("_Options")


def varied(options: _Options, change: str) -> _Options:
    """A frozen dataclass with one field scaled, as ``field*factor``, or nothing.

    A whole number stays one, at least 1. A tuple of whole numbers ends at the last one scaled.

    Raises
    ------
    ValueError
        If there is no such field, or it cannot be changed so.
    """
    if not change:
        return options
    name, _, factor = change.partition("*")
    if name not in scalable(options):
        raise ValueError(f"There is no option {name!r} to scale; there are {', '.join(scalable(options))}.")
    return replace(options, **{name: _scaled(getattr(options, name), float(factor))})  # type: ignore[type-var]


def scalable(options: object) -> list[str]:
    """Fields that can be halved and doubled: numbers, and tuples of them, above 0."""
    found = []
    for field in fields(options):  # type: ignore[arg-type]
        value = getattr(options, field.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if all(isinstance(n, (int, float)) and not isinstance(n, bool) and n > 0 for n in numbers):
            found.append(field.name)
    return found


def is_constant(change: str) -> bool:
    """Whether a change is of a module's constant, as ``learned.learn.em.X*0.5``, not of an option."""
    return "." in change.partition("*")[0]


def scale_constant(change: str) -> Callable[[], None]:
    """Scale a constant of a module of the package in this process; what is returned sets it back.

    Modules that have it by a public name from there are changed as well.

    Raises
    ------
    ValueError
        If there is no such constant, or compiled functions hold its value.
    """
    path, _, factor = change.partition("*")
    module, _, name = path.rpartition(".")
    home = import_module(f"outbid.{module}")
    if name not in vars(home):
        raise ValueError(f"There is no {name} in outbid.{module}.")
    old = vars(home)[name]
    others = (
        [] if name.startswith("_") else [m for key, m in sys.modules.items() if key.startswith("outbid.")]
    )
    holders = [home, *(m for m in others if m is not home and vars(m).get(name) is old)]
    for holder in holders:
        compiled = [f.py_func for f in vars(holder).values() if hasattr(f, "py_func")]
        if any(name in function.__code__.co_names for function in compiled):
            raise ValueError(f"Compiled functions of {holder.__name__} hold the value of {name}.")

    def put(value: object) -> None:
        for holder in holders:
            setattr(holder, name, value)

    put(_scaled(old, float(factor)))
    return partial(put, old)


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
