"""Rates: how often particles are seen next, are missed, start and end, and how many detections are none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..refine.linking import Linking, LinkModel
from ..refine.movie import Movie

_MISSED = 0.05
"""Share of detections missed that is tried first."""
_WORTH = 0.1
"""Probability of a pair that is tried in matchings that are drawn;"""
_SWEEPS, _WASTE = 3, 6
"""how many are drawn at a time, and how many more at first, which tell too much of how they began;"""
_ROUNDS = 2
"""and how many times, by the rates that those before tell."""
_MOST, _MOST_CLUTTER = 0.9, 0.98
"""Largest rate of ends, starts and misses; share of ends and starts that may be clutter."""
_LEAST = np.array([2e-3, 2e-3, 1e-2, 1e-2])
"""Rates of ends, starts, clutter and misses that are much like none."""
_AMISS = 2.5
"""How wrong rates may be."""
_OFTEN, _FADING = 2e-3, 0.6
"""Share of all links up to which gaps of their length are worth a look; and by how much each frame more must
make them rarer: who comes back as often after any time was not missed, but is another in the same place."""


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
    gap = _gaps(movie, linking)
    lots, rates = _Lots(linking, gap), Rates.of(model)
    known = np.log(np.maximum(model.follow, 1e-12)) - np.log(model.end * model.start)
    for _ in range(rounds):
        told = np.log(np.maximum(rates.follow[: len(known)], 1e-12)) - np.log(rates.end * rates.start)
        links = _Counted(movie, linking, gap, lots.drawn(told - known), len(model.follow))
        rates = Rates(*links.rates(max_gap), links.clutter(rates)).times(factor)
    return rates


def rates_counted(movie: Movie, truth: Linking, model: LinkModel) -> Rates:
    """The rates of links that are known to be right, in a movie of so much clutter as the model says."""
    longest = len(model.follow)
    links = _Counted(movie, truth, _gaps(movie, truth), truth.probability, longest)
    return Rates(*links.rates(longest - 1), clutter=model.clutter)


def lengthened(follow: tuple[float, ...], found: NDArray[np.intp], most: int) -> tuple[float, ...]:
    """Probabilities of being seen next after 1, 2, … frames, and after as many more as are worth a look.

    Parameters
    ----------
    follow : tuple of float
        Those of the gaps that were tried.
    found : (G,) int64 array
        Links over 1, 2, … frames; each frame more makes them rarer as the last one did.
    most : int
        Frames that a particle may be missing.

    Examples
    --------
    >>> follow = lengthened((0.8, 0.08, 0.02), np.array([800, 80, 20]), most=9)
    >>> np.round(follow, 4).tolist()
    [0.7956, 0.0796, 0.0199, 0.005]
    """
    found = found[: len(follow)]
    if len(follow) < 3 or len(found) < len(follow) or not 0 < found[-1] < _FADING * found[-2]:
        return follow
    rarer, share = found[-1] / found[-2], found[-1] / found.sum()
    more = min(int(np.log(_OFTEN / share) / np.log(rarer)), most + 1 - len(follow))
    longer = np.append(follow, follow[-1] * rarer ** np.arange(1, more + 1))
    return tuple((longer / longer.sum() * sum(follow)).tolist())


class _Lots:
    """Matchings that are drawn as likely as they are, each from the one before.

    Pairs that are hardly probable are not drawn: they are what a detection without a link may have.
    """

    def __init__(self, linking: Linking, gap: NDArray[np.int64]) -> None:
        from . import rates_cpu as kernels

        pairs, count = len(linking.row), len(linking.follower)
        self._linking, self._gap, self._waste = linking, gap, _WASTE
        self._indptr, self._order = np.empty(count + 1, np.int64), np.empty(pairs, np.uint32)
        self._odds, self._rest = np.empty((2, pairs)), np.empty((2, count))
        kernels.split(
            linking.row, linking.col, linking.probability, linking.follower, _WORTH, self._indptr,
            self._order, self._odds,
        )  # fmt: skip
        self._col = linking.col[self._order[: self._indptr[-1]]]
        self._follower, self._before = linking.follower.copy(), linking.before.copy()

    def drawn(self, more: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Q,) shares of the pairs in some matchings, if log odds are so much more after 1, 2, … frames."""
        from . import rates_cpu as kernels
        from .sampling_cpu import sample_matchings

        linking, more = self._linking, np.append(0.0, more)
        gain, seen, chance = np.empty(len(self._col)), np.empty(len(self._col)), np.empty(len(linking.row))
        pairs = (self._gap, self._order, self._odds)
        kernels.weigh(linking.row, linking.col, *pairs, linking.odds, more, self._rest, gain)
        sample_matchings(
            self._indptr, self._col, gain, self._follower, self._before, _SWEEPS + self._waste, self._waste,
            seen,
        )  # fmt: skip
        self._waste = 0
        kernels.share(linking.row, *pairs, more, self._rest, seen, chance)
        return chance


class _Counted:
    """What pairs tell of rates that are linked so often; links over so many frames were tried."""

    def __init__(
        self,
        movie: Movie,
        linking: Linking,
        gap: NDArray[np.int64],
        chance: NDArray[np.float64],
        tried: int,
    ) -> None:
        from . import rates_cpu as kernels

        frame, self._tried = movie.frame, tried
        reach = max(int(gap.max(initial=1)), tried)
        # Only where the movie is long enough to show what happens.
        early, late = frame[-1] - reach, frame[0] + reach
        if early < frame[0]:
            early, late = frame[-1] - 1, frame[0] + 1
        shares = np.empty(reach + 1)
        self._lost, self._new, self._begun, self._alone, self._inner = kernels.count(
            linking.row, linking.col, gap, chance, frame, early, late, shares
        )
        self._shares = shares[1:] + 0.5

    def rates(self, max_gap: int) -> tuple[tuple[float, ...], float, float]:
        """Probabilities of being seen next after 1, 2, … frames, of an end and of a start."""
        shares, lost = self._shares, self._lost + 0.5
        total = float(shares.sum())
        # Links over three frames get lost easily: misses that are independent tell how many there are at
        # least. But particles that meet are seen as one for some frames. What was not tried yet begins with a
        # rare miss.
        over = np.arange(1, len(shares) + 1)
        missed = float(((over - 1) * shares).sum() / (over * shares).sum()) if self._tried > 1 else _MISSED
        odds = missed ** np.arange(max_gap + 1)
        odds /= odds.sum()
        if self._tried > max_gap:
            odds = np.maximum(odds, shares[: max_gap + 1] / total)
        follow = tuple((odds / odds.sum() * total / (total + lost)).tolist())
        # Where hardly any link is sure, shares of one column may exceed 1.
        start = (max(self._new, 0.0) + 0.5) / (self._begun + 1.0)
        return follow, min(lost / (total + lost), _MOST), min(start, _MOST)

    def clutter(self, rates: Rates) -> float:
        """Share of detections that are no particle, by the rates so far: those with no link at all."""
        if not self._inner or rates.clutter == 0:
            return 0.0
        # Particles that start and end at once are alone as well.
        short = max(rates.end - rates.clutter, 0) * max(rates.start - rates.clutter, 0) / (1 - rates.clutter)
        return self._alone / self._inner * rates.clutter / (rates.clutter + short)


def _gaps(movie: Movie, linking: Linking) -> NDArray[np.int64]:
    """(Q,) frames from the one to the other of each pair."""
    return np.asarray(movie.frame[linking.col] - movie.frame[linking.row])
