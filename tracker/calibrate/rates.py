"""Rates: probabilities of repeated detection, misses, starts and ends, and the share of clutter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..refine.linking import Linking, LinkModel
from ..refine.movie import Movie

_MISSED = 0.05
"""Initial share of missed detections."""
_WORTH = 0.1
"""Least probability of a pair that takes part in sampled matchings;"""
_SWEEPS, _WASTE = 3, 6
"""number of samples, and of initial samples that are discarded (burn-in);"""
_ROUNDS = 2
"""and number of iterations, each with the rates of the previous one."""
_MOST, _MOST_CLUTTER = 0.9, 0.98
"""Largest rate of ends, starts and misses; largest share of ends and starts that may be clutter."""
_LEAST = np.array([2e-3, 2e-3, 1e-2, 1e-2])
"""Rates of ends, starts, clutter and misses below which they count as zero."""
_AMISS = 2.5
"""Assumed relative error of rates."""
_OFTEN, _FADING = 2e-3, 0.6
"""Least share of all links for which gaps of a length are searched, and largest ratio of the numbers of gaps
of consecutive lengths: if longer gaps are as frequent as short ones, they do not connect the same
particle."""


@dataclass(frozen=True)
class Rates:
    """The rates of a `LinkModel`; see there."""

    follow: tuple[float, ...]
    end: float
    start: float
    clutter: float

    @classmethod
    def of(cls, model: LinkModel) -> Rates:
        """The rates of a model."""
        return cls(model.follow, model.end, model.start, model.clutter)

    def put_into(self, model: LinkModel) -> LinkModel:
        """The model with these rates."""
        return replace(
            model, follow=self.follow, end=self.end, start=self.start,
            clutter=min(self.clutter, _MOST_CLUTTER * min(self.end, self.start)),
        )  # fmt: skip

    def over(self, other: Rates) -> NDArray[np.float64]:
        """(4,) rates of ends, starts, clutter and misses relative to other ones, if not negligible."""
        return np.clip((self._four + _LEAST) / (other._four + _LEAST), 1 / _AMISS, _AMISS)

    def times(self, factor: NDArray[np.float64]) -> Rates:
        """Rates of ends, starts, clutter and misses, multiplied by (4,) factors.

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
    """Rates from sampled matchings, whose probabilities are consistent with these rates.

    If many links can be exchanged, belief propagation underestimates their total probability and finds two to
    four times too many ends. A few sampled matchings say little about a single pair, but suffice for the
    rates.

    Parameters
    ----------
    movie, linking : Movie, Linking
    model : LinkModel
        The model used for linking.
    max_gap : int
        Largest number of frames in which a particle may be missing, for the next search.
    factor : (4,) float64 array
        True rates relative to those from matchings, as returned by `Rates.over`.
    rounds : int
        Number of iterations.
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
    """The rates from links that are known to be right, with the clutter of the model."""
    longest = len(model.follow)
    links = _Counted(movie, truth, _gaps(movie, truth), truth.probability, longest)
    return Rates(*links.rates(longest - 1), clutter=model.clutter)


def lengthened(follow: tuple[float, ...], found: NDArray[np.intp], most: int) -> tuple[float, ...]:
    """Probabilities of the next detection after 1, 2, … frames, extended by longer gaps if they are frequent.

    Parameters
    ----------
    follow : tuple of float
        Probabilities for the gap lengths searched so far.
    found : (G,) int64 array
        Number of links over 1, 2, … frames; longer ones are extrapolated with the last ratio.
    most : int
        Largest number of frames in which a particle may be missing.

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
    """Matchings sampled by a Markov chain according to their probability.

    Improbable pairs are not sampled; they share the probability of detections without a link.
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
        """(Q,) frequency of each pair in sampled matchings, with log odds changed by gap length."""
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
    """Rates from the frequencies of pairs, given the gap lengths that were searched."""

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
        """Probabilities of the next detection after 1, 2, … frames, of an end and of a start."""
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
        """Share of clutter given the rates, from detections without any link."""
        if not self._inner or rates.clutter == 0:
            return 0.0
        # Particles that start and end at once are alone as well.
        short = max(rates.end - rates.clutter, 0) * max(rates.start - rates.clutter, 0) / (1 - rates.clutter)
        return self._alone / self._inner * rates.clutter / (rates.clutter + short)


def _gaps(movie: Movie, linking: Linking) -> NDArray[np.int64]:
    """(Q,) number of frames between the two detections of each pair."""
    return np.asarray(movie.frame[linking.col] - movie.frame[linking.row])
