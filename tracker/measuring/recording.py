"""What all measures are made of: the tracks that occur in draws of the links, their groups and movies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..particles.tracks import Tracks
from .draws import Variants, variants_of
from .likelihood import Floats
from .paths import most_frequent, steps_of, usual_lag
from .scales import Scale


@dataclass(frozen=True, eq=False)
class Labels:
    """Of which group and movie each detection is, and where it was in its file.

    Parameters
    ----------
    group, movie : (N,) int64 array
    frame : (N,) int64 array
        Frame number in the file.
    shift : (N, 3) float64 array
        Drift that was subtracted, in the unit of the tables.
    groups, movies : list of str
        Names.
    """

    group: NDArray[np.int64]
    movie: NDArray[np.int64]
    frame: NDArray[np.int64]
    shift: Floats
    groups: list[str]
    movies: list[str]


@dataclass(frozen=True, eq=False)
class Recording:
    """What all measures are made of: the tracks that occur in draws of the links, and the groups.

    Parameters
    ----------
    tracks : Tracks
    own : (T,) int64 array
        Number of each track in its own file.
    variants : Variants
    position, frame, owner, time : arrays
        Of the rows of the variants, along the axes that count.
    detected : (N,) float64 array
        Time of each detection.
    interval : float
        Mean time of a step over `lag` frame numbers.
    axes : str
    lag : int
        Frame numbers of an interval.
    scale : Scale
    labels : Labels
    group, movie : (V,) int64 array
        Group and movie of each variant.
    rng : Generator
    """

    tracks: Tracks
    own: NDArray[np.int64]
    variants: Variants
    position: Floats
    frame: NDArray[np.int64]
    owner: NDArray[np.int64]
    time: Floats
    detected: Floats
    interval: float
    axes: str
    lag: int
    scale: Scale
    labels: Labels
    group: NDArray[np.int64]
    movie: NDArray[np.int64]
    rng: np.random.Generator

    @classmethod
    def of(
        cls,
        tracks: Tracks,
        labels: Labels,
        own: NDArray,
        time: Floats,
        axes: str,
        scale: Scale,
        seed: int,
    ) -> Recording:
        """Draw the links of tracks; `own` (N,) is the number of the track of each detection in its file."""
        rng = np.random.default_rng(seed)
        variants = variants_of(tracks, rng)
        rows, first = variants.rows, variants.rows[variants.start[:-1]]
        frame = tracks.detections.frame[rows].astype(np.int64)
        position = tracks.detections.position[rows][:, ["zyx".index(axis) for axis in axes]]
        lag = usual_lag(frame, variants.owner)
        begin = steps_of(variants.owner)
        apart = (time[rows][begin + 1] - time[rows][begin])[frame[begin + 1] - frame[begin] == lag]
        interval = float(f"{apart.mean():.12g}") if len(apart) else lag * scale.frame
        group, _ = most_frequent(labels.group[rows], variants.owner, len(first))
        return cls(
            tracks, own[first[variants.own]], variants, position, frame, variants.owner, time[rows], time,
            interval, axes, lag, scale, labels, group, labels.movie[first], rng,
        )  # fmt: skip
