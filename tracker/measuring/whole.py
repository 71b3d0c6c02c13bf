"""Measure tracks: one movie or several conditions, each with its run record."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .. import formats
from ..errors import InputError, SettingsError, one_line
from ..formats.coerce import TracksLike, tracks_of
from ..particles.detections import Detections
from ..particles.remarks import scaled_twice
from ..particles.tracks import Tracks
from ..settings.declare import refuse_no_numbers
from .common_motion import on_common_motion, without_common_motion
from .evaluate import Measures, Recording, evaluated
from .paths import most_frequent
from .scales import Record, recorded_spacing, scaled, without_drift

_ALL = "all"
"""The group of all tracks, where there is one group."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """Tracks with their run record."""

    tracks: Tracks
    record: Record


def measure(
    tracks: TracksLike | Mapping[str, TracksLike],
    *,
    group: str | None = None,
    spacing: Sequence[float] | None = None,
    interval: float | None = None,
    drift: str = "learned",
    axes: str | None = None,
    seed: int = 0,
) -> Measures:
    r"""Measure the motion of every track, and of all tracks of a movie or group together.

    Diffusion coefficient, anomalous exponent and persistence time are maximum likelihood estimates with
    localisation error and motion blur; the steps are those of fractional Brownian motion, along each axis
    :math:`\langle Δx^2 \rangle = 2 D t^α` (α = 1 for D), or of Fürth's persistent walk. The localisation
    error is that of all tracks of a group. Errors of groups come from a bootstrap over tracks. If links have
    probabilities, each statistic is also taken over 16 draws of the links; its spread is part of the error.

    Parameters
    ----------
    tracks : Tracks, TrackingRun, path, data frame, array; or a mapping of names to these
        A mapping has the tracks of each condition. A path or a run also gives its interval and drift.
    group : str, optional
        Feature that divides the tracks into groups, by its most frequent value in each; a remark states how
        many tracks have several.
    spacing : 3 float, optional
        Micrometers of a voxel along z, y, x; positions are multiplied by it. Default: the unit of the tracks.
    interval : float, optional
        Seconds between two frame numbers. Default: that of the run record; else times are in frames.
    drift : {"learned", "tracks", "none"}
        Which drift is subtracted: the one that tracking learned, the mean motion of all tracks, or none.
    axes : str, optional
        Axes that count, such as ``"yx"``. Default: those along which positions vary.
    seed : int
        Of the draws and the bootstrap.

    Raises
    ------
    SettingsError
        If a setting makes no sense, or conditions differ in their units.
    InputError
        If there is no such feature, if it has no value that holds in most of a track for most tracks, or as
        `outbid.read_tracks`.

    References
    ----------
    A. J. Berglund, Phys. Rev. E 82, 011917, 2010; C. L. Vestergaard et al., Phys. Rev. E 89, 022726, 2014.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> walk = np.cumsum(rng.normal(0, 0.5, (20, 2)), axis=0)
    >>> seen = Detections.from_table(np.arange(20), walk, unit="micrometer")
    >>> found = measure(Tracks(seen, np.column_stack([np.arange(19), np.arange(1, 20)])), interval=2.0)
    >>> found.tracks.column_names[2:5]
    ['start_s', 'duration_s', 'path_um']
    """
    refuse_no_numbers({"interval": interval})
    if spacing is not None and not isinstance(spacing, Sequence | np.ndarray):
        raise SettingsError(f"The spacing is {spacing!r}; give z, y and x, above 0, in micrometers.")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise SettingsError(f"seed is {seed!r}; it must be a whole number, 0 or more.")
    if group is not None and not isinstance(group, str):
        raise SettingsError(f"group is {group!r}; it must be the name of a column.")
    if not isinstance(drift, str) or drift not in ("learned", "tracks", "none"):
        raise SettingsError(f"The drift is {drift!r}; choose learned, tracks or none.")
    several = isinstance(tracks, Mapping) and all(_is_tracks(one) for one in tracks.values())
    given: dict[str, TracksLike] = dict(tracks) if several else {_ALL: tracks}  # type: ignore[arg-type]
    movies, remarks = [], []
    for one in given.values():
        read, record = tracks_of(one), _record_of(one)
        remarks += scaled_twice(read.detections.unit, spacing)
        known = recorded_spacing(record)
        if read.detections.unit == "pixel" and spacing is None and (known != 1).any():
            remarks.append(
                f"Positions are multiplied by {', '.join(f'{size:g}' for size in known)}, the voxel size of "
                "the tracking, whose unit is not known; px stands for it. In micrometers: --spacing Z Y X."
            )
        if drift != "none":
            learned = drift == "learned"
            read, farthest = without_drift(read, record) if learned else without_common_motion(read)
            if farthest:
                remarks.append(f"Drift is subtracted: up to {farthest:.3g} {read.detections.unit}.")
        remarks += on_common_motion(read)
        movies.append(scaled(read, record, spacing, interval))
    scales = {scale for _, scale in movies}
    if len(scales) > 1:
        units = " and ".join(sorted(f"{one.length}, {one.frame:g} {one.time}" for one in scales))
        alike = len({(one.length, one.time) for one in scales}) == 1
        remedy = "Measure those of one interval together" if alike else "Give --spacing and --interval"
        raise SettingsError(f"The conditions differ in their units: {units}. {remedy}.")
    read_all = [read for read, _ in movies]
    label, names = _labels(read_all, [one_line(str(name)) for name in given], group)
    whole, label, own = _joined(read_all, label)
    if group is not None:
        remarks += _on_changes(whole, label, own, group, names)
    chosen = _axes(whole.detections, axes)
    return evaluated(Recording.of(whole, label, names, own, chosen, scales.pop(), seed), remarks)


def read_with_records(files: Sequence[Path], columns: Mapping[str, str]) -> dict[str, Recorded]:
    """Tracks of files and their run records, by the shortest names that differ."""
    names = [file.stem for file in files]
    names = names if len(set(names)) == len(names) else [str(file) for file in files]
    return {
        name: Recorded(formats.read_tracks(file, columns=columns), _record_of(file))
        for name, file in zip(names, files, strict=True)
    }


def _is_tracks(one: object) -> bool:
    return isinstance(one, Tracks | str | os.PathLike) or hasattr(one, "tracks") or hasattr(one, "columns")


def _record_of(one: object) -> Record:
    """The run record of a path, of a `TrackingRun` or of `Recorded` tracks; empty without a record."""
    if isinstance(one, Recorded):
        return one.record
    if isinstance(one, str | os.PathLike):
        try:
            return formats.read_record(one)
        except InputError:
            return {}
    learned, settings = getattr(one, "learned", None), getattr(one, "settings", None)
    if learned is None or settings is None:
        return {}
    return {"command": "track", "learned": learned.as_dict(), "settings": settings.as_dict()}


def _labels(movies: list[Tracks], names: list[str], group: str | None) -> tuple[NDArray, list[str]]:
    """The group of each detection, and the names of the groups."""
    if group is None:
        return np.repeat(np.arange(len(movies)), [len(movie.detections) for movie in movies]), names
    for features in (movie.detections.features for movie in movies):
        if group not in features:
            known = ", ".join(features) or "none"
            raise InputError(f"There is no column {group!r} of numbers to group by. Columns are: {known}.")
    values = np.concatenate([movie.detections.features[group] for movie in movies])
    distinct, number = np.unique(values, return_inverse=True)
    return number, [f"{group} {value}" for value in distinct]


def _on_changes(tracks: Tracks, label: NDArray, own: NDArray, group: str, names: list[str]) -> list[str]:
    """What is said of a group that changes within tracks; refused if it is a value of detections."""
    order = np.argsort(tracks.track_id, kind="stable")
    of = tracks.track_id[order]
    found, most = most_frequent(label[order], of, tracks.track_count)
    length = np.bincount(of, minlength=tracks.track_count)
    changed = np.flatnonzero(most < length)
    if not len(changed):
        return []
    number = own[order][np.searchsorted(of, changed[0])]
    example = f"track {number} has {names[found[changed[0]]]} in {most[changed[0]]} of {length[changed[0]]}"
    if (2 * most <= length).sum() > (length > 1).sum() / 2:
        raise InputError(
            f"Column {group!r} changes within tracks and is no value of a track: {example} detections. Group "
            "by a column that a track keeps."
        )
    return [
        f"Column {group!r} changes within {len(changed):,} of {tracks.track_count:,} tracks ({example} "
        "detections): each counts in the group of its most frequent value."
    ]


def _joined(movies: list[Tracks], label: NDArray) -> tuple[Tracks, NDArray, NDArray]:
    """All movies as one; the label of each detection, and the number of its track in its own movie."""
    own = np.concatenate([movie.track_id for movie in movies])
    if len(movies) == 1:
        return movies[0], label, own
    seen = [movie.detections for movie in movies]
    shared = [name for name in seen[0].features if all(name in one.features for one in seen)]
    frame = np.concatenate([one.frame for one in seen])
    order = np.argsort(frame, kind="stable")
    begin = np.cumsum([0, *map(len, seen)])
    links = np.concatenate([movie.links + at for movie, at in zip(movies, begin, strict=False)])
    links = np.argsort(order)[links]
    features = {name: np.concatenate([one.features[name] for one in seen]) for name in shared}
    joined = Detections.from_table(
        frame,
        np.concatenate([one.position for one in seen]),
        features=features,
        calibration=seen[0].calibration,
    )
    sort, chance = np.lexsort((links[:, 1], links[:, 0])), None
    known = [movie.link_probability for movie in movies]
    if any(one is not None for one in known):
        sure = [np.ones(len(movie.links)) for movie in movies]
        chance = np.concatenate([a if b is None else b for a, b in zip(sure, known, strict=True)])[sort]
    tracks = Tracks(joined, links[sort], link_probability=chance)
    return tracks, label[order], own[order]


def _axes(seen: Detections, axes: str | None) -> str:
    """The axes that count."""
    if axes is not None:
        if not isinstance(axes, str) or not axes or not set(axes) <= set("zyx") or len(set(axes)) < len(axes):
            raise SettingsError(f"The axes are {axes!r}; give some of zyx, such as yx.")
        return "".join(axis for axis in "zyx" if axis in axes)
    vary = np.ptp(seen.position, axis=0) > 0 if len(seen) else np.zeros(3, bool)
    return "".join(axis for axis, one in zip("zyx", vary, strict=True) if one) or "yx"
