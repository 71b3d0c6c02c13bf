"""Families: all that might be a mother and her two daughters, measured.

A mother is linked to one daughter, and the other starts near by; or she ends, and two tracks start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .gating import pairs_within
from .movie import Movie

_REACH = 1.25
"""Farthest that a daughter is looked for, in spacings of the detections."""
_STEPS = 10_000
"""Steps that tell enough of what is usual."""
FREEDOM = 4.0
"""Degrees of freedom of Student's t for the steps of all particles: some jump without dividing."""
_MIDDLE = {1: 0.5486322, 2: 0.8284271, 3: 0.9405348}
"""Median of the mean square of such a step along one, two or three axes, in its variance: that of F."""


@dataclass(frozen=True, eq=False)
class Families:
    """Candidates for divisions, P of them, sorted by mother.

    Parameters
    ----------
    mother, first, second : (P,) int64 arrays
        Rows of the movie; the daughters are in the frame after the mother's.
    ended : (P,) bool array
        Whether she is linked to none. Otherwise she is linked to the first.
    along2, aside2 : (P,) float64 arrays
        Squared distance of the point midway between the daughters from where the mother is foretold, along
        the line between them and across it.
    apart2 : (P, axes) float64 array
        Squares of the way from the first daughter to the second, axis by axis.
    growth : (P,) float64 array
        By how much farther they are apart in the next frame; NaN where that is not known.
    chance : (P,) float64 array
        Log density of two such places for a particle that goes on as usual and a start by chance.
    usual_growth : (P,) float64 array
        Log density of the growth for two that have nothing to do with each other.
    crowd : (P,) float64 array
        Log of the spacing around the mother, against the usual one.
    spacing : float
        Of the detections, in the unit of the positions.
    usual2 : float
        Variance of what is not foretold of the usual steps.
    """

    mother: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    ended: NDArray[np.bool_]
    along2: NDArray[np.float64]
    aside2: NDArray[np.float64]
    apart2: NDArray[np.float64]
    growth: NDArray[np.float64]
    chance: NDArray[np.float64]
    usual_growth: NDArray[np.float64]
    crowd: NDArray[np.float64]
    spacing: float
    usual2: float

    def __len__(self) -> int:
        return len(self.mother)

    def only(self, which: NDArray) -> Families:
        """Those of these rows or of this mask."""
        values = [getattr(self, field.name) for field in fields(self)]
        return Families(*(value[which] if isinstance(value, np.ndarray) else value for value in values))


def families_of(
    movie: Movie,
    follower: NDArray[np.int64],
    starts: NDArray[np.int64],
    log_density: NDArray[np.float64],
    shift: NDArray[np.float64],
    *,
    every: int = 1,
) -> Families:
    """Measure every pair of a mother and a start near her, or two starts if she ends.

    Parameters
    ----------
    movie : Movie
    follower : (N,) int64 array
        The detection linked after each; -1 for none.
    starts : (S,) int64 array
        Those that may be daughters, sorted.
    log_density : (N,) float64 array
        Log of the detections per volume around each.
    shift : (N, axes) float64 array
        Displacement in one frame that is foretold of each.
    every : int
        Only daughters in every so many-th frame: a sample.
    """
    often, starts = len(starts), starts[movie.frame[starts] % every == 0]
    spacing = float(np.exp(-np.median(log_density[starts]) / movie.axes)) if len(starts) else 0.0
    mother, start = _near(movie, starts, shift, _REACH * spacing, every)
    after = follower[mother]
    goes_on = (after >= 0) & (movie.frame[after] == movie.frame[mother] + 1)
    ends = after < 0
    left, right = _twos(mother[ends])
    mothers = np.concatenate([mother[goes_on], mother[ends][left]])
    first = np.concatenate([after[goes_on], start[ends][left]])
    second = np.concatenate([start[goes_on], start[ends][right]])
    order = np.argsort(mothers, kind="stable")
    return _measured(
        movie, mothers[order], first[order], second[order], follower, often, log_density, shift, spacing,
        every,
    )  # fmt: skip


