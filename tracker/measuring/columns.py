"""The columns of all tables: their units, and whether they are whole numbers; declared here alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Column(NamedTuple):
    """The exponents of length and time of a unit, whether values are whole numbers, and another unit."""

    length: int = 0
    time: int = 0
    whole: bool = False
    unit: str = ""


_WHOLE, _LENGTH, _TIME, _SPEED = Column(whole=True), Column(1), Column(time=1), Column(1, -1)
PATHS: Mapping[str, Column] = {
    "detections": _WHOLE, "start": _TIME, "duration": _TIME, "path": _LENGTH, "displacement": _LENGTH,
    "straightness": Column(), "speed_mean": _SPEED, "speed_median": _SPEED, "msd_1": Column(2),
}  # fmt: skip
"""Of a track, in the order of its table."""
SHAPES: Mapping[str, Column] = {
    "radius_of_gyration": _LENGTH, "turning_angle": Column(unit="deg"), "confinement": Column(),
}  # fmt: skip
"""Of a track, behind what is fitted."""
FITTED: Mapping[str, Column] = {"diffusion": Column(2, -1), "exponent": Column(), "persistence": _TIME}
"""What is fitted to steps."""
COMPARED = (*FITTED, "speed_mean", "straightness", "turning_angle", "confinement", "radius_of_gyration")
"""Quantities of groups."""
COLUMNS: Mapping[str, Column] = {
    **PATHS, **SHAPES, **FITTED,
    **dict.fromkeys(("cycle_time", "cycle_time_median", "time"), _TIME),
    **dict.fromkeys(("dwell_time_median", "first_passage_median", "contact_time_median"), _TIME),
    **{f"localisation_error_{axis}": _LENGTH for axis in "zyx"},
    **{f"drift_{axis}": _LENGTH for axis in "zyx"},
    **{f"velocity_{axis}": _SPEED for axis in "zyx"},
    "speed": _SPEED, "velocity": _SPEED, "neighbour_distance": _LENGTH,
    **dict.fromkeys((
        "generation", "mother", "daughters", "tracks", "track_id", "frame", "appearances", "disappearances",
        "divisions", "cycles", "movies", "other_movies", "visits", "first_passages",
    ), _WHOLE),
}  # fmt: skip
_SPREAD = re.compile("_(error|between_movies|within_movies|low_[0-9]+|high_[0-9]+)$")


def column_of(name: str) -> Column:
    """The declaration of a column; errors have the unit of their value.

    Examples
    --------
    >>> column_of("diffusion_error")[:2], column_of("cycles").whole, column_of("mean_intensity")[:3]
    ((2, -1), True, (0, 0, False))
    """
    return COLUMNS.get(name) or COLUMNS.get(_SPREAD.sub("", name)) or Column()
