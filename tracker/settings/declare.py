"""`Setting`: one declaration from which options, rows of forms, checks and the reference are made."""

from __future__ import annotations

import functools
import math
import operator
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from numbers import Real
from typing import Any, TypedDict, TypeVar, Unpack, cast

from ..errors import SettingsError

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound=Callable[..., Any])
_KEY = "setting"
DEVICES = ("auto", "cpu", "gpu")
"""Accepted device names; `auto` uses a GPU if there is one and the problem is large enough."""
RENAMED = "{} is called {} now; the former name ends with the next release."
"""The message about a former name, and the present one."""
AXES = "tuple[float, float, float]"
"""The type of a setting with one number for each of z, y and x."""


@dataclass(frozen=True)
class Setting:
    """What a class of settings declares for a field, in addition to its name, type and default.

    Parameters
    ----------
    text : str
        What it is, in one or two sentences; names of other settings are in `backticks`.
    more : str
        Further sentences for the reference and the tooltip of a form.
    automatic : str
        What None means, in a few words.
    choices : tuple of str
    least, most : float
    above : bool
        Whether the least and the greatest value are themselves out of range.
    unit : str
        Unit in which a form shows it; "length" is the unit of the layer.
    row : str
        Its label in a form and, after a bar, the text next to its box; empty for no row.
    further : bool
        Whether the form shows it under *more*.
    first : float
        Value after the first step up from 0 in a form.
    option : str
        Option of the command, if it is not the name.
    metavar : str
    former : str
        Its former name, and its former option after a space: accepted for one release, with a message.
    needs, excludes : str
        Name of the setting without which, or with which, this one has no effect. In this case a value other
        than the default is refused.
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
    former: str = ""
    needs: str = ""
    excludes: str = ""

    @property
    def rule(self) -> str:
        """A sentence on the setting that it needs or excludes; empty if it always has an effect."""
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


def former_names(settings: type) -> dict[str, str]:
    """The present names of settings by their former ones."""
    renamed = [one for one in declared_in(settings).values() if one.setting.former]
    return {one.setting.former.split()[0]: one.name for one in renamed}


def by_new_names(
    values: Mapping[str, Any], former: Mapping[str, str], say: Callable[[str], object]
) -> dict[str, Any]:
    """Values by present names, given those by former ones; `say` is given a message on each former name."""
    for old in former:
        if old in values:
            say(RENAMED.format(old, former[old]))
    return {former.get(name, name): value for name, value in values.items()}


def present_names(values: Mapping[str, Any], settings: type) -> dict[str, Any]:
    """Values by the present names of their settings; a former name is warned of.

    Examples
    --------
    >>> from .tracking import TrackingSettings
    >>> present_names({"max_gap": 2}, TrackingSettings)
    {'max_gap': 2}
    """
    say = functools.partial(warnings.warn, category=FutureWarning, stacklevel=5)
    return by_new_names(values, former_names(settings), say)


def taking_former_names(settings: type) -> Callable[[_Function], _Function]:
    """Decorator: values may be given by the former names of the settings that they are as well."""

    def decorated(made: _Function) -> _Function:
        @functools.wraps(made)
        def call(*given: object, **values: Unpack[_AnyValues]) -> object:
            return made(*given, **present_names(values, settings))

        return cast(_Function, call)

    return decorated


def with_former_names(settings: _Class) -> _Class:
    """Class decorator: values may be given, and are read, by the former names of their settings as well."""
    settings.__init__ = taking_former_names(settings)(settings.__init__)  # type: ignore[misc]
    for old, new in former_names(settings).items():
        setattr(settings, old, property(operator.attrgetter(new)))
    return settings


class _AnyValues(TypedDict, total=False):
    """Keywords whose names and types the class that is made checks."""


def bound_by(settings: type, other: str) -> dict[str, Declared]:
    """The settings of a class that need or exclude another one, by name."""
    return {
        name: one
        for name, one in declared_in(settings).items()
        if other in (one.setting.needs, one.setting.excludes)
    }


def check_rules(settings: Any) -> None:
    """Refuse a value that has no effect because of another setting.

    Raises
    ------
    SettingsError
        If a value has no effect; the message names both settings.
    """
    for one in declared_in(type(settings)).values():
        value, rule = getattr(settings, one.name), one.setting
        if not value or value == one.default:
            continue
        if rule.needs and getattr(settings, rule.needs) is None:
            raise SettingsError(f"{one.name} needs a {rule.needs}. Set one, or omit {one.name}.")
        if rule.excludes and getattr(settings, rule.excludes) is not None:
            raise SettingsError(excluded(one.name, rule.excludes))


def excluded(name: str, other: str) -> str:
    """The message about two settings that exclude each other.

    Examples
    --------
    >>> excluded("fixed", "max_distance")
    'fixed has no effect with max_distance. Omit one of the two.'
    """
    return f"{name} has no effect with {other}. Omit one of the two."


def check_values(settings: Any) -> None:
    """Refuse values that are not among the declared choices or out of the declared range.

    Raises
    ------
    SettingsError
        If a value is refused; the message states the valid values.
    """
    for one in declared_in(type(settings)).values():
        value, setting = getattr(settings, one.name), one.setting
        if setting.choices and not (isinstance(value, str) and value in setting.choices):
            raise SettingsError(
                f"There is no {one.name} {value!r}. Choose one of: {', '.join(setting.choices)}."
            )
        if value is None or one.kind not in ("float", "int", AXES):
            continue
        many = hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)
        numbers = value if many else (value,)
        if many != (one.kind == AXES) or not all(map(is_number, numbers)):
            wanted = "three numbers" if one.kind == AXES else "a number"
            raise SettingsError(f"{one.name} is {value!r}; it must be {wanted}.")
        if (setting.least, setting.most) == (-math.inf, math.inf):
            continue
        right = len(numbers) == (3 if one.kind == AXES else 1) and all(_is_in(x, setting) for x in numbers)
        if not right or (one.kind == "int" and value != int(value)):
            raise SettingsError(f"{one.name} is {value}; it must be {_range_of(one)}.")


def is_number(value: object) -> bool:
    """Whether a value is a real number; a text is none, nor a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_in(value: float, limits: Setting) -> bool:
    inside = limits.least < value < limits.most if limits.above else limits.least <= value <= limits.most
    return inside and math.isfinite(value)


def _range_of(one: Declared) -> str:
    """The range of valid values, in words."""
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
    """Replace each name in backticks in a text.

    Examples
    --------
    >>> in_words("Needs `max_gap`.", "--{}".format)
    'Needs --max_gap.'
    """
    return re.sub(r"`(\w+)`", lambda found: name(found.group(1)), text)


def documented(settings: _Class) -> _Class:
    """Class decorator that replaces ``{settings}`` in a docstring by the parameters."""
    if settings.__doc__:
        entries = "\n".join(_entry(one) for one in declared_in(settings).values())
        settings.__doc__ = settings.__doc__.replace("    {settings}", entries)
    return settings


def _entry(one: Declared) -> str:
    """The entry of a setting in a docstring."""
    setting = one.setting
    kind = "{" + ", ".join(f'"{name}"' for name in setting.choices) + "}" if setting.choices else one.kind
    kind = kind.replace(AXES, "tuple of 3 float")
    default = f"Default: {setting.automatic}." if setting.automatic else ""
    text = " ".join(filter(None, [setting.text, setting.rule, setting.more, default]))
    lines = textwrap.wrap(text, 100, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join([f"    {one.name} : {kind}{', optional' if one.optional else ''}", *lines])
