"""Rates: how often particles are seen next, are missed, start and end, and how many detections are none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .linking import Linking, LinkModel
from .movie import Movie

_MISSED = 0.05
"""Share of detections missed that is tried first."""
_WORTH = 0.1
"""Probability of a pair that is tried in matchings that are drawn;"""
_SWEEPS, _WASTE = 3, 6
"""how many are drawn at a time, and how many more at first, which tell too much of how they began;"""
_ROUNDS = 3
"""and how many times, by the rates that those before tell."""
_MOST, _MOST_CLUTTER = 0.9, 0.98
"""Largest rate of ends, starts and misses; share of ends and starts that may be clutter."""
_LEAST = np.array([2e-3, 2e-3, 1e-2, 1e-2])
"""Rates of ends, starts, clutter and misses that are much like none."""
_AMISS = 2.5
"""How wrong rates may be."""


@dataclass(frozen=True)
class Rates:
    """Rates of a `LinkModel`, which tells what they are."""

    follow: tuple[float, ...]
    end: float
    start: float
    clutter: float

    @classmethod
    def of(cls, model: LinkModel) -> Rates:
        """Those of a model."""
        return cls(model.follow, model.end, model.start, model.clutter)

    def put_into(self, model: LinkModel) -> LinkModel:
        """The model with these."""
        return replace(
            model, follow=self.follow, end=self.end, start=self.start,
            clutter=min(self.clutter, _MOST_CLUTTER * min(self.end, self.start)),
        )  # fmt: skip

    def over(self, other: Rates) -> NDArray[np.float64]:
        """(4,) rates of ends, starts, clutter and misses in those of the other, as far as they matter."""
        return np.clip((self._four + _LEAST) / (other._four + _LEAST), 1 / _AMISS, _AMISS)

    def times(self, factor: NDArray[np.float64]) -> Rates:
        """Rates of ends, starts, clutter and misses that are (4,) such factors higher.

        Examples
        --------
        >>> rates = Rates((0.72, 0.08), 0.2, 0.1, 0.05).times(np.array([0.5, 1.0, 1.0, 2.0]))
        >>> np.round(rates.follow, 2).tolist(), rates.end, rates.start, rates.clutter
        ([0.72, 0.18], 0.1, 0.1, 0.05)
        """
        end, start, clutter, late = np.minimum(self._four * factor, _MOST).tolist()
        follow = np.array(self.follow)
        if late > 0:
            follow[1:] *= late / follow[1:].sum() * follow[0] / (1 - late)
        return Rates(tuple((follow / follow.sum() * (1 - end)).tolist()), end, start, clutter)

    @property
    def _four(self) -> NDArray[np.float64]:
        return np.array([self.end, self.start, self.clutter, sum(self.follow[1:]) / sum(self.follow)])


def rates_learned(
    movie: Movie,
    linking: Linking,
    model: LinkModel,
    max_gap: int,
    factor: NDArray[np.float64],
    rounds: int = _ROUNDS,
) -> Rates:
    """The rates that all matchings tell, each as likely as it is by the rates that they tell.

    Where many links could swap, belief propagation takes what they exclude for a chance of none, and sees
    two to four times as many ends as there are. Few matchings tell little of a pair, but enough of all.

    Parameters
    ----------
    movie, linking : Movie, Linking
    model : LinkModel
        By which they were linked.
    max_gap : int
        Frames that a particle may be missing, to be looked for next.
    factor : (4,) float64 array
        True rates in those that matchings tell, as `Rates.over` gives them.
    rounds : int
        How many times they are drawn.
    """
    lots, rates = _Lots(linking), Rates.of(model)
    gap = movie.frame[linking.col] - movie.frame[linking.row]
    known = np.log(np.maximum(model.follow, 1e-12)) - np.log(model.end * model.start)
    for _ in range(rounds):
        told = np.log(np.maximum(rates.follow[: len(known)], 1e-12)) - np.log(rates.end * rates.start)
        chance = lots.drawn((told - known)[gap - 1])
        follow, end, start = _counted(movie, linking, chance, len(model.follow), max_gap)
        rates = Rates(follow, end, start, _clutter(movie, linking, chance, rates)).times(factor)
    return rates


def rates_counted(movie: Movie, truth: Linking, model: LinkModel) -> Rates:
    """The rates of links that are known to be right, in a movie of so much clutter as the model says."""
    longest = len(model.follow)
    return Rates(*_counted(movie, truth, truth.probability, longest, longest - 1), model.clutter)


class _Lots:
    """Matchings that are drawn as likely as they are, each from the one before.

    Pairs that are hardly probable are not drawn: they are what a detection without a link may have.
    """

    def __init__(self, linking: Linking) -> None:
        row, col, chance, count = linking.row, linking.col, linking.probability, len(linking.follower)
        worth = (chance > _WORTH) | (linking.follower[row] == col)
        self._few, self._worth = np.nonzero(~worth)[0], np.nonzero(worth)[0]
        # Odds of each against no link at all, of its row and of its column.
        self._odds = [
            chance[self._few] / np.maximum(1 - np.bincount(ends, chance, count), 1e-9)[ends[self._few]]
            for ends in (row, col)
        ]
        self._indptr = np.searchsorted(row[self._worth], np.arange(count + 1))
        self._linking, self._waste = linking, _WASTE
        self._follower, self._before = linking.follower.copy(), linking.before.copy()

    def drawn(self, more: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Q,) shares of the pairs in some matchings, if their log odds are so much more."""
        from .sampling_cpu import sample_matchings

        few, worth = self._few, self._worth
        row, col, count = self._linking.row, self._linking.col, len(self._linking.follower)
        odds = [known * np.exp(more[few]) for known in self._odds]
        rest = [np.bincount(ends[few], each, count) for ends, each in zip((row, col), odds, strict=True)]
        gain = self._linking.odds[worth] + more[worth]
        gain -= np.log1p(rest[0])[row[worth]] + np.log1p(rest[1])[col[worth]]
        seen, share = np.empty(len(worth)), np.empty(len(row))
        sample_matchings(
            self._indptr, col[worth], gain, self._follower, self._before, _SWEEPS + self._waste, self._waste,
            seen,
        )  # fmt: skip
        self._waste = 0
        free = 1 - np.bincount(row[worth], seen, count)
        share[worth], share[few] = seen, (free / (1 + rest[0]))[row[few]] * odds[0]
        return share


