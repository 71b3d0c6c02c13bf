"""What numbers of positions and frames mean: unit of length, size of a step, interval and origin."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError

METRES = {"nanometer": 1e-9, "micrometer": 1e-6, "millimeter": 1e-3, "centimeter": 1e-2, "meter": 1.0}
"""Units of length that can be converted into each other, in metres."""
SYMBOLS = {"pixel": "px", "nanometer": "nm", "micrometer": "µm", "millimeter": "mm"}
"""Short names of units, as messages and plots show them."""
_UNEVEN = 0.01
"""Error level: share of an interval by which times of frames may deviate from even ones: decimals round."""
_SAME = 1e-6
"""Guard: relative difference of two intervals below which they are the same, as decimals in files round."""


@dataclass(frozen=True)
class Calibration:
    """What the numbers of detections and voxels mean: a place is number times `spacing` plus `origin`.

    Positions in files are places: their spacing is 1 and their origin 0. Those of layers and images are
    numbers of voxels.

    Parameters
    ----------
    unit : str
        Unit of places, for example ``"pixel"`` or ``"micrometer"``.
    spacing : (float, float, float)
        Size of a step of the numbers along z, y, x, in `unit`.
    interval : float or None
        Seconds between two frame numbers; None if it is not known: times are in frames then.
    origin : (float, float, float)
        Place of the number 0 along z, y, x, in `unit`.

    Raises
    ------
    SettingsError
        If the interval is not above 0.

    Examples
    --------
    >>> voxels = Calibration("micrometer", (1, 0.4, 0.4), 20)
    >>> voxels.placed(np.array([[3.0, 5.0, 10.0]])).tolist(), str(voxels)
    ([[3.0, 2.0, 4.0]], 'positions in µm, times in s')
    """

    unit: str = "pixel"
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    interval: float | None = None
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if self.interval is not None and not 0 < self.interval < np.inf:
            raise SettingsError(f"The frame interval is {self.interval}; it must be above 0.")

    def __str__(self) -> str:
        return f"positions in {self.symbol}, times in {self.clock}"

    @property
    def symbol(self) -> str:
        """Short name of the unit of length."""
        return SYMBOLS.get(self.unit, self.unit)

    @property
    def clock(self) -> str:
        """Unit of times: s, or frames if the interval is not known."""
        return "frames" if self.interval is None else "s"

    @property
    def is_of_places(self) -> bool:
        """Whether numbers are places."""
        return tuple(self.spacing) == (1, 1, 1) and tuple(self.origin) == (0, 0, 0)

    @property
    def of_places(self) -> Calibration:
        """The calibration of `placed` numbers."""
        return Calibration(self.unit, interval=self.interval)

    def every(self, stride: int) -> Calibration:
        """The calibration of every `stride`-th frame."""
        return self if self.interval is None else replace(self, interval=self.interval * stride)

    def placed(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Places (N, 3) of numbers (N, 3)."""
        return numbers if self.is_of_places else numbers * self.spacing + self.origin

    def numbers(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers (N, 3) of places (N, 3)."""
        return places if self.is_of_places else (places - self.origin) / self.spacing

    def factor(self, unit: str) -> float | None:
        """By which places are multiplied to be in another unit; None where there is no such number.

        Examples
        --------
        >>> Calibration("micrometer").factor("nanometer"), Calibration().factor("nanometer")
        (1000.0, None)
        """
        if unit == self.unit:
            return 1.0
        if self.unit in METRES and unit in METRES:
            return float(f"{METRES[self.unit] / METRES[unit]:.12g}")
        return None

    def as_options(self) -> str:
        """Options of `outbid measure` that state it, where a file has no place for it; empty if unknown.

        Examples
        --------
        >>> Calibration("nanometer", (1000, 400, 400), 20).as_options(), Calibration().as_options()
        ('--spacing 1 0.4 0.4 --interval 20', '')
        """
        micrometers = self.factor("micrometer")
        sizes = [] if micrometers is None else [f"{size * micrometers:g}" for size in self.spacing]
        size = ["--spacing", *sizes] if sizes else []
        return " ".join([*size, *([] if self.interval is None else ["--interval", f"{self.interval:g}"])])

    def as_dict(self) -> dict[str, object]:
        """Plain values for run records, of places."""
        return {"unit": self.unit, "interval": self.interval}


UNKNOWN = Calibration()
"""Positions in pixels, times in frames."""


def recorded_interval(record: Mapping[str, Any] | None) -> float | None:
    """Seconds between frames that a run record states: of its output, or as older versions of its input."""
    record = record or {}
    for entry in (record.get("calibration"), record.get("input"), record):
        try:
            interval = float(entry["interval"]) if isinstance(entry, Mapping) else None
        except (KeyError, TypeError, ValueError):
            continue
        if interval is not None and 0 < interval < np.inf:
            return interval
    return None


def interval_of(frame: NDArray, features: Mapping[str, NDArray]) -> float | None:
    """Seconds between frames by a feature ``time``, if its values grow evenly with the frame.

    Examples
    --------
    >>> interval_of(np.array([0, 1, 4]), {"time": np.array([0.0, 0.5, 2.0])})
    0.5
    """
    time = features.get("time")
    if time is None or not len(frame) or time.dtype.kind not in "iuf" or frame[-1] == 0:
        return None
    alone = frame[0] == frame[-1]  # then times count from frame 0
    since, begin = (0, 0.0) if alone else (int(frame[0]), float(time[0]))
    interval = float(f"{(float(time[-1]) - begin) / (int(frame[-1]) - since):.12g}")
    if not 0 < interval < np.inf:
        return None
    off = np.abs(time - begin - (frame.astype(np.int64) - since) * interval)
    return interval if (off <= _UNEVEN * interval).all() else None


def uneven(times: Sequence[float]) -> tuple[float, ...]:
    """Times of frames if they grow, but not evenly; else none, as an interval states all.

    Examples
    --------
    >>> uneven([0.0, 10.0, 31.0]), uneven([0.0, 10.0, 20.0])
    ((0.0, 10.0, 31.0), ())
    """
    time = np.asarray(times, np.float64)
    grows = len(time) > 2 and bool((np.diff(time) > 0).all()) and bool(np.isfinite(time).all())
    even = grows and interval_of(np.arange(len(time)), {"time": time}) is not None
    return tuple(time.tolist()) if grows and not even else ()


def same_interval(one: float | None, other: float | None) -> bool:
    """Whether two intervals that are known are the same."""
    return one is None or other is None or abs(one - other) <= _SAME * max(one, other)


def calibration_given(
    given: Calibration | Sequence[float] | None,
    own: Calibration = UNKNOWN,
    spacing: Sequence[float] | None = None,
) -> Calibration:
    """The calibration that a caller gave, else `own`; a voxel size, the former argument, is warned of.

    Raises
    ------
    SettingsError
        If it is neither a calibration nor a voxel size.

    Examples
    --------
    >>> calibration_given(None, Calibration("micrometer"))
    Calibration(unit='micrometer', spacing=(1.0, 1.0, 1.0), interval=None, origin=(0.0, 0.0, 0.0))
    """
    if isinstance(given, Calibration):
        return given
    size = given if spacing is None else spacing
    if size is None:
        return own
    warnings.warn(
        "The size of a voxel is given as calibration=outbid.Calibration(unit, (z, y, x)) now; a bare spacing "
        "ends with the next release.", FutureWarning, stacklevel=3,
    )  # fmt: skip
    return replace(own, spacing=checked_spacing(size))


def checked_spacing(spacing: Sequence[float]) -> tuple[float, float, float]:
    """The size of a voxel along z, y, x, above 0; raises SettingsError."""
    sizes = list(spacing) if isinstance(spacing, Sequence | np.ndarray) else []
    if len(sizes) != 3 or not all(isinstance(size, Real) and 0 < size < np.inf for size in sizes):
        raise SettingsError(f"The spacing is {spacing!r}; give z, y and x, above 0.")
    z, y, x = map(float, sizes)
    return z, y, x
