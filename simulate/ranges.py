"""Checks of the numbers that a simulation is given."""

from __future__ import annotations

from math import inf, isfinite

from outbid.tracker.errors import SettingsError


def require(name: str, value: float, least: float, most: float = inf) -> None:
    """Refuse a setting that is not finite, or not within its range, ends included.

    Raises
    ------
    SettingsError
        With the name, the value and the range.

    Examples
    --------
    >>> require("miss", 0.1, 0, 1)
    >>> require("miss", 1.5, 0, 1)
    Traceback (most recent call last):
    outbid.tracker.errors.SettingsError: miss is 1.5; it must be from 0 to 1.
    """
    if isfinite(value) and least <= value <= most:
        return
    wanted = f"finite and {least:g} or more" if most == inf else f"from {least:g} to {most:.10g}"
    raise SettingsError(f"{name} is {value}; it must be {wanted}.")
