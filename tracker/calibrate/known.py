"""Values that the user fixes, which calibration would otherwise learn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from ..motion import SHORT, Motion
from ..refine.linking import LinkModel

EACH_AXIS = ("step", "noise", "gate")
"""Names of values that may be given separately for z, y and x."""
RATES = ("end", "start", "miss", "clutter")
"""Names of probabilities."""
NAMES = (*EACH_AXIS, "persistence", *RATES)

_MOST_CLUTTER = 0.98
"""Largest share of ends and starts that may be clutter."""
_LEAST_RATE = 1e-9
_SMALLEST, _LARGEST = 1e-100, 1e100
"""Range of lengths whose squares do not overflow."""
_LEAST_MOTION = 1e-6
"""Least share of motion in the step variance, if the given noise is larger than the step variance."""


def known_of(texts: Iterable[str]) -> dict[str, float | tuple[float, ...]]:
    """Parse fixed values from texts NAME=VALUE or NAME=Z,Y,X.

    Raises
    ------
    SettingsError
        If a text has another form.

    Examples
    --------
    >>> known_of(["noise=0.3,0.1,0.1", "persistence=3"])
    {'noise': (0.3, 0.1, 0.1), 'persistence': 3.0}
    """
    known: dict[str, float | tuple[float, ...]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            values = tuple(map(float, value.split(",")))
        except ValueError:
            raise SettingsError(
                f"{text!r} is no NAME=NUMBER or NAME=Z,Y,X; write noise=0.1, for example."
            ) from None
        known[name.strip()] = values if values[1:] else values[0]
    return known


def text_of(known: Mapping[str, float | tuple[float, ...]]) -> list[str]:
    """Format fixed values as the texts that `known_of` parses, with the shortest equivalent numbers.

    Examples
    --------
    >>> text_of({"noise": (0.3, 0.1, 0.1), "persistence": 3.0})
    ['noise=0.3,0.1,0.1', 'persistence=3.0']
    """
    return [f"{name}={','.join(map(str, np.atleast_1d(told).tolist()))}" for name, told in known.items()]


def check_known(known: Mapping[str, float | tuple[float, ...]]) -> None:
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
    outbid.errors.SettingsError: miss is 1.5; a probability from 0 to less than 1 is needed.
    """
    for name, told in known.items():
        if name not in NAMES:
            raise SettingsError(f"Nothing learned is called {name!r}. Choose from: {', '.join(NAMES)}.")
        values = np.atleast_1d(np.asarray(told, dtype=np.float64))
        if values.size != 1 and not (name in EACH_AXIS and values.size == 3):
            wanted = "one number, or three: z, y, x" if name in EACH_AXIS else "one number"
            raise SettingsError(f"{name} is {told}; {wanted} is needed.")
        if name in RATES:
            least = 0.0 if name in ("miss", "clutter") else math.nextafter(0, 1)
            if not ((least <= values) & (values < 1)).all():
                more = "" if least == 0 else "more than "
                raise SettingsError(f"{name} is {told}; a probability from {more}0 to less than 1 is needed.")
        elif not (values >= 0).all() or (name in EACH_AXIS and not np.isfinite(values).all()):
            raise SettingsError(f"{name} is {told}; it must be 0 or more.")
        elif name in ("step", "gate") and not ((values > _SMALLEST) & (values < _LARGEST)).all():
            raise SettingsError(f"{name} is {told}; it must be more than 0, and a length.")
    rates = {name: float(np.max(known[name])) for name in RATES if name in known}
    most = _MOST_CLUTTER * min(rates.get("end", 1.0), rates.get("start", 1.0))
    if rates.get("clutter", 0.0) > most or most < _LEAST_RATE:
        raise SettingsError(
            f"Clutter starts and ends: it must be at most {_MOST_CLUTTER} of end and start, which are above "
            f"{_LEAST_RATE:g}."
        )


@dataclass(frozen=True)
class Known:
    """Fixed values for the axes of a movie, in units of position x spacing and frames.

    Parameters
    ----------
    told : mapping
        Values by name (of `NAMES`); names in `EACH_AXIS` have one value for each axis.
    """

    told: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, known: Mapping[str, float | tuple[float, ...]], axes: str) -> Known:
        """Select the values of some of the axes z, y, x."""
        told = {}
        for name, value in known.items():
            values = np.atleast_1d(np.asarray(value, dtype=np.float64))
            if name in EACH_AXIS:
                values = values[["zyx".index(axis) for axis in axes]] if values.size == 3 else values
                values = np.broadcast_to(values, len(axes))
            told[name] = tuple(values.tolist())
        return cls(told)

    @property
    def still(self) -> bool:
        """Whether the persistence is fixed at 0."""
        (time,) = self.told.get("persistence", (np.inf,))
        return time < SHORT

    def but(self, name: str) -> Known:
        """Copy of the values that the user fixed, without the persistence."""
        return Known({each: value for each, value in self.told.items() if each != name})

    def step(self, learned: NDArray[np.float64]) -> NDArray[np.float64]:
        """(axes,) the fixed step, or the learned one."""
        return np.asarray(self.told.get("step", learned), dtype=np.float64)

    def held(self, model: LinkModel) -> LinkModel:
        """Replace learned values of a model by fixed ones.

        If a part of the motion is fixed, the other parts are adjusted so that the variance of a step remains
        the measured or the fixed one.
        """
        if not self.told:
            return model
        model = replace(model, motion=self._motion(model.motion), gate=self.told.get("gate", model.gate))
        return self._with_rates(model)

    def _motion(self, motion: Motion) -> Motion:
        if not {"step", "noise", "persistence"} & set(self.told):
            return motion
        variance = np.square(self.step(np.sqrt(motion.step_variance(1))))
        noise2 = np.square(self.told.get("noise", motion.noise))
        moved = np.maximum(variance - 2 * noise2, _LEAST_MOTION * variance)
        (time,) = self.told.get("persistence", (motion.persistence,))
        noise = tuple(np.sqrt(noise2).tolist())
        if time < SHORT:
            return Motion.static(tuple(np.sqrt(moved).tolist()), noise)
        # As much of it is diffusion as was found; all is velocity if none had been found.
        unit = Motion((0.0,) * motion.axes, (1.0,) * motion.axes, time, (0.0,) * motion.axes).step_variance(1)
        was = np.maximum(motion.step_variance(1) - 2 * np.square(motion.noise), 1e-300)
        share = np.minimum(np.square(motion.diffusion) / was, 1.0) if any(motion.speed) else 0.0
        diffusion, speed = np.sqrt(moved * share), np.sqrt(moved * (1 - share) / unit)
        return Motion(
            tuple(np.broadcast_to(diffusion, motion.axes).tolist()), tuple(speed.tolist()), time, noise
        )

    def _with_rates(self, model: LinkModel) -> LinkModel:
        (clutter,) = self.told.get("clutter", (model.clutter,))
        ends = [self.told.get(name, (getattr(model, name),))[0] for name in ("end", "start")]
        if "clutter" in self.told:
            ends = [max(end, clutter / _MOST_CLUTTER) for end in ends]
        clutter = min(clutter, _MOST_CLUTTER * min(ends))
        follow = np.asarray(model.follow)
        if "miss" in self.told:
            follow = np.maximum(self.told["miss"][0], 1e-9) ** np.arange(len(follow))
        follow = follow / follow.sum() * (1 - ends[0])
        return replace(model, follow=tuple(follow.tolist()), end=ends[0], start=ends[1], clutter=clutter)
