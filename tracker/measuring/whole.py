"""Measure tracks: one movie, or conditions of one or several movies, each with its run record."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import chain
from numbers import Real
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .. import formats
from ..errors import InputError, SettingsError, refuse_unlike
from ..formats.coerce import TracksLike, tracks_of
from ..particles.detections import Detections
from ..particles.remarks import scaled_twice
from ..particles.tracks import Tracks
from .common_motion import Drift, on_common_motion, without_common_motion
from .evaluate import evaluated
from .labels import column_of_conditions, labels_of, movie_names, on_changes, short_names
from .measures import Measures
from .recording import Recording
from .scales import Record, Scale, on_scales, recorded_spacing, scaled, without_drift
from .surroundings import Surroundings
from .times import Timed, timed

_ALL = "all"
"""The group of all tracks, where there is one group."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """Tracks with their run record, and the name of the movie."""

    tracks: Tracks
    record: Record
    name: str = ""


def measure(
    tracks: TracksLike | Mapping[str, TracksLike | Sequence[TracksLike]],
    *,
    group: str | None = None,
    spacing: Sequence[float] | None = None,
    interval: float | None = None,
    drift: str = "learned",
    axes: str | None = None,
    seed: int = 0,
    around: Surroundings | None = None,
) -> Measures:
    r"""Measure the motion of every track, and of all tracks of a movie or group together.

    Diffusion coefficient, anomalous exponent and persistence time are maximum likelihood estimates with
    localisation error and motion blur; the steps are those of fractional Brownian motion, along each axis
    :math:`\langle Δx^2 \rangle = 2 D t^α` (α = 1 for D), or of Fürth's persistent walk. The localisation
    error is that of all tracks of a group. Errors of groups come from a bootstrap over tracks. If links have
    probabilities, each statistic is also taken over 16 draws of the links; its spread is part of the error.
    Diffusion, anomalous, persistent and confined motion compete by BIC; the chosen one is the fit of the mean
    square displacement, and an anomalous motion has no diffusion coefficient.

    If a condition has several movies, movies are the unit of replication: its values are means over movies,
    with the error of that mean, and conditions are compared by Welch's t test of the means of movies.

    Parameters
    ----------
    tracks : Tracks, TrackingRun, path, data frame, array; or a mapping of names to these
        A mapping has the tracks of each condition, or a list of the movies of each. A path or a run also
        gives its interval and drift.
    group : str, optional
        Feature that divides the tracks into groups, by its most frequent value in each; a remark states how
        many tracks have several. Default: the column ``condition`` of a single table, if it has one; its
        movies are then those of its column ``movie``.
    spacing : 3 float, optional
        Micrometers of a voxel along z, y, x; positions are multiplied by it. Default: the unit of the tracks.
    interval : float, optional
        Seconds between two frame numbers. Default: that of the run record; else times are in frames.
    drift : str
        Which drift is subtracted: ``"learned"``, the one that tracking learned; ``"tracks"``, the mean step
        of all tracks; ``"smooth"``, this step smoothed over frames; ``"rigid"``, their common shift and
        rotation; or ``"none"``. ``"tracks=3,8"`` takes that of some tracks, such as beads that are fixed.
    axes : str, optional
        Axes that count, such as ``"yx"``. Default: those along which positions vary.
    seed : int
        Of the draws and the bootstrap.
    around : Surroundings, optional
        Regions whose visits are measured, and the distance of contacts: ``Surroundings.of({"nucleus":
        "20,30,5"}, contact=2.0)``. Regions are places in the first frame if drift is subtracted.

    Raises
    ------
    SettingsError
        If a setting makes no sense, a condition has no movie, or movies differ in their units.
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
    refuse_unlike(Real, "a number", {"interval": interval})
    if spacing is not None and not isinstance(spacing, Sequence | np.ndarray):
        raise SettingsError(f"The spacing is {spacing!r}; give z, y and x, above 0, in micrometers.")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise SettingsError(f"seed is {seed!r}; it must be a whole number, 0 or more.")
    if group is not None and not isinstance(group, str):
        raise SettingsError(f"group is {group!r}; it must be the name of a column.")
    refuse_unlike(Surroundings, "Surroundings.of(regions, contact)", {"around": around})
    taken = Drift.of(drift)
    given = _conditions(tracks)
    if group is None and not isinstance(tracks, Mapping):
        group = column_of_conditions([tracks_of(tracks)])
    movies: list[Timed] = []
    scales: list[Scale] = []
    places: list[tuple[NDArray, NDArray]] = []
    remarks: list[str] = []
    for one in chain(*given.values()):
        read, record = tracks_of(one), _record_of(one)
        as_read = read
        remarks += scaled_twice(read.detections.unit, spacing)
        known = recorded_spacing(record)
        if read.detections.unit == "pixel" and spacing is None and (known != 1).any():
            remarks.append(
                f"Positions are multiplied by {', '.join(f'{size:g}' for size in known)}, the voxel size of "
                "the tracking, whose unit is not known; px stands for it. In micrometers: --spacing Z Y X."
            )
        if taken.source != "none":
            learned = taken.source == "learned"
            read, farthest = without_drift(read, record) if learned else without_common_motion(read, taken)
            if farthest:
                remarks.append(f"Drift is subtracted: up to {farthest:.3g} {read.detections.unit}.")
        remarks += on_common_motion(read)
        read, scale = scaled(read, record, spacing, interval)
        before, _ = scaled(as_read, record, spacing, interval)
        shift = before.detections.position - read.detections.position
        places.append((read.detections.frame.astype(np.int64), shift))
        movies.append(timed(read, scale.interval, given=interval is not None))
        scales.append(replace(scale, interval=movies[-1].interval))
        remarks += filter(None, [movies[-1].remark])
    if not all(one.is_like(scales[0]) for one in scales):
        raise SettingsError(on_scales(scales, movie_names([*chain(*given.values())])))
    read_all = [movie.tracks for movie in movies]
    whole, order = _joined(read_all)
    own = np.concatenate([movie.track_id for movie in read_all])[order]
    frames, shift = (np.concatenate(one)[order] for one in zip(*places, strict=True))
    labels = replace(labels_of(read_all, given, group, order), frame=frames, shift=shift)
    if group is not None:
        remarks += on_changes(whole, labels, own, group)
    chosen = _axes(whole.detections, axes)
    time = np.concatenate([movie.time for movie in movies])[order]
    return evaluated(
        Recording.of(whole, labels, own, time, chosen, scales[0], seed), remarks, around or Surroundings()
    )


