"""Fixed values: values that the user states and that are then not learned."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from ..compute.tolerances import LARGEST, TINY
from ..errors import SettingsError
from .declare import by_new_names

Values = Mapping[str, float | tuple[float, ...]]
"""Fixed values by name: one number, or one for each of z, y, x."""
EACH_AXIS = ("step", "noise", "gate")
"""Names of values that may be given separately for z, y and x."""
RATES = ("end", "start", "miss", "clutter")
"""Names of probabilities."""
NAMES = (*EACH_AXIS, "persistence_frames", *RATES)
FORMER = {"persistence": "persistence_frames"}
"""Present names of values by their former ones, which are accepted for one release."""

MOST_CLUTTER = 0.98
"""Guard: largest share of ends and of starts that may be clutter."""


def known_of(texts: Iterable[str]) -> dict[str, float | tuple[float, ...]]:
    """Parse fixed values from texts NAME=VALUE or NAME=Z,Y,X.

    Raises
    ------
    SettingsError
        If a text has another form.

    Examples
    --------
    >>> known_of(["noise=0.3,0.1,0.1", "persistence_frames=3"])
    {'noise': (0.3, 0.1, 0.1), 'persistence_frames': 3.0}
    """
    known: dict[str, float | tuple[float, ...]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            values = tuple(map(float, value.split(",")))
        except ValueError:
            raise SettingsError(
                f"{text!r} does not have the form NAME=NUMBER or NAME=Z,Y,X. Write for example noise=0.1."
            ) from None
        known[name.strip()] = values if values[1:] else values[0]
    return known


def text_of(known: Values) -> list[str]:
    """Format fixed values as the texts that `known_of` parses, with the shortest equivalent numbers.

    Examples
    --------
    >>> text_of({"noise": (0.3, 0.1, 0.1), "persistence_frames": 3.0})
    ['noise=0.3,0.1,0.1', 'persistence_frames=3.0']
    """
    return [f"{name}={','.join(map(str, np.atleast_1d(value).tolist()))}" for name, value in known.items()]


def by_present_names(known: Values, say: Callable[[str], object] | None = None) -> Values:
    """Fixed values by their present names; of a former one the message is warned of, or said by `say`.

    Examples
    --------
    >>> by_present_names({"persistence": 3.0}, print)
    persistence is called persistence_frames now; the former name ends with the next release.
    {'persistence_frames': 3.0}
    """
    if not isinstance(known, Mapping):  # `check_known` refuses it
        return known
    return by_new_names(known, FORMER, say or partial(warnings.warn, category=FutureWarning, stacklevel=6))


def check_known(known: Values) -> None:
    """Check the names and ranges of fixed values.

    Raises
    ------
    SettingsError
        If one is invalid; the message says what is valid.

    Examples
    --------
    >>> check_known({"noise": (0.3, 0.1, 0.1), "miss": 0.05})
    >>> check_known({"miss": 1.5})
    Traceback (most recent call last):
    outbid.errors.SettingsError: miss is 1.5; give a probability from 0 to less than 1.
    """
    if not isinstance(known, Mapping):
        raise SettingsError(f"fixed is {known!r}; it must name values: {{'miss': 0.05}}.")
    for name, value in known.items():
        if name not in NAMES:
            raise SettingsError(f"No learned value has the name {name!r}. Choose from: {', '.join(NAMES)}.")
        _check_value(name, value)
    rates = {name: float(np.max(known[name])) for name in RATES if name in known}
    most = MOST_CLUTTER * min(rates.get("end", 1.0), rates.get("start", 1.0))
    if rates.get("clutter", 0.0) > most or most < TINY:
        raise SettingsError(
            f"Every clutter detection starts and ends a track: clutter must be at most {MOST_CLUTTER} of end "
            f"and of start, which must be above {TINY:g}."
        )


def _check_value(name: str, value: float | tuple[float, ...]) -> None:
    if np.asarray(value).dtype.kind not in "iuf":
        raise SettingsError(f"{name} is {value!r}; it must be a number.")
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if values.size != 1 and not (name in EACH_AXIS and values.size == 3):
        wanted = "one number, or three: z, y, x" if name in EACH_AXIS else "one number"
        raise SettingsError(f"{name} is {value}; give {wanted}.")
    if name in RATES:
        least = 0.0 if name in ("miss", "clutter") else math.nextafter(0, 1)
        if not ((least <= values) & (values < 1)).all():
            more = "" if least == 0 else "more than "
            raise SettingsError(f"{name} is {value}; give a probability from {more}0 to less than 1.")
    elif not (values >= 0).all() or (name in EACH_AXIS and not np.isfinite(values).all()):
        raise SettingsError(f"{name} is {value}; it must be 0 or more.")
    elif name in ("step", "gate") and not ((values > 1 / LARGEST) & (values < LARGEST)).all():
        raise SettingsError(f"{name} is {value}; it must be a length above 0.")


def values_along(known: Values, axes: str) -> dict[str, float | tuple[float, ...]]:
    """Fixed values for some of the axes z, y, x: names in `EACH_AXIS` have one value for each axis.

    Examples
    --------
    >>> values_along({"noise": (0.3, 0.1, 0.2), "gate": 2, "end": 0.1}, "zx")
    {'noise': (0.3, 0.2), 'gate': (2.0, 2.0), 'end': 0.1}
    """
    along: dict[str, float | tuple[float, ...]] = {}
    for name, value in known.items():
        values = np.atleast_1d(np.asarray(value, dtype=np.float64))
        if name in EACH_AXIS:
            values = np.broadcast_to(values, 3)[["zyx".index(axis) for axis in axes]]
            along[name] = tuple(values.tolist())
        else:
            along[name] = float(values[0])
    return along
