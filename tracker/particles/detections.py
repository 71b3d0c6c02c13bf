"""Detections: positions of particles in each frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, SettingsError, refuse_unlike
from .calibration import UNKNOWN, Calibration
from .html import html_table

if TYPE_CHECKING:
    import pyarrow as pa

TIME = "time"
"""Name of the feature with the time."""
_MOST_FRAMES = 100_000_000
"""Largest range of frame numbers that `frame_start` may index (0.8 GB of offsets)."""


@dataclass(frozen=True, eq=False, repr=False)
class Detections:
    """Points seen in the frames of a movie, sorted by frame, as a struct of arrays.

    Parameters
    ----------
    frame : (N,) int32 array
        Frame number of every detection, non-decreasing.
    position : (N, 3) float64 array
        Axes z, y, x, in `unit`; 2D data carry z = 0.
    calibration : Calibration
        Unit of the positions and time between frames; a text is taken for the unit.
    features : mapping of str to (N,) array
        Other values of each detection, such as its intensity. The linker keeps them and does not use them.

    Raises
    ------
    InputError
        If the shapes disagree, the frames decrease, or a position is not finite.

    See Also
    --------
    Detections.from_table : takes the rows in any order, and 2D points.

    Examples
    --------
    >>> seen = Detections.from_table([1, 0, 1], [[0, 0, 1], [0, 0, 0], [0, 5, 5]])
    >>> seen.frame.tolist(), len(seen), seen.frame_count
    ([0, 1, 1], 3, 2)
    >>> seen.position[seen.rows_of(1)].tolist()
    [[0.0, 0.0, 1.0], [0.0, 5.0, 5.0]]
    """

    frame: NDArray[np.int32]
    position: NDArray[np.float64]
    calibration: Calibration = UNKNOWN
    features: Mapping[str, NDArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.calibration, str):
            object.__setattr__(self, "calibration", Calibration(self.calibration))
        if not (isinstance(self.frame, np.ndarray) and isinstance(self.position, np.ndarray)):
            raise InputError("Detections need arrays. Detections.from_table converts lists and sorts them.")
        count = len(self.frame)
        if self.frame.shape != (count,) or self.position.shape != (count, 3):
            raise InputError(
                f"Detections need frame (N,) and position (N, 3); got {self.frame.shape} and "
                f"{self.position.shape}. Give one z, y, x triple for every frame number."
            )
        for name, values in self.features.items():
            if values.shape != (count,):
                raise InputError(
                    f"Feature {name!r} has shape {values.shape}; it needs one value for each of "
                    f"the {count} detections."
                )
        if self.frame.dtype != np.int32 or self.position.dtype != np.float64:
            raise InputError(
                f"Detections hold int32 frames and float64 positions; got {self.frame.dtype} and "
                f"{self.position.dtype}. Detections.from_table converts."
            )
        if (self.frame[1:] < self.frame[:-1]).any():
            raise InputError("Frames must not decrease. Detections.from_table sorts rows by frame.")
        with np.errstate(over="ignore", invalid="ignore"):
            total = self.position.sum()  # finite only if all are, and quicker than a look at each
        if not np.isfinite(total) and not (finite := np.isfinite(self.position)).all():
            row = int(np.argmin(finite.all(axis=1)))
            raise InputError(
                f"Detection {row} (frame {self.frame[row]}) has position {self.position[row].tolist()}; "
                "positions must be finite. Remove the row or fix it."
            )

    @classmethod
    def from_table(
        cls,
        frame: ArrayLike,
        position: ArrayLike,
        *,
        unit: str | None = None,
        features: Mapping[str, ArrayLike] | None = None,
        calibration: Calibration = UNKNOWN,
    ) -> Detections:
        """Detections from rows in any order; rows of one frame keep their relative order.

        Parameters
        ----------
        frame : (N,) array_like of int
            Frame numbers; floats are taken if they are whole.
        position : (N, 3) or (N, 2) array_like of float
            z, y, x or y, x, in `unit`.
        unit : str, optional
            Of the positions, for example ``"micrometer"``; by default that of the calibration.
        features, calibration
            As in `Detections`.

        Raises
        ------
        InputError
            If a frame is fractional or does not fit int32, or as `Detections`.
        """
        frame_given = np.asarray(frame)
        if frame_given.size == 0:
            frame_given = frame_given.astype(np.int32)
        # np.rint refuses strings and objects with a TypeError of its own: ask first.
        if frame_given.dtype.kind not in "iuf":
            raise InputError(f"Frames must be whole numbers; got values of type {frame_given.dtype}.")
        if frame_given.ndim != 1:
            raise InputError(f"Frames are a list of numbers; got an array of shape {frame_given.shape}.")
        whole = (
            np.isfinite(frame_given) & (frame_given == np.rint(frame_given)) & (np.abs(frame_given) < 2**31)
        )
        if not whole.all():
            row = int(np.argmin(whole))
            raise InputError(
                f"Row {row} has frame {frame_given[row]}; frames must be whole numbers below 2^31. "
                "Divide time by the frame interval, or fix the row."
            )
        given = np.asarray(position)
        if given.size and given.dtype.kind not in "iuf":
            raise InputError(f"Positions must be numbers; got values of type {given.dtype}.")
        refuse_unlike(str, "the name of a unit", {"unit": unit})
        refuse_unlike(Calibration, "a Calibration", {"calibration": calibration})
        refuse_unlike(Mapping, "a mapping of names to columns", {"features": features})
        odd = [name for name, values in (features or {}).items() if np.shape(values)[:1] != frame_given.shape]
        if odd:
            raise InputError(f"Feature {odd[0]!r} needs a value for each of {len(frame_given)} detections.")
        points = given.astype(np.float64)
        if points.size == 0:
            points = points.reshape(0, 3)
        if points.ndim == 2 and points.shape[1] == 2:
            points = np.column_stack([np.zeros(len(points)), points])
        order = np.argsort(frame_given, kind="stable")
        return cls(
            np.ascontiguousarray(frame_given[order], dtype=np.int32),
            np.ascontiguousarray(points[order]) if points.shape == (len(order), 3) else points,
            calibration if unit is None else replace(calibration, unit=unit),
            {name: np.asarray(values)[order] for name, values in (features or {}).items()},
        )

    @classmethod
    def joined(cls, parts: Sequence[Detections]) -> Detections:
        """The detections of one or more parts, one after the other, with the features of the last."""
        names = list(parts[-1].features)
        return cls(
            np.concatenate([one.frame for one in parts]), np.concatenate([one.position for one in parts]),
            parts[-1].calibration,
            {name: np.concatenate([one.features[name] for one in parts]) for name in names},
        )  # fmt: skip

    @property
    def unit(self) -> str:
        """Unit of the positions, for example ``"pixel"`` or ``"micrometer"``."""
        return self.calibration.unit

    def placed(self) -> Detections:
        """These detections with places for positions, as files have them: in the unit, from its origin.

        Examples
        --------
        >>> voxels = Calibration("micrometer", spacing=(1.0, 0.4, 0.4))
        >>> Detections.from_table([0], [[1, 2, 5]], calibration=voxels).placed().position.tolist()
        [[1.0, 0.8, 2.0]]
        """
        if self.calibration.is_of_places:
            return self
        position = self.calibration.placed(self.position)
        return replace(self, position=position, calibration=self.calibration.of_places)

    def in_unit(self, unit: str) -> Detections:
        """These detections with places in another unit; as they are where it cannot be converted.

        Examples
        --------
        >>> seen = Detections.from_table([0], [[2000, 300, 0]], unit="nanometer")
        >>> seen.in_unit("micrometer").position.tolist(), seen.in_unit("pixel").unit
        ([[2.0, 0.3, 0.0]], 'nanometer')
        """
        placed = self.placed()
        factor = placed.calibration.factor(unit)
        if factor is None or factor == 1:
            return placed
        calibration = replace(placed.calibration, unit=unit)
        return replace(placed, position=placed.position * factor, calibration=calibration)

    def on_grid(self, grid: Calibration) -> Detections:
        """These detections with numbers of another calibration, such as voxels of an image, for positions.

        Positions in pixels are voxels of an image that has a unit.

        Raises
        ------
        SettingsError
            If their unit cannot be converted.

        Examples
        --------
        >>> seen = Detections.from_table([0], [[2000, 300, 300]], unit="nanometer")
        >>> seen.on_grid(Calibration("micrometer", (2.0, 0.5, 0.5))).position.round(6).tolist()
        [[1.0, 0.6, 0.6]]
        """
        own = self.calibration
        if own.unit == "pixel" != grid.unit:
            return replace(self, calibration=replace(grid, interval=own.interval))
        factor = own.factor(grid.unit)
        if factor is None:
            raise SettingsError(
                f"Positions in {own.unit!r} do not fit voxels in {grid.unit!r}. State the size of voxels: "
                "--spacing Z Y X."
            )
        position = grid.numbers(own.placed(self.position) * factor)
        return replace(self, position=position, calibration=replace(grid, interval=own.interval))

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        features = f", features {', '.join(self.features)}" if self.features else ""
        return f"<Detections: {len(self):,} in {self.frame_count:,} frames, {self.unit}{features}>"

    def _repr_html_(self) -> str:
        """A short table, for notebooks."""
        low, high = (self.position.min(axis=0), self.position.max(axis=0)) if len(self) else np.zeros((2, 3))
        extent = {axis: f"{low[k]:.4g} to {high[k]:.4g}" for k, axis in enumerate("zyx")}
        features = ", ".join(self.features) or "none"
        facts = {"detections": f"{len(self):,}", "frames": self.frame_range, **extent}
        return html_table("Detections", facts | {"unit": self.unit, "features": features})

    def to_arrow(self) -> pa.Table:
        """An Arrow table, one row a detection: frame, z, y, x and the features."""
        from .tables import table_of_detections

        return table_of_detections(self)

    def to_dataframe(self) -> Any:
        """A pandas DataFrame, one row a detection: frame, z, y, x and the features.

        Raises
        ------
        ResourceError
            If pandas is not installed; for polars, ``polars.DataFrame(detections)``.
        """
        from .tables import pandas_of

        return pandas_of(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the table to libraries that read Arrow data, such as polars (PyCapsule interface)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @property
    def first_frame(self) -> int:
        """Number of the first frame with a detection; 0 without detections."""
        return int(self.frame[0]) if len(self.frame) else 0

    @property
    def frame_count(self) -> int:
        """Number of frames from the first to the last with a detection, including empty ones in between."""
        return int(self.frame[-1]) - int(self.frame[0]) + 1 if len(self.frame) else 0

    @property
    def frame_range(self) -> str:
        """First and last frame with a detection, in words."""
        return f"{self.frame[0]} to {self.frame[-1]}" if len(self) else "none"

    @cached_property
    def frame_start(self) -> NDArray[np.int64]:
        """(frame_count + 1,) int64: frame `first_frame` + k holds rows frame_start[k] to frame_start[k + 1].

        Raises
        ------
        InputError
            If the frame numbers span more than 10^8 frames.
        """
        if self.frame_count > _MOST_FRAMES:
            raise InputError(
                f"The frames run from {self.frame[0]} to {self.frame[-1]}: more than {_MOST_FRAMES} "
                "frames. Number the frames consecutively, or remove the stray row."
            )
        # In the type of the frames: for another, NumPy would convert all of them.
        numbers = np.arange(self.frame_count, dtype=np.int32) + np.int32(self.first_frame)
        return np.append(np.searchsorted(self.frame, numbers), len(self)).astype(np.int64)

    def rows_of(self, frame: int) -> slice:
        """Rows of the detections in one frame, given its frame number; an empty slice if it has none."""
        if not 0 <= frame - self.first_frame < self.frame_count:
            return slice(0, 0)
        number = np.int32(frame)  # in the type of the frames: for another, NumPy would convert all of them
        return slice(*(int(np.searchsorted(self.frame, number, side)) for side in ("left", "right")))

    def take(self, rows: NDArray | slice) -> Detections:
        """A subset of the detections: `rows` is a slice, a boolean mask (N,) or increasing indices."""
        if isinstance(rows, slice) and rows.step is None:
            return self._part(rows)
        return Detections(
            self.frame[rows],
            self.position[rows],
            self.calibration,
            {name: values[rows] for name, values in self.features.items()},
        )

    def _part(self, rows: slice) -> Detections:
        """Consecutive detections, which are as valid as these and are not checked again."""
        part = object.__new__(Detections)
        features = {name: values[rows] for name, values in self.features.items()}
        given = self.frame[rows], self.position[rows], self.calibration, features
        for name, value in zip(("frame", "position", "calibration", "features"), given, strict=True):
            object.__setattr__(part, name, value)
        return part

    def every(self, stride: int) -> Detections:
        """Detections of every `stride`-th frame from the first one on, with frames renumbered 0, 1, 2, …"""
        since_first = self.frame.astype(np.int64) - self.first_frame
        kept = since_first % stride == 0
        frame = (since_first[kept] // stride).astype(np.int32)
        return replace(self.take(kept), frame=frame, calibration=self.calibration.every(stride))


def in_places(detections: Detections, movie: Calibration, times: Sequence[float] = ()) -> Detections:
    """Detections of a movie from its origin on, with its interval and times.

    Parameters
    ----------
    detections : Detections
        Positions are from the first voxel, in the unit of the movie.
    movie : Calibration
        Of the movie's voxels and frames.
    times : sequence of float
        Seconds of each frame of the movie, if they are not even.
    """
    if any(movie.origin):
        detections = replace(detections, position=detections.position + movie.origin)
    timed = detections if movie.interval is None else with_time(detections, movie.interval)
    if not len(times):
        return timed
    return replace(timed, features=dict(timed.features) | {TIME: np.asarray(times)[timed.frame]})


def with_time(detections: Detections, interval: float) -> Detections:
    """The detections with an interval, and the feature ``time``: frame number times this interval.

    Parameters
    ----------
    detections : Detections
    interval : float
        Seconds between two frames.

    Raises
    ------
    SettingsError
        If the interval is not above 0.

    Examples
    --------
    >>> with_time(Detections.from_table([0, 4], [[0, 0, 0], [0, 0, 1]]), 0.5).features["time"].tolist()
    [0.0, 2.0]
    """
    calibration = replace(detections.calibration, interval=float(interval))
    features = dict(detections.features) | {TIME: detections.frame * float(interval)}
    return replace(detections, calibration=calibration, features=features)
