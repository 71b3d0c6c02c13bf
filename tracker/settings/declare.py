"""`Setting`: what is declared once of a setting, for options, rows of forms, checks and the reference."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from ..errors import SettingsError

_Class = TypeVar("_Class", bound=type)
_KEY = "setting"
DEVICES = ("auto", "cpu", "gpu")
"""Accepted device names; `auto` takes a GPU if there is one and the problem is large enough."""
AXES = "tuple[float, float, float]"
"""The type of what has a number along z, y and x."""


@dataclass(frozen=True)
class Setting:
    """What a field of a class of settings says beside its name, its type and its default.

    Parameters
    ----------
    text : str
        What it is, in a sentence or two, in which names of other settings stand in `backticks`.
    more : str
        What the reference and the tooltip of a form say further.
    automatic : str
        What None means, in some words.
    choices : tuple of str
    least, most : float
    above : bool
        Whether the least value itself is out of range, and the greatest.
    unit : str
        In which a form shows it; "length" is the unit of the layer.
    row : str
        Its label in a form, and after a bar what stands beside its box; empty for none.
    further : bool
        Whether it stands under *more*.
    first : float
        Where the first step up from 0 leads in a form.
    option : str
        Of the command, where that is not the name.
    metavar : str
    needs, excludes : str
        Names of the settings without which, or with which, this one has no effect: it is refused then where
        it asks for something.
    """

    text: str
    more: str = ""
    automatic: str = ""
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    unit: str = ""
    row: str = ""
    further: bool = True
    first: float = 1.0
    option: str = ""
    metavar: str = ""
    needs: str = ""
    excludes: str = ""

    @property
    def rule(self) -> str:
        """With which settings it has an effect, as a sentence; empty if with all."""
        if self.needs:
            return f"Only with `{self.needs}`."
        return f"Only without `{self.excludes}`." if self.excludes else ""


@dataclass(frozen=True)
class Declared:
    """A setting with the name, the type and the default of its field; `kind` is the type without None."""

    name: str
    kind: str
    optional: bool
    default: Any
    setting: Setting


def declare(default: object, setting: Setting, *, hashed: bool = True) -> Any:
    """A field of a dataclass that is declared as a setting; one that may be a mapping is not `hashed`."""
    if default == {}:
        return field(default_factory=dict, hash=False, metadata={_KEY: setting})
    return field(default=default, hash=None if hashed else False, metadata={_KEY: setting})


def declared_in(settings: type) -> dict[str, Declared]:
    """The settings that a class declares, by name, in order.

    Examples
    --------
    >>> from .tracking import TrackingSettings
    >>> found = declared_in(TrackingSettings)["max_gap"]
    >>> found.kind, found.optional, found.setting.least
    ('int', True, 0)
    """
    found = {}
    for one in fields(settings):
        if _KEY in one.metadata:
            kind = str(one.type).split(" | None")[0]
            default = {} if one.default is MISSING else one.default
            found[one.name] = Declared(one.name, kind, kind != one.type, default, one.metadata[_KEY])
    return found


def bound_by(settings: type, other: str) -> dict[str, Declared]:
    """The settings of a class that need or exclude another one, by name."""
    return {
        name: one
        for name, one in declared_in(settings).items()
        if other in (one.setting.needs, one.setting.excludes)
    }


def check_rules(settings: Any) -> None:
    """Refuse a value that asks for something beside another setting with which it has no effect.

    Raises
    ------
    SettingsError
        If there is one; the message names both settings.
    """
    for one in declared_in(type(settings)).values():
        value, rule = getattr(settings, one.name), one.setting
        if not value or value == one.default:
            continue
        if rule.needs and getattr(settings, rule.needs) is None:
            raise SettingsError(f"{one.name} needs a {rule.needs}. Set one, or leave {one.name} out.")
        if rule.excludes and getattr(settings, rule.excludes) is not None:
            raise SettingsError(excluded(one.name, rule.excludes))


def excluded(name: str, other: str) -> str:
    """The message on a setting beside one that it excludes.

    Examples
    --------
    >>> excluded("known", "max_distance")
    'known has no effect with max_distance. Leave one of the two out.'
    """
    return f"{name} has no effect with {other}. Leave one of the two out."


def check_values(settings: Any) -> None:
    """Refuse values that are none of the choices, or out of the ranges, declared for them.

    Raises
    ------
    SettingsError
        If a value is; the message says which values can be taken.
    """
    for one in declared_in(type(settings)).values():
        value, said = getattr(settings, one.name), one.setting
        if said.choices and value not in said.choices:
            raise SettingsError(
                f"There is no {one.name} {value!r}. Choose one of: {', '.join(said.choices)}."
            )
        if value is None or (said.least, said.most) == (-math.inf, math.inf):
            continue
        numbers = value if one.kind == AXES else (value,)
        right = len(numbers) == (3 if one.kind == AXES else 1) and all(_is_in(x, said) for x in numbers)
        if not right or (one.kind == "int" and value != int(value)):
            raise SettingsError(f"{one.name} is {value}; it must be {_range_of(one)}.")


def _is_in(value: float, limits: Setting) -> bool:
    inside = limits.least < value < limits.most if limits.above else limits.least <= value <= limits.most
    return inside and math.isfinite(value)


def _range_of(one: Declared) -> str:
    """The values in range, in words."""
    limits = one.setting
    if limits.least == -math.inf:
        words = f"{limits.most:g} or less"
    elif limits.most < math.inf:
        ends = f"{limits.least:g}", f"{limits.most:g}"
        words = "above {} and below {}".format(*ends) if limits.above else "from {} to {}".format(*ends)
    else:
        words = f"above {limits.least:g}" if limits.above else f"{limits.least:g} or more"
    if one.kind == AXES:
        return f"three sizes {words}: z, y, x"
    return f"{words}, a whole number" if one.kind == "int" else words


def in_words(text: str, name: Callable[[str], str] = str) -> str:
    """A text in which names stand in backticks, with each replaced.

    Examples
    --------
    >>> in_words("Needs `max_gap`.", "--{}".format)
    'Needs --max_gap.'
    """
    return re.sub(r"`(\w+)`", lambda found: name(found.group(1)), text)


def documented(settings: _Class) -> _Class:
    """Class decorator that writes the parameters of a docstring, where it says ``{settings}``."""
    if settings.__doc__:
        entries = "\n".join(_entry(one) for one in declared_in(settings).values())
        settings.__doc__ = settings.__doc__.replace("    {settings}", entries)
    return settings


def _entry(one: Declared) -> str:
    """The entry of a setting in a docstring."""
    said = one.setting
    kind = "{" + ", ".join(f'"{name}"' for name in said.choices) + "}" if said.choices else one.kind
    kind = kind.replace(AXES, "tuple of 3 float")
    default = f"Default: {said.automatic}." if said.automatic else ""
    text = " ".join(filter(None, [said.text, said.rule, said.more, default]))
    lines = textwrap.wrap(text, 100, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join([f"    {one.name} : {kind}{', optional' if one.optional else ''}", *lines])
