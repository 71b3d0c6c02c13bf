"""Frames of a table whose column holds times, or numbers that may be times."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...particles.arrow import floats_of
from ...particles.calibration import interval_of
from .columns import plain, seconds_in_name
from .rows import Rows

_LOG = logging.getLogger("outbid")
_NAMES = ("t", "time", "times", "position_t")
"""Names of columns of times, without their unit."""
_OFF = 0.25
"""Largest distance of a time from that of its frame, as a share of the interval: half is undecided."""
_LATE = 10_000
"""Number of movie lengths after which a first frame is called late: no recording starts there."""


def are_times(rows: Rows, name: str) -> bool:
    """Whether a column of frames states a unit of time, or holds fractions under the name of a time."""
    if seconds_in_name(name) or not pa.types.is_floating(rows.table[name].type):
        return bool(seconds_in_name(name))
    values = floats_of(rows.table[name])
    fractional = np.isfinite(values).all() and (values != np.rint(values)).any()
    return bool(fractional) and plain(name) in _NAMES


def frames_and_times(rows: Rows, name: str, step: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Frames of a column of times that are `step` apart, or with 1, as the nearest two; and the times."""
    column = rows.table[name]
    times = floats_of(column)
    if step == 1:
        steps = np.diff(np.unique(times[np.isfinite(times)]))
        # Of numbers that are equal but for their last digits.
        rounded = 8 * np.finfo(np.float64).eps * np.abs(times).max(initial=0)
        step = float(steps[steps > rounded].min(initial=np.inf))
        if rows.first and not seconds_in_name(name):
            _LOG.warning(
                "%s: the values of %r are taken for times of frames that are %g apart. For another interval: "
                "--columns frame=%s/INTERVAL (Python: columns=)", rows.path, name, step, name,
            )  # fmt: skip
    return _frames_of(rows, name, times, step), times * (seconds_in_name(name) or 1)


def _frames_of(rows: Rows, name: str, times: NDArray, step: float) -> NDArray[np.int64]:
    """The frames of times that are this far apart."""
    frame = np.rint(times / step)
    far = ~(np.abs(times / step - frame) < _OFF)  # of what is not finite as well
    if far.any():
        raise rows.wrong(
            int(np.argmax(far)), name, f"times are no multiples of {step:g}. Name the time between frames: "
            f"--columns frame={name}/INTERVAL (Python: columns=).",
        )  # fmt: skip
    return frame.astype(np.int64)


def interval_in(rows: Rows, frame: NDArray, features: Mapping[str, NDArray]) -> float | None:
    """Seconds between frames by a column of times: ``time``, or one that states its unit, as ``t [min]``."""
    found = (interval_of(frame, {"time": times}) for times in times_in(features, rows.clock))
    return next((interval for interval in found if interval is not None), None)


def times_in(features: Mapping[str, NDArray], clock: float = 0.0) -> Iterator[NDArray[np.float64]]:
    """Columns of times in seconds: ``time``, or one that states its unit, as ``t [min]``.

    `clock` are the seconds of a unit of ``position_t``; 0 if it is not known.

    Examples
    --------
    >>> [times.tolist() for times in times_in({"t [min]": np.array([0, 2]), "x": np.array([1, 2])})]
    [[0.0, 120.0]]
    """
    for name, values in features.items():
        head = name.split("[")[0].split("(")[0].strip().lower()
        if head in _NAMES and values.dtype.kind in "iuf":
            seconds = clock if head == "position_t" else 0.0
            seconds = seconds or seconds_in_name(name) or float(name == "time")
            if seconds:
                yield values * seconds


def remark_on_frames(rows: Rows, frame: NDArray) -> None:
    """Log whether the numbers of frames may be something else: times, or dates."""
    name = rows.roles["frame"]
    steps = np.diff(frame[np.flatnonzero(np.diff(frame, prepend=-1))])
    apart = int(np.gcd.reduce(steps)) if len(steps) > 1 and not (steps == 1).any() else 1
    if apart > 1:
        _LOG.warning(
            "%s: frames in %r are all %d apart. If they are times: --columns frame=%s/%d (Python: columns=)",
            rows.path, name, apart, name, apart,
        )  # fmt: skip
    elif len(steps) and frame[0] > _LATE * (int(frame[-1]) - int(frame[0]) + 1):
        _LOG.warning("%s: frames begin at %d. Is %r the column of frames?", rows.path, int(frame[0]), name)
