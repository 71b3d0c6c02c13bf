"""Regions of a movie: which detections are inside, how long tracks stay, and when they first arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from ..formats.images.opening import open_images
from .likelihood import Floats

Inside = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Region:
    """Where a region is.

    Parameters
    ----------
    name : str
    low, high : (3,) float64 arrays
        Ends of a box along z, y, x, in the unit of the tables.
    centre : (3,) float64 array
        Of a circle or a sphere; its axes that are NaN do not count.
    radius : float
    mask : Path, optional
        A label image: each of its labels is a region.
    """

    name: str
    low: Floats = field(default_factory=lambda: np.full(3, -np.inf))
    high: Floats = field(default_factory=lambda: np.full(3, np.inf))
    centre: Floats = field(default_factory=lambda: np.full(3, np.nan))
    radius: float = np.inf
    mask: Path | None = None

    @classmethod
    def of(cls, name: str, text: str) -> Region:
        """From ranges along y, x or z, y, x, a centre with a radius, or a file of labels.

        Raises
        ------
        SettingsError
            If it has another form.

        Examples
        --------
        >>> Region.of("cell", "10:20,:40").high.tolist(), Region.of("spot", "5,5,2").radius
        ([inf, 20.0, 40.0], 2.0)
        """
        words = text.split(",")
        try:
            if ":" in text and len(words) in (2, 3) and all(word.count(":") == 1 for word in words):
                ends = [[float(end) if end.strip() else np.nan for end in word.split(":")] for word in words]
                whole = np.array([[np.nan, np.nan]] * (3 - len(ends)) + ends)
                return cls(
                    name, np.nan_to_num(whole[:, 0], nan=-np.inf), np.nan_to_num(whole[:, 1], nan=np.inf)
                )
            if len(words) in (3, 4):
                *centre, radius = map(float, words)
                return cls(name, centre=np.array([np.nan] * (3 - len(centre)) + centre), radius=radius)
        except ValueError:
            pass
        if Path(text).exists():
            return cls(name, mask=Path(text))
        raise SettingsError(
            f"The region {name}={text} is not known. Give ranges such as 10:20,0:50 (y, x), a centre and a "
            "radius such as 15,25,8 (y, x, radius), or a file with labels."
        )

    def inside(self, position: Floats, frame: NDArray) -> dict[str, Inside]:
        """Whether each position (N, 3) of these frames is in each part of the region."""
        if self.mask is not None:
            return self._inside_labels(position, frame)
        boxed = np.all((position >= self.low) & (position < self.high), axis=1)
        near = np.nansum(np.square(position - self.centre), axis=1) <= self.radius**2
        return {self.name: np.asarray(boxed & near, np.bool_)}

    def _inside_labels(self, position: Floats, frame: NDArray) -> dict[str, Inside]:
        """By the labels of an image, of one frame for all or of one for each; 0 outside of it."""
        image = open_images(str(self.mask))
        voxel = np.rint(image.calibration.numbers(position)).astype(np.int64)
        voxel[:, 0] *= image.shape[0] > 1
        within = ((voxel >= 0) & (voxel < image.shape)).all(axis=1)
        label = np.zeros(len(position), np.int64)
        for number, labels in enumerate(image.frames()):
            here = within & ((frame == number) if image.frame_count > 1 else True)
            label[here] = labels[tuple(voxel[here].T)]
        return {f"{self.name} {one}": label == one for one in np.unique(label[label > 0])}


class Visits(NamedTuple):
    """Stays in a region, S of them, or ways to it.

    Parameters
    ----------
    owner : (S,) int64 array
        The track of each.
    lasting : (S,) float64 array
    complete : (S,) bool array
        Whether its end was seen; else it lasted longer.
    """

    owner: NDArray[np.int64]
    lasting: Floats
    complete: Inside


def visits(inside: Inside, time: Floats, owner: NDArray) -> Visits:
    """Dwell times: how long tracks stay inside once they have come in.

    A track enters and leaves in the middle between two detections. A stay whose begin was not seen does not
    count, for it would be too long by a choice of long ones; one whose end was not seen is censored.

    Parameters
    ----------
    inside : (M,) bool array
    time : (M,) float64 array
    owner : (M,) int64 array
        Track of each row, ascending, by time in each track.

    Examples
    --------
    >>> inside = np.array([False, True, True, False, True, True])
    >>> found = visits(inside, np.arange(6.0), np.zeros(6, np.int64))
    >>> found.lasting.tolist(), found.complete.tolist()
    ([2.0, 1.5], [True, False])
    """
    same = owner[1:] == owner[:-1]
    middle = (time[1:] + time[:-1]) / 2
    entered = np.flatnonzero(same & ~inside[:-1] & inside[1:])
    begins = entered + 1
    stops = np.flatnonzero(np.concatenate([~same | ~inside[1:], [True]]) & inside)  # last row of each stay
    end = stops[np.searchsorted(stops, begins)] if len(begins) else begins
    left = np.concatenate([same, [False]])[end]
    until = np.where(left, np.concatenate([middle, [0.0]])[end], time[end]) if len(end) else time[:0]
    return Visits(owner[begins], until - middle[entered], left)


def first_passages(inside: Inside, time: Floats, owner: NDArray) -> Visits:
    """First-passage times: from the first detection of a track, outside, to when it first comes in.

    Examples
    --------
    >>> inside = np.array([False, False, True, False, False])
    >>> found = first_passages(inside, np.array([0.0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1]))
    >>> found.lasting.tolist(), found.complete.tolist()
    ([1.5, 1.0], [True, False])
    """
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    last = np.append(first[1:], len(owner)) - 1
    within = np.flatnonzero(inside)
    found = np.append(within, len(owner))[np.searchsorted(within, first)] if len(first) else first
    counts = ~inside[first] & (last > first)
    first, last, found = first[counts], last[counts], found[counts]
    complete = found <= last
    at = np.minimum(found, last)
    until = np.where(complete, (time[at] + time[at - 1]) / 2, time[last])
    return Visits(owner[first], until - time[first], complete)


def named_regions(given: Mapping[str, str]) -> tuple[Region, ...]:
    """Regions by name."""
    return tuple(Region.of(name, text) for name, text in given.items())
