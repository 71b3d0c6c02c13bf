"""Range checks of the settings of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

from outbid.errors import SettingsError

Axes = tuple[float, float, float]
"""A value along each of z, y, x."""


def require(name: str, value: float, least: float, most: float = inf) -> None:
    """Raise an error if a setting is not finite or not within its range, ends included.

    Raises
    ------
    SettingsError
        With the name, the value and the range.

    Examples
    --------
    >>> require("miss", 0.1, 0, 1)
    >>> require("miss", 1.5, 0, 1)
    Traceback (most recent call last):
    outbid.errors.SettingsError: miss is 1.5; it must be from 0 to 1.
    """
    if isfinite(value) and least <= value <= most:
        return
    wanted = f"finite and {least:g} or more" if most == inf else f"from {least:g} to {most:.10g}"
    raise SettingsError(f"{name} is {value}; it must be {wanted}.")


def require_axes(name: str, values: Sequence[float], least: float) -> None:
    """Raise an error if a setting along z, y, x is not three numbers, or one is out of range.

    Raises
    ------
    SettingsError
        As `require`, with the axis.

    Examples
    --------
    >>> require_axes("noise", (0.3, -0.1, 0.1), 0)
    Traceback (most recent call last):
    outbid.errors.SettingsError: noise along y is -0.1; it must be finite and 0 or more.
    """
    if len(values) != 3:
        raise SettingsError(f"{name} is {values}; it must be three numbers, along z, y and x.")
    for axis, value in zip("zyx", values, strict=True):
        require(f"{name} along {axis}", value, least)