def _conditions(tracks: object) -> dict[str, list[TracksLike]]:
    """The movies of each condition, by its name."""
    if not isinstance(tracks, Mapping):
        return {_ALL: [tracks]}
    listed = {
        str(name): list(one) if isinstance(one, list | tuple) else [one] for name, one in tracks.items()
    }
    if not all(_is_tracks(one) for one in chain(*listed.values())):
        return {_ALL: [tracks]}
    empty = next((name for name, movies in listed.items() if not movies), None)
    if empty is not None or not listed:
        raise SettingsError(f"Condition {empty!r} has no movie. Give the tracks of at least one.")
    return listed


def read_with_records(
    files: Sequence[Path], columns: Mapping[str, str], conditions: Mapping[str, str] | None = None
) -> dict[str, list[Recorded]]:
    """Tracks of files and their run records by condition; without conditions each file is one, by its name.

    Parameters
    ----------
    files : sequence of Path
    columns : mapping
        As for `read_tracks`.
    conditions : mapping of str to str, optional
        Names of conditions, and the pattern of their paths, such as ``control/*``; the first that fits.

    Raises
    ------
    SettingsError
        If a file is of no condition, or a condition has no file.
    """
    found: dict[str, list[Recorded]] = {name: [] for name in conditions or ()}
    for file, short in zip(files, short_names(files), strict=True):
        of = short
        if conditions:
            of = next((name for name, pattern in conditions.items() if _fits(file, pattern)), "")
            if not of:
                raise SettingsError(
                    f"{file} is of no condition. Give --condition NAME=PATTERN with a pattern of its path."
                )
        tracks = formats.read_tracks(file, columns=columns)
        found.setdefault(of, []).append(Recorded(tracks, _record_of(file), short))
    return found


def named_patterns(given: Sequence[str], option: str = "--condition") -> dict[str, str]:
    """Conditions and their patterns from NAME=PATTERN, or what another option names.

    Raises
    ------
    SettingsError
        If one has another form, or a name occurs twice.

    Examples
    --------
    >>> named_patterns(["control=control/*.csv", "drug=d?.csv"])
    {'control': 'control/*.csv', 'drug': 'd?.csv'}
    """
    found: dict[str, str] = {}
    for one in given:
        name, _, pattern = one.partition("=")
        if not name or not pattern or name in found:
            form = (
                ("PLACE", "cell=10:20,0:50") if option == "--region" else ("PATTERN", "control='control/*'")
            )
            raise SettingsError(f"{option} {one} is no NAME={form[0]} of a new name; give {form[1]}.")
        found[name] = pattern
    return found


def _fits(file: Path, pattern: str) -> bool:
    """Whether a path has a pattern; a folder stands for all files in it."""
    name = file.as_posix()
    return fnmatch(name, pattern) or fnmatch(name, f"{pattern.rstrip('/')}/*")


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


def _joined(movies: list[Tracks]) -> tuple[Tracks, NDArray[np.int64]]:
    """All movies as one, and its detections by their number in one movie after the other."""
    if len(movies) == 1:
        return movies[0], np.arange(len(movies[0].detections))
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
    return Tracks(joined, links[sort], link_probability=chance), order


def _axes(seen: Detections, axes: str | None) -> str:
    """The axes that count."""
    if axes is not None:
        if not isinstance(axes, str) or not axes or not set(axes) <= set("zyx") or len(set(axes)) < len(axes):
            raise SettingsError(f"The axes are {axes!r}; give some of zyx, such as yx.")
        return "".join(axis for axis in "zyx" if axis in axes)
    vary = np.ptp(seen.position, axis=0) > 0 if len(seen) else np.zeros(3, bool)
    return "".join(axis for axis, one in zip("zyx", vary, strict=True) if one) or "yx"