def _near(
    movie: Movie, starts: NDArray[np.int64], shift: NDArray[np.float64], radius: float, every: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Detections and the starts of the next frame near where they are foretold, sorted by the former."""
    before = np.nonzero((movie.frame + 1) % every == 0)[0]
    points, ahead = np.zeros((len(starts), 3)), np.zeros((len(before), 3))
    points[:, : movie.axes] = movie.position[starts]
    ahead[:, : movie.axes] = movie.position[before] + shift[before]
    numbers = np.arange(movie.frame[0], movie.frame[-1] + 2) if len(movie.frame) else np.zeros(1)
    here, there = (np.searchsorted(movie.frame[taken], numbers) for taken in (before, starts))
    # Starts are few: to look from them is quicker.
    near = pairs_within(points, ahead, radius, there, here, (-1, -1))
    start = starts[np.repeat(near.rows.order, np.diff(near.indptr))]
    mother = before[near.cols.order[near.indices]]
    order = np.lexsort((start, mother))
    return mother[order], start[order]


def _twos(group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of two places of `group`, which is sorted, that hold the same value.

    Examples
    --------
    >>> [side.tolist() for side in _twos(np.array([4, 4, 4, 7, 9, 9]))]
    [[0, 0, 1, 4], [1, 2, 2, 5]]
    """
    later = np.searchsorted(group, group, side="right") - np.arange(len(group)) - 1
    left = np.repeat(np.arange(len(group)), later)
    nth = np.arange(len(left)) - np.repeat(np.cumsum(later) - later, later)
    return left, left + 1 + nth


def _measured(
    movie: Movie,
    mother: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    follower: NDArray[np.int64],
    starts: int,
    log_density: NDArray[np.float64],
    shift: NDArray[np.float64],
    spacing: float,
    every: int,
) -> Families:
    position, axes = movie.position, movie.axes
    ahead = position[mother] + shift[mother]
    here = position[first]
    apart = position[second] - here
    middle, distance2 = here + apart / 2 - ahead, np.maximum(_dot(apart, apart), 1e-300)
    along2 = _dot(middle, apart) ** 2 / distance2
    aside2 = np.maximum(_dot(middle, middle) - along2, 0.0)
    linked = np.nonzero((follower >= 0) & (movie.frame[follower] == movie.frame + 1))[0]
    lost = (len(movie.frame) - len(linked)) / max(len(movie.frame), 1) * starts / max(len(movie.frame), 1)
    linked = linked[:: max(every, len(linked) // _STEPS)]
    steps = position[follower[linked]] - position[linked] - shift[linked]
    steps2 = _dot(steps, steps)
    usual2 = float(np.median(steps2)) / (axes * _MIDDLE[axes]) if len(linked) else 0.0
    usual2 = max(usual2, (1e-6 * spacing) ** 2, 1e-300)
    ended = follower[mother] < 0
    as_usual = log_t(_dot(here - ahead, here - ahead), axes, usual2, FREEDOM)
    chance = np.where(ended, log_density[first] + math.log(max(lost, 1e-300)), as_usual)
    crowd = -log_density[mother] / axes - math.log(max(spacing, 1e-300))
    growth = _growth(movie, first, second, follower, apart, distance2)
    of_growth = log_t(np.nan_to_num(growth) ** 2, 1, 2 * usual2, FREEDOM)
    return Families(
        mother,
        first,
        second,
        ended,
        along2,
        aside2,
        apart**2,
        growth,
        chance + log_density[second],
        of_growth,
        crowd,
        spacing,
        usual2,
    )


def _growth(
    movie: Movie,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    follower: NDArray[np.int64],
    apart: NDArray[np.float64],
    distance2: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(P,) change of the distance between two, along the line between them, into the next frame."""
    next_first, next_second = follower[first], follower[second]
    next_frame = movie.frame[first] + 1
    known = (next_first >= 0) & (next_second >= 0)
    known &= (movie.frame[next_first] == next_frame) & (movie.frame[next_second] == next_frame)
    further = movie.position[next_second] - movie.position[next_first] - apart
    return np.where(known, _dot(further, apart) / np.sqrt(distance2), np.nan)


def _dot(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) products of vectors (P, axes), row by row."""
    return np.asarray(np.einsum("ij,ij->i", left, right))


def log_t(square: NDArray[np.float64], axes: int, variance: float, freedom: float) -> NDArray[np.float64]:
    """Log density of Student's t, of vectors with these squares.

    Examples
    --------
    >>> float(log_t(np.array([0.0]), 1, 1.0, 1.0)[0])  # Cauchy: 1 / pi
    -1.144...
    """
    constant = math.lgamma((freedom + axes) / 2) - math.lgamma(freedom / 2)
    constant -= axes / 2 * math.log(freedom * math.pi * variance)
    return np.asarray(constant - (freedom + axes) / 2 * np.log1p(square / (freedom * variance)))
