"""Groups of tracks: means, motion and curves, with errors by a bootstrap over tracks, and over movies."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .draws import Variants
from .likelihood import Floats

SAMPLES = 200
"""Bootstrap samples: a standard error is known to a twentieth."""
LAGS = 32
"""Lags of curves, at most; and half of the longest track."""
_BINS = 30
"""Bins of a distribution."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Weights of tracks: in each draw of links, and in bootstrap samples of all draws.

    Parameters
    ----------
    drawn : (K, V) float64 array
    resampled : (B, V) float64 array
        Each of the tracks of one draw, so the errors include those of linking; of several movies, first
        movies are drawn, then tracks of these.
    """

    drawn: Floats
    resampled: Floats

    @classmethod
    def of(
        cls, variants: Variants, inside: NDArray[np.bool_], movie: NDArray, rng: np.random.Generator
    ) -> Samples:
        """Weights of the tracks of a group, (V,) bool; `movie` (V,) is the movie of each track."""
        drawn = variants.drawn * inside
        movies = [inside & (movie == one) for one in np.unique(movie[inside])]
        resampled = np.zeros((SAMPLES, len(inside)))
        for sample in range(SAMPLES):
            for one, often in zip(movies, _resampled(len(movies), rng), strict=True):
                some = np.flatnonzero(drawn[sample % len(drawn)] * one)
                resampled[sample, some] = often * _resampled(len(some), rng)
        return cls(drawn, resampled)


def _resampled(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count,) how often each occurs in a sample of the same size with replacement; 1 if it is alone."""
    return (
        rng.multinomial(count, np.full(count, 1 / max(count, 1))) if count > 1 else np.ones(count, np.int64)
    )


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value of a group: the mean over draws of links, its standard error, and what linking adds to it.

    Parameters
    ----------
    value, error, linking : float
        `linking` is the standard deviation over draws; NaN if there is one draw.
    samples : (B,) float64 array
    movies : (M,) float64 array
        The value of each movie, if the group has several; `value` is then their mean, and `error` its error.
    within : float
        Standard error of the value of a movie, by its tracks.
    limits : (4,) float64 array
        Low and high ends of the 68 % and the 95 % interval, if these are not symmetric.
    """

    value: float
    error: float
    linking: float
    samples: Floats
    movies: Floats = field(default_factory=lambda: np.empty(0))
    within: float = np.nan
    limits: Floats = field(default_factory=lambda: np.full(4, np.nan))

    @property
    def between(self) -> float:
        """Standard deviation between movies, beyond what their own errors explain; NaN for one movie."""
        if len(self.movies) < 2:
            return np.nan
        return float(np.sqrt(max(self.movies.var(ddof=1) - self.within**2, 0.0)))

    @classmethod
    def unknown(cls, value: float = np.nan) -> Estimate:
        """Of which nothing more is known."""
        return cls(value, np.nan, np.nan, np.full(SAMPLES, np.nan))

    @classmethod
    def of(cls, drawn: Floats, samples: Floats) -> Estimate:
        """From the values in each draw and in each bootstrap sample."""
        linking = float(drawn.std(ddof=1)) if len(drawn) > 1 else np.nan
        finite = samples[np.isfinite(samples)]
        error = float(finite.std(ddof=1)) if len(finite) > 1 else np.nan
        return cls(float(drawn.mean()), error, linking, samples)


def ratio(weights: Samples, above: NDArray, below: NDArray) -> Estimate:
    """A mean, as the ratio of two sums over tracks; both (V,)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return Estimate.of(
            (weights.drawn @ above) / (weights.drawn @ below),
            (weights.resampled @ above) / (weights.resampled @ below),
        )


def shifted(weights: Samples, value: float, influence: Floats) -> Estimate:
    """A maximum likelihood estimate, moved by the influence (V,) of the tracks of each sample."""
    if not np.isfinite(influence).all():  # at an end of its range
        return Estimate.unknown(value)
    return Estimate.of(value + weights.drawn @ influence, value + weights.resampled @ influence)


def mean_of(weights: Samples, values: Floats) -> Estimate:
    """The mean over tracks of a value of each, (V,); tracks without one do not count."""
    finite = np.isfinite(values)
    return ratio(weights, np.where(finite, values, 0.0), finite.astype(np.float64))


def lagged(position: Floats, frame: NDArray, owner: NDArray, time: Floats, lag: int, count: int) -> Floats:
    """Sums for the mean square displacement and the velocity autocorrelation of all tracks, (6, K, V).

    Of squared displacements at lag k + 1, of products of velocities at lag k, how many there are of either,
    and the times between their ends, or their begins.
    """
    size = int(np.bincount(owner).max(initial=1)) if len(owner) else 1
    lags = max(1, min(LAGS, size // 2))
    first = int(frame.min(initial=0))
    span = int(frame.max(initial=0)) - first + 1 + lag * (lags + 2)
    key = owner.astype(np.int64) * span + (frame - first)
    sums = np.zeros((6, lags, count))
    begin, end = rows_apart(key, lag)
    velocity, at = (position[end] - position[begin]) / (time[end] - time[begin])[:, None], key[begin]
    for k in range(lags):
        here, there = rows_apart(key, lag * (k + 1))
        moved = np.square(position[there] - position[here]).sum(axis=1)
        nearby, near = rows_apart(at, lag * k)
        alike, of = (velocity[nearby] * velocity[near]).sum(axis=1), owner[begin[nearby]]
        apart = time[there] - time[here], time[begin[near]] - time[begin[nearby]]
        sums[:2, k] = np.bincount(owner[here], moved, count), np.bincount(of, alike, count)
        sums[2:4, k] = [np.bincount(each, minlength=count) for each in (owner[here], of)]
        sums[4:, k] = [
            np.bincount(one, far, count) for one, far in zip((owner[here], of), apart, strict=True)
        ]
    return sums


def rows_apart(key: NDArray, by: int) -> tuple[NDArray, NDArray]:
    """Rows of an ascending key that are `by` apart."""
    place = np.minimum(np.searchsorted(key, key + by), max(len(key) - 1, 0))
    here = np.flatnonzero(key[place] == key + by) if len(key) else np.zeros(0, np.int64)
    return here, place[here]


def distribution(
    weights: Samples, values: Floats, owner: NDArray, top: float | None = None
) -> tuple[Floats, list[Estimate], Floats]:
    """Density of values of tracks up to `top`, or their 99.9 % quantile: centres of bins, density, counts."""
    if top is None:
        top = float(np.quantile(values, 0.999)) if len(values) else 1.0
    width = (top or 1.0) / _BINS
    inside = np.minimum(values / width, _BINS).astype(np.int64)
    count = weights.drawn.shape[1]
    whole = np.bincount(owner, minlength=count).astype(np.float64)
    found, counts = [], []
    for number in range(_BINS):
        here = np.bincount(owner[inside == number], minlength=count).astype(np.float64)
        found.append(ratio(weights, here / width, whole))
        counts.append(float((weights.drawn @ here).mean()))
    return np.asarray((np.arange(_BINS) + 0.5) * width), found, np.array(counts, np.float64)
