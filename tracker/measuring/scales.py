"""Units of what is measured, and positions in them without drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError, SettingsError
from ..particles.calibration import METRES, SYMBOLS, checked_spacing
from ..particles.tracks import Tracks

_SHORT = SYMBOLS | {"micrometer": "um"}

SAME = 0.01
"""Error level: share by which intervals of movies that are pooled may differ; D does as much."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Scale:
    """The unit of length, and the time between two frame numbers.

    Parameters
    ----------
    length : str
        Short name of the unit of length.
    interval : float or None
        Seconds; None if it is not known: times are in frames then.
    """

    length: str = "px"
    interval: float | None = None

    @property
    def frame(self) -> float:
        """Time between two frame numbers, in `time`."""
        return self.interval or 1.0

    @property
    def time(self) -> str:
        """Short name of the unit of time."""
        return "s" if self.interval else "frame"

    def is_like(self, other: Scale) -> bool:
        """Whether tracks of the other scale can be measured together with those of this one."""
        alike = (self.length, self.time) == (other.length, other.time)
        return alike and abs(self.frame - other.frame) <= SAME * self.frame

    def unit(self, length: int, time: int) -> str:
        """The unit of a quantity from its exponents of length and time.

        Examples
        --------
        >>> Scale("um", 0.5).unit(2, -1), Scale().unit(0, 1), Scale().unit(0, 0)
        ('um^2/s', 'frame', '')
        """
        above = "" if not length else self.length + ("" if length == 1 else f"^{length}")
        if time > 0:
            return self.time
        return above if time == 0 else f"{above or 1}/{self.time}" + ("" if time == -1 else f"^{-time}")


def on_scales(scales: Sequence[Scale], movies: Sequence[str]) -> str:
    """Why movies of several scales are not measured together, and what to do; `movies` are their names."""
    several: dict[Scale, list[str]] = {}
    for scale, movie in zip(scales, movies, strict=True):
        several.setdefault(scale, []).append(movie)
    if len({(scale.length, scale.time) for scale in several}) > 1:
        units = " and ".join(sorted({f"{one.length}, {one.frame:g} {one.time}" for one in several}))
        return f"The movies differ in their units: {units}. Give --spacing and --interval."
    each = "; ".join(
        f"{scale.frame:g} {scale.time}: {names[0]}" + (f" and {len(names) - 1} more" if names[1:] else "")
        for scale, names in sorted(several.items(), key=lambda one: one[0].frame)
    )
    return (
        f"The movies differ in their intervals ({each}), and a motion is fitted to steps over one. Run "
        "outbid measure once for each interval: diffusion, persistence and speeds are in s in every table, "
        "so their rows can be compared; mean square displacements over different lags cannot be averaged. "
        "If an interval is wrong, --interval S states one for all."
    )


def scaled(
    tracks: Tracks, record: Record, spacing: Sequence[float] | None, interval: float | None
) -> tuple[Tracks, Scale]:
    """The tracks with positions in micrometers, if a unit is known, and the scale of space and time.

    Parameters
    ----------
    tracks : Tracks
    record : mapping
        Their run record, which may hold the interval and the size of a voxel.
    spacing : 3 float, optional
        Micrometers of a voxel along z, y, x: positions are multiplied by it.
    interval : float, optional
        Seconds between two frame numbers.

    Raises
    ------
    SettingsError
        If a value is not above 0.
    """
    seen = tracks.detections.placed()
    interval = seen.calibration.interval if interval is None else interval
    if interval is not None and not 0 < interval < np.inf:
        raise SettingsError(f"The interval is {interval}; it must be a number of seconds above 0.")
    tracks, known = replace(tracks, detections=seen), _spacing_left(tracks, record)
    if spacing is not None:
        factor, name = np.asarray(checked_spacing(spacing), dtype=np.float64), "um"
    elif seen.unit in METRES:
        factor, name = known * (seen.calibration.factor("micrometer") or 1.0), "um"
    else:
        factor, name = known, _SHORT.get(seen.unit, seen.unit)
    return _moved(tracks, tracks.detections.position * factor), Scale(name, interval)


def recorded_spacing(record: Record) -> np.ndarray:
    """Size of a voxel by which tracking multiplied the positions; 1 if the record states none."""
    settings = record.get("settings")
    size = settings.get("spacing") if isinstance(settings, Mapping) else None
    if record.get("command") != "track" or not isinstance(size, Sequence) or len(size) != 3:
        return np.ones(3)
    return np.asarray(size, dtype=np.float64)


def _spacing_left(tracks: Tracks, record: Record) -> np.ndarray:
    """By what places are multiplied still: the voxel size of tracking, unless the tracks have one."""
    return recorded_spacing(record) if tracks.detections.calibration.is_of_places else np.ones(3)


def without_drift(tracks: Tracks, record: Record) -> tuple[Tracks, float]:
    """Subtract the drift that tracking learned; also the largest shift, 0 if no drift was learned.

    Parameters
    ----------
    tracks : Tracks
        As tracking wrote them, in the unit of the input.
    record : mapping
        Their run record.

    Raises
    ------
    InputError
        If the record does not fit the tracks.

    Examples
    --------
    >>> from ..particles.detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 3]])
    >>> record = {"learned": {"drift": [[0, 0], [0, 2]], "axes": "yx", "interval": 1, "time": None}}
    >>> still, farthest = without_drift(Tracks(seen, np.array([[0, 1]])), record)
    >>> still.detections.position[:, 2].tolist(), farthest
    ([0.0, 1.0], 2.0)
    """
    learned = record.get("learned")
    learned = learned if isinstance(learned, Mapping) else {}
    if learned.get("drift") is None or len(tracks.detections) == 0:
        return tracks, 0.0
    try:
        drift = np.asarray(learned["drift"], dtype=np.float64)
        columns = ["zyx".index(axis) for axis in learned["axes"]]
        seen = tracks.detections
        row = (seen.frame.astype(np.int64) - seen.first_frame) // int(learned.get("interval", 1))
        if learned.get("time") is not None:
            row = np.searchsorted(np.asarray(learned["time"]), row)
        shift = np.zeros(seen.position.shape)
        shift[:, columns] = drift[np.minimum(row, len(drift) - 1)] / recorded_spacing(record)[columns]
    except (KeyError, ValueError, TypeError, IndexError):
        raise InputError(
            "The drift in the run record does not fit the tracks. To keep the drift: --drift none."
        ) from None
    return _moved(tracks, seen.position - shift), float(np.linalg.norm(drift, axis=1).max(initial=0.0))


def _moved(tracks: Tracks, position: np.ndarray) -> Tracks:
    seen = tracks.detections
    return replace(tracks, detections=replace(seen, position=position))
