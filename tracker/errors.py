"""Exceptions, grouped by who can fix the problem; each class has the exit code of the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LONGEST = 1000
_END = 300
"""Longest message in characters, and the part kept of its end, which states the remedy."""
_SHOWN = 60
"""Characters of a wrong value that a message shows."""
_BREAK = re.compile(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*")


def one_line(text: str) -> str:
    r"""Return the text as one printable line; text from files may contain control characters.

    Examples
    --------
    >>> print(one_line("a.csv: \x1b[31m'red'\nFix it."))
    a.csv: \x1b[31m'red' Fix it.
    """
    flat = _BREAK.sub(" ", text).strip()
    shown = "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in flat)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - _END]} … {shown[-_END:]}"


class OutbidError(Exception):
    """Base of the errors that Outbid raises on purpose; the message is one line and states the remedy."""

    exit_code = 70
    """Exit code of the command. Subclasses replace 70, which means a bug; 1 is a score below a limit."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class SettingsError(OutbidError, ValueError):
    """A setting, option or configuration file is invalid."""

    exit_code = 2


class InputError(OutbidError, ValueError):
    """The data cannot be used; the message names the file, the row or frame, and the remedy."""

    exit_code = 3


class ResourceError(OutbidError, RuntimeError):
    """The machine lacks something: memory, disk space, a GPU or an optional package."""

    exit_code = 4


class SolverError(OutbidError, RuntimeError):
    """A solver ended without a usable assignment."""

    exit_code = 5


def refuse_unlike(kind: type | tuple[type, ...], wanted: str, values: Mapping[str, object]) -> None:
    """Refuse arguments that are neither None nor of a kind: a SettingsError that names the first.

    Examples
    --------
    >>> refuse_unlike(int, "a whole number", {"workers": 2, "count": None})
    >>> refuse_unlike(int, "a whole number", {"workers": "2"})
    Traceback (most recent call last):
    outbid.errors.SettingsError: workers is '2'; it must be a whole number.
    """
    for name, value in values.items():
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise SettingsError(f"{name} is {repr(value)[:_SHOWN]}; it must be {wanted}.")
