"""Families: candidates for a mother with two daughters, and their measurements.

Either the mother is linked to one daughter and the other one starts near by, or the mother ends and two
tracks start. If detections are missed, the mother may be missing in the frame before the daughters, or one
daughter in the frame after the mother; then the daughters are measured two frames after the mother.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gating import pairs_within
from ..refine.movie import Movie

_REACH = 1.25
"""Largest distance of a daughter, in spacings of the detections."""
_MOST = 24
"""Largest number of starts near a detection; if there are more, they cannot be distinguished."""
_MISSED = 0.01
"""Share of gap links above which families with a missed frame are considered."""
_ONE = 0.5
"""Least expected number of starts, in addition to particles missed at first."""
_STEPS = 10_000
"""Number of steps that suffices to estimate the usual variance."""
FREEDOM = 4.0
"""Degrees of freedom of Student's t for the steps of all particles, because some jump without dividing."""
_MIDDLE = {1: 0.5486322, 2: 0.8284271, 3: 0.9405348}
"""Median of the mean squared step along one, two or three axes, relative to its variance: that of the F
distribution."""


@dataclass(frozen=True, eq=False)
class Families:
    """Candidates for divisions, P of them, sorted by mother.

    Parameters
    ----------
    mother, first, second : (P,) int64 arrays
        Rows of the movie.
    ended : (P,) bool array
        Whether the mother has no link. Otherwise she is linked to the first daughter.
    late : (P,) bool array
        Whether the second daughter is two frames after the mother instead of one. The first daughter is
        measured in the frame of the second one.
    along2, aside2 : (P,) float64 arrays
        Squared distance of the midpoint between the daughters from the predicted position of the mother,
        along and across the line between them.
    apart2 : (P, axes) float64 array
        Squared difference between the daughters along each axis.
    growth : (P,) float64 array
        Increase of their distance in the next frame; NaN if unknown.
    chance : (P,) float64 array
        Log density of the two positions for a particle that continues as usual and a chance start.
    usual_growth : (P,) float64 array
        Log density of the growth for two unrelated particles.
    crowd : (P,) float64 array
        Log of the spacing around the mother relative to the usual one.
    spacing : float
        Spacing of the detections, in the unit of the positions.
    usual2 : float
        Variance of the unpredicted part of usual steps.
    missed : float
        Share of the links that are over a missed frame.
    """

    mother: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    ended: NDArray[np.bool_]
    late: NDArray[np.bool_]
    along2: NDArray[np.float64]
    aside2: NDArray[np.float64]
    apart2: NDArray[np.float64]
    growth: NDArray[np.float64]
    chance: NDArray[np.float64]
    usual_growth: NDArray[np.float64]
    crowd: NDArray[np.float64]
    spacing: float
    usual2: float
    missed: float

    def __len__(self) -> int:
        return len(self.mother)

    def only(self, which: NDArray) -> Families:
        """Select families by rows or by a mask."""
        rows = np.nonzero(which)[0] if which.dtype == np.bool_ else which
        values = [getattr(self, field.name) for field in fields(self)]
        kept: list[Any] = [value[rows] if isinstance(value, np.ndarray) else value for value in values]
        return Families(*kept)


