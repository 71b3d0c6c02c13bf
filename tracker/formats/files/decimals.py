"""Parse numbers in files: plain decimal notation only, a subset of Python's syntax."""

from __future__ import annotations

from pathlib import Path

from ...errors import InputError


def decimal(text: str) -> float:
    """Parse a number; infinity and NaN are allowed.

    Raises ValueError if the text is no number; Python's underscores and digits of other scripts are refused.

    Examples
    --------
    >>> decimal(" -1.5e3"), decimal("inf")
    (-1500.0, inf)
    >>> decimal("1_0")
    Traceback (most recent call last):
    ValueError: '1_0' is no decimal number
    """
    _refuse_python(text)
    return float(text)


def decimal_or_nan(text: str) -> float:
    """A number as `decimal` parses it, or NaN for what is none."""
    try:
        return decimal(text)
    except ValueError:
        return float("nan")


def whole(text: str) -> int:
    """A whole number.

    Raises ValueError as `decimal` does, or if the number is not whole or needs more than 63 bits.

    Examples
    --------
    >>> whole("-7")
    -7
    """
    _refuse_python(text)
    number = int(text)
    if abs(number) >= 2**63:
        raise ValueError(f"{text[:60]!r} is too large")
    return number


def row_of(path: Path, number: int, line: str, least: int, most: int | None = None) -> list[float]:
    """Parse the first `least` numbers of a line of at most `most` fields.

    Raises
    ------
    InputError
        Naming the line.
    """
    fields = line.split()
    try:
        if len(fields) < least or (most is not None and len(fields) > most):
            raise ValueError
        return [decimal(field) for field in fields[:least]]
    except ValueError:
        raise InputError(
            f"{path}, line {number}: {line[:60]!r}; {least} numbers are needed. Fix it."
        ) from None


def _refuse_python(text: str) -> None:
    if "_" in text or not text.isascii():
        raise ValueError(f"{text[:60]!r} is no decimal number")
