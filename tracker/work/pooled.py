"""Fit one motion model to many movies, so that conditions are compared under the same model."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import formats
from ..compute.tolerances import TINY
from ..errors import InputError
from ..formats.files.outputs import write_whole
from ..formats.files.records import marked_bytes
from ..formats.tables.columns import AS_NAMED
from ..settings.fixed import EACH_AXIS, MOST_CLUTTER, Values, by_present_names, check_known
from ..tracking import TrackingSettings, track
from .jobs import run_record

if TYPE_CHECKING:
    from ..learned.summary import Summary

_LOG = logging.getLogger("outbid")


@dataclass(frozen=True)
class PooledModel:
    """The model learned from several movies together.

    Parameters
    ----------
    known : mapping
        As `TrackingSettings` takes it: the median of each value over the movies.
    spread : mapping
        Standard deviation of each over the movies; of lengths that of the first axis that varies.
    movies : sequence of mapping
        The learned values of each movie, with its name.
    """

    known: Values
    spread: Mapping[str, float]
    movies: Sequence[Mapping[str, object]]

    def __str__(self) -> str:
        lines = [f"Learned from {len(self.movies)} movies (median, standard deviation over the movies):"]
        for name, value in self.known.items():
            values = ", ".join(f"{each:.4g}" for each in np.atleast_1d(value))
            lines.append(f"{name:<12} {values} ± {self.spread[name]:.2g}")
        return "\n".join(lines)


def learn_many(
    sources: Sequence[Path],
    settings: TrackingSettings,
    *,
    columns: Mapping[str, str] = AS_NAMED,
    workers: int | None = None,
) -> PooledModel:
    """Learn from each movie, and take the median of every value.

    Parameters
    ----------
    sources : sequence of Path
        Tables of detections, in the same unit.
    settings : TrackingSettings
        Without a `max_distance`.
    columns : mapping of str to str
        As for `outbid.read_detections`.
    workers : int, optional
        Threads.

    Raises
    ------
    InputError
        If nothing can be learned from a movie, or units differ.
    """
    rows: list[dict[str, Any]] = []
    units: dict[str, Path] = {}
    for source in sources:
        detections = formats.read_detections(source, columns=columns)
        run = track(detections, settings, workers=workers)
        if run.learned is None or not run.stats["links"]:
            raise InputError(f"{source}: nothing can be learned from it. Leave it out.")
        rows.append({"name": source.name, **values_of(run.learned)})
        units.setdefault(detections.unit, source)
    if len(units) > 1:
        said = ", ".join(f"{path.name}: {unit}" for unit, path in units.items())
        raise InputError(f"The movies are in different units ({said}). Convert them to one.")
    return pooled(rows)


def pooled(rows: Sequence[Mapping[str, Any]]) -> PooledModel:
    """The median model of the values learned from each movie.

    Examples
    --------
    >>> rows = [{"name": str(k), "end": 0.1 * k, "noise": [0.1, 0.2, 0.1 * k]} for k in (1, 2, 6)]
    >>> model = pooled(rows)
    >>> model.known, round(model.spread["end"], 3)
    ({'end': 0.2, 'noise': (0.1, 0.2, 0.2)}, 0.216)
    """
    known: dict[str, float | tuple[float, ...]] = {}
    spread = {}
    for name in rows[0]:
        if name == "name":
            continue
        values = np.array([row[name] for row in rows], dtype=np.float64)
        middle = np.median(values, axis=0)
        known[name] = tuple(middle.tolist()) if middle.ndim else float(middle)
        finite = values[np.isfinite(values).reshape(len(values), -1).all(axis=1)]
        spread[name] = float(np.max(finite.std(axis=0))) if len(finite) else math.nan
    ends = [float(np.max(known[name])) for name in ("end", "start") if name in known]
    if "clutter" in known and len(ends) == 2:
        known["clutter"] = min(float(np.max(known["clutter"])), MOST_CLUTTER * min(ends))
    check_known(known)
    return PooledModel(known, spread, list(rows))


def values_of(learned: Summary) -> dict[str, Any]:
    """The learned values of a movie that `TrackingSettings.known` accepts."""
    values: dict[str, Any] = {}
    for name in EACH_AXIS:
        by_axis = dict(zip(learned.axes, getattr(learned, name).tolist(), strict=True))
        usual = float(np.mean(list(by_axis.values())))  # of an axis along which nothing varies
        values[name] = [by_axis.get(axis, usual) for axis in "zyx"]
    follow = learned.follow
    return values | {
        "persistence_frames": learned.persistence_frames, "end": max(learned.end, TINY),
        "start": max(learned.start, TINY),
        "miss": follow[1] / follow[0] if len(follow) > 1 and follow[0] > 0 else 0.0,
        "clutter": learned.clutter,
    }  # fmt: skip


def write_model(
    path: Path, model: PooledModel, origins: Sequence[Mapping[str, str]], *, overwrite: bool = False
) -> None:
    """Write a model as JSON.

    Raises
    ------
    SettingsError
        If the file exists and may not be replaced.
    """
    content = run_record("learn", {}) | {
        "input": [dict(origin) for origin in origins], "known": dict(model.known),
        "spread": dict(model.spread), "movies": [dict(movie) for movie in model.movies],
    }  # fmt: skip
    write_whole(path, lambda file: file.write(marked_bytes(content)), overwrite=overwrite)


def read_model(path: Path) -> Values:
    """The values of a model, as `TrackingSettings.known` takes them.

    Raises
    ------
    InputError
        If the file is no model.
    SettingsError
        If a value makes no sense.
    """
    record = formats.read_record(path)
    values = record.get("known")
    if record.get("command") != "learn" or not isinstance(values, dict):
        raise InputError(f"{path} is no model. Give what outbid learn wrote.")
    try:
        known = {
            str(name): tuple(map(float, value)) if isinstance(value, list) else float(value)
            for name, value in values.items()
        }
    except (TypeError, ValueError):
        raise InputError(f"{path} holds a value that is no number. Learn the model anew.") from None
    known = dict(by_present_names(known, _LOG.warning))
    check_known(known)
    return known