def _clutter(movie: Movie, linking: Linking, chance: NDArray[np.float64], rates: Rates) -> float:
    """Share of detections that are no particle, by the rates so far: those without a link on either side."""
    inner = (movie.frame > movie.frame[0]) & (movie.frame < movie.frame[-1])
    if not inner.any() or rates.clutter == 0:
        return 0.0
    leaves, reached = (np.bincount(ends, chance, len(inner))[inner] for ends in (linking.row, linking.col))
    lone = float(np.mean(np.maximum(1 - leaves, 0) * np.maximum(1 - reached, 0)))
    # Particles that start and end at once are alone as well.
    short = max(rates.end - rates.clutter, 0) * max(rates.start - rates.clutter, 0) / (1 - rates.clutter)
    return lone * rates.clutter / (rates.clutter + short)


def _counted(
    movie: Movie, linking: Linking, chance: NDArray[np.float64], tried: int, max_gap: int
) -> tuple[tuple[float, ...], float, float]:
    """Probabilities of being seen next after 1, 2, … frames (some were tried), of an end and of a start."""
    count, first, last = len(movie.frame), movie.frame[0], movie.frame[-1]
    gap = movie.frame[linking.col] - movie.frame[linking.row]
    reach = max(int(gap.max(initial=1)), tried)
    leaves = np.bincount(linking.row, chance, count)
    reached = np.bincount(linking.col, chance, count)
    # Only where the movie is long enough to show what happens.
    early, late = movie.frame <= last - reach, movie.frame >= first + reach
    if not early.any():
        early, late = movie.frame < last, movie.frame > first
    seen = early[linking.row]
    shares = np.bincount(gap[seen], chance[seen], reach + 1)[1:] + 0.5
    lost = float(np.sum(1 - leaves[early])) + 0.5
    total = float(shares.sum())
    # Links over three frames get lost easily: misses that are independent tell how many there are at least.
    # But particles that meet are seen as one for some frames. What was not tried yet begins with a rare miss.
    over = np.arange(1, reach + 1)
    missed = float(((over - 1) * shares).sum() / (over * shares).sum()) if tried > 1 else _MISSED
    odds = missed ** np.arange(max_gap + 1)
    odds /= odds.sum()
    if tried > max_gap:
        odds = np.maximum(odds, shares[: max_gap + 1] / total)
    follow = tuple((odds / odds.sum() * total / (total + lost)).tolist())
    end = lost / (total + lost)
    # Where hardly any link is sure, shares of one column may exceed 1.
    start = (max(float(np.sum(1 - reached[late])), 0.0) + 0.5) / (int(late.sum()) + 1.0)
    return follow, min(end, _MOST), min(start, _MOST)