@dataclass(frozen=True)
class Usual:
    """Statistics of particles that do not divide.

    Parameters
    ----------
    variance : float
        Variance of the unpredicted part of their steps, along each axis.
    lost : float
        Share of the detections without a link to the next frame.
    missed : float
        Share of the links that are over a missed frame.
    """

    variance: float
    lost: float
    missed: float

    @classmethod
    def of(cls, movie: Movie, follower: NDArray[np.int64], shift: NDArray[np.float64]) -> Usual:
        """Estimate the statistics from links.

        Parameters
        ----------
        movie : Movie
        follower : (N,) int64 array
            The detection linked after each; -1 for none.
        shift : (N, axes) float64 array
            Displacement in one frame that is foretold of each.
        """
        ahead = np.where(follower < 0, 0, movie.frame[follower] - movie.frame)
        linked, over = np.nonzero(ahead == 1)[0], int((ahead == 2).sum())
        some = linked[:: max(1, len(linked) // _STEPS)]
        steps = movie.position[follower[some]] - movie.position[some] - shift[some]
        steps2 = float(np.median(np.einsum("ij,ij->i", steps, steps))) if len(some) else 0.0
        lost, missed = 1 - len(linked) / max(len(follower), 1), over / max(len(linked) + over, 1)
        return cls(steps2 / (movie.axes * _MIDDLE[movie.axes]), lost, missed)


@dataclass(frozen=True, eq=False)
class Nearby:
    """Detections and the starts near their predicted positions in the next frames.

    Parameters
    ----------
    movie : Movie
    log_density, shift
        As in `find_divisions`.
    log_starts : (N,) float64 array
        Log density of chance starts around each detection, relative to a usual frame.
    mother, start : (Q,) int64 arrays
        Sorted by mother.
    spacing, usual2 : float
        As in `Families`.
    lost : float
        Density of chance starts after chance ends, relative to that of detections.
    missed : float
        As in `Families`.
    """

    movie: Movie
    log_density: NDArray[np.float64]
    log_starts: NDArray[np.float64]
    shift: NDArray[np.float64]
    mother: NDArray[np.int64]
    start: NDArray[np.int64]
    spacing: float
    usual2: float
    lost: float
    missed: float

    @classmethod
    def of(
        cls,
        movie: Movie,
        starts: NDArray[np.int64],
        log_density: NDArray[np.float64],
        shift: NDArray[np.float64],
        usual: Usual,
        *,
        every: int = 1,
        late: bool = False,
    ) -> Nearby:
        """Find candidate mothers of starts.

        Parameters
        ----------
        movie, log_density, shift
            As in `find_divisions`.
        starts : (S,) int64 array
            Starts that may be daughters, sorted.
        usual : Usual
        every : int
            Use only daughters in every n-th frame, as a sample.
        late : bool
            Whether to search two frames after the mothers as well, if detections are missed.
        """
        lost = usual.lost * len(starts) / max(len(movie.frame), 1)
        log_starts = log_density + _more_starts(movie, len(starts), usual.missed)
        starts = starts[movie.frame[starts] % every == 0]
        spacing = float(np.exp(-np.median(log_density[starts]) / movie.axes)) if len(starts) else 0.0
        gaps = (1, 2) if late and usual.missed > _MISSED else (1,)
        near = [_near(movie, starts, shift, _REACH * spacing, every, gap) for gap in gaps]
        mother, start = (np.concatenate(side) for side in zip(*near, strict=True))
        usual2 = max(usual.variance, (1e-6 * spacing) ** 2, 1e-300)
        log_density = np.ascontiguousarray(log_density)
        return cls(movie, log_density, log_starts, shift, mother, start, spacing, usual2, lost, usual.missed)

    def families(
        self, before: NDArray[np.int64], follower: NDArray[np.int64], going: NDArray[np.float64]
    ) -> Families:
        """Measure each pair of a mother and a start, or two starts if the mother ends.

        Parameters
        ----------
        before, follower : (N,) int64 arrays
            The detections linked before and after each; -1 for none.
        going : (N,) float64 array
            Log density of the follower, given the track; minus infinity for none.
        """
        frame, after = self.movie.frame, follower[self.mother]
        beside = np.where((after >= 0) & (frame[after] < frame[self.start]), follower[after], after)
        goes_on = (beside >= 0) & (beside != self.start) & (frame[beside] == frame[self.start])
        ends = (after < 0) & (before[self.start] < 0) & (frame[self.start] == frame[self.mother] + 1)
        left, right = (np.nonzero(ends)[0][side] for side in _twos(self.mother[ends]))
        mother = np.concatenate([self.mother[goes_on], self.mother[left]])
        first = np.concatenate([after[goes_on], self.start[left]])
        second = np.concatenate([self.start[goes_on], self.start[right]])
        beside = np.concatenate([beside[goes_on], self.start[left]])
        order = np.argsort(mother, kind="stable")
        return self._measured(mother[order], first[order], second[order], beside[order], follower, going)

    def _measured(
        self,
        mother: NDArray[np.int64],
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        beside: NDArray[np.int64],
        follower: NDArray[np.int64],
        going: NDArray[np.float64],
    ) -> Families:
        from .families_cpu import measure

        movie, axes, ended = self.movie, self.movie.axes, follower[mother] < 0
        along2, aside2, growth, chance, usual_growth, crowd = np.empty((6, len(mother)))
        apart2 = np.empty((len(mother), axes))
        numbers = self.spacing, self.usual2, math.log(max(self.lost, 1e-300)), FREEDOM
        none = np.zeros(1)
        constants = (
            float(log_t(none, axes, self.usual2, FREEDOM)[0]),
            float(log_t(none, 1, 2 * self.usual2, FREEDOM)[0]),
        )
        measure(
            mother, first, beside, second, ended, follower, going, movie.frame, movie.position, self.shift,
            self.log_density, self.log_starts, numbers, constants, along2, aside2, apart2, growth, chance,
            usual_growth, crowd,
        )  # fmt: skip
        late = movie.frame[second] > movie.frame[mother] + 1
        return Families(
            mother, first, second, ended, late, along2, aside2, apart2, growth, chance, usual_growth, crowd,
            self.spacing, self.usual2, self.missed,
        )  # fmt: skip


def _more_starts(movie: Movie, starts: int, missed: float) -> NDArray[np.float64]:
    """(N,) log of the relative frequency of starts in the frame of each detection."""
    frame = movie.frame - movie.frame[:1]
    late = np.bincount(frame) * missed ** np.arange(int(frame.max(initial=-1)) + 1)
    late[:1] = 0
    usual = max(starts - float(late.sum()), _ONE) / max(len(late) - 1, 1)
    return np.log1p(late / usual)[frame]


def _near(
    movie: Movie, starts: NDArray[np.int64], shift: NDArray[np.float64], radius: float, every: int, gap: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Detections and the starts near their predicted positions some frames later, sorted by detection."""
    before = np.nonzero((movie.frame + gap) % every == 0)[0]
    flat = ((0, 0), (0, 3 - movie.axes))
    points = np.pad(movie.position[starts], flat)
    ahead = np.pad((movie.position + gap * shift)[before], flat)
    numbers = np.arange(movie.frame[0], movie.frame[-1] + 2) if len(movie.frame) else np.zeros(1)
    here, there = (np.searchsorted(movie.frame[taken], numbers) for taken in (before, starts))
    # Starts are few: to look from them is quicker.
    near = pairs_within(points, ahead, radius, there, here, (-gap, -gap))
    start = starts[np.repeat(near.rows.order, np.diff(near.indptr))]
    mother = before[near.cols.order[near.indices]]
    if np.bincount(mother).max(initial=0) > _MOST:
        way = movie.position[start] - movie.position[mother] - gap * shift[mother]
        order = np.lexsort((np.einsum("ij,ij->i", way, way), mother))
        order = order[np.arange(len(order)) - np.searchsorted(mother[order], mother[order]) < _MOST]
        mother, start = mother[order], start[order]
    order = np.argsort(mother * len(movie.frame) + start)
    return mother[order], start[order]


def _twos(group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List all pairs of indices with equal values in the sorted array `group`.

    Examples
    --------
    >>> [side.tolist() for side in _twos(np.array([4, 4, 4, 7, 9, 9]))]
    [[0, 0, 1, 4], [1, 2, 2, 5]]
    """
    later = np.searchsorted(group, group, side="right") - np.arange(len(group)) - 1
    left = np.repeat(np.arange(len(group)), later)
    nth = np.arange(len(left)) - np.repeat(np.cumsum(later) - later, later)
    return left, left + 1 + nth


def log_t(square: NDArray[np.float64], axes: int, variance: float, freedom: float) -> NDArray[np.float64]:
    """Log density of Student's t for vectors with these squared lengths.

    Examples
    --------
    >>> float(log_t(np.array([0.0]), 1, 1.0, 1.0)[0])  # Cauchy: 1 / pi
    -1.144...
    """
    constant = math.lgamma((freedom + axes) / 2) - math.lgamma(freedom / 2)
    constant -= axes / 2 * math.log(freedom * math.pi * variance)
    return np.asarray(constant - (freedom + axes) / 2 * np.log1p(square / (freedom * variance)))
