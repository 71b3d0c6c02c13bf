"""Of which group and movie each detection is: by the files, or by columns of their tables."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, one_line
from ..particles.tracks import Tracks
from .paths import most_frequent
from .recording import Labels

CONDITION, MOVIE = "condition", "movie"
"""Columns of a table that say of which condition and movie a track is."""


def column_of_conditions(movies: Sequence[Tracks]) -> str | None:
    """The column of conditions, if all tables have one."""
    return CONDITION if all(CONDITION in movie.detections.features for movie in movies) else None


def labels_of(
    movies: list[Tracks], given: Mapping[str, Sequence[object]], group: str | None, order: NDArray
) -> Labels:
    """The group and the movie of each detection of all movies in this order."""
    sizes = [len(movie.detections) for movie in movies]
    number = np.repeat(np.arange(len(movies)), sizes)[order]
    names = movie_names(list(itertools.chain(*given.values())))
    nowhere = np.empty(0, np.int64), np.empty((0, 3))
    if group is None:
        condition = np.repeat(np.arange(len(given)), [len(each) for each in given.values()])
        return Labels(condition[number], number, *nowhere, [one_line(name) for name in given], names)
    for features in (movie.detections.features for movie in movies):
        if group not in features:
            known = ", ".join(features) or "none"
            raise InputError(f"There is no column {group!r} of numbers to group by. Columns are: {known}.")
    values = np.concatenate([movie.detections.features[group] for movie in movies])[order]
    distinct, of = np.unique(values, return_inverse=True)
    called = [one_line(str(value)) if group == CONDITION else f"{group} {value}" for value in distinct]
    if group == CONDITION and all(MOVIE in movie.detections.features for movie in movies):
        own = np.concatenate([movie.detections.features[MOVIE].astype(str) for movie in movies])[order]
        pair, number = np.unique(np.stack([number.astype(str), own]), axis=1, return_inverse=True)
        several = len(movies) > 1
        names = [f"{names[int(k)]} {one_line(name)}" if several else one_line(name) for k, name in pair.T]
    return Labels(of, number.ravel(), *nowhere, called, names)


def movie_names(movies: Sequence[object]) -> list[str]:
    """Names of files and of `Recorded` tracks; others by their number from 1 on."""
    files = [str(one) if isinstance(one, str | os.PathLike) else getattr(one, "name", "") for one in movies]
    if all(files):
        return [one_line(name) for name in short_names([Path(file) for file in files])]
    return [str(number + 1) for number in range(len(movies))]


def on_changes(tracks: Tracks, labels: Labels, own: NDArray, group: str) -> list[str]:
    """What is said of a group that changes within tracks; refused if it is a value of detections."""
    names, order = labels.groups, np.argsort(tracks.track_id, kind="stable")
    of = tracks.track_id[order]
    found, most = most_frequent(labels.group[order], of, tracks.track_count)
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


def short_names(files: Sequence[Path]) -> list[str]:
    """Names of the files without folder and ending, or their paths if these are not distinct."""
    names = [file.stem for file in files]
    return names if len(set(names)) == len(names) else [str(file) for file in files]
