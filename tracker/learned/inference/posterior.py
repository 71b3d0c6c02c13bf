"""The posterior over links: probabilities of all candidates, given a movie and a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import array_module
from .candidates import Candidates, candidates_of, distinct
from .records import Moments


class Displacements(NamedTuple):
    """Places (E, D) of tails, moved by a flow (N, D), from heads: they stay while the flow does."""

    flow: NDArray[np.float64]
    away: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LinkPosterior:
    """Probabilities of candidate links and detections.

    Parameters
    ----------
    candidates : Candidates
    probability : (E,) float64 array
        Marginal probability of each link.
    rivals : (2, E) float64 array
        Weights of its competitors in row and column, from which the next sweep starts.
    ratio, past, future : (E,) float64 arrays
        Likelihood ratio from both sides, from the past alone and from the future alone.
    clutter, death, birth : (N,) float64 arrays
        Probability that a detection is clutter, the last of its track, and the first of its track.
    fresh : (N,) float64 array
        Probability, from the past alone, that a detection has no predecessor.
    clutter_weight : (2, N) float64 array
        Weights of clutter in rows and columns.
    log_evidence : float
        Log likelihood of the movie, relative to 'no two detections are linked'; known after a sweep with the
        exponent 1.
    change : float
        Change of the marginals in the last sweep, per detection.
    moments : Moments or None
        Expected sufficient statistics of the steps; None if the last sweep did not compute them.
    sweeps : int
        Number of sweeps so far.
    omega : float
        Exponent of rivals of the last sweep.
    displaced : Displacements or None
        Of the last sweep.
    pull : (2, E) float32 array or None
        Weights of links where they come in, by which marks are followed.
    """

    candidates: Candidates
    probability: NDArray[np.float64]
    rivals: NDArray[np.float64]
    ratio: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    past: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    future: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    clutter: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    death: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    birth: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    fresh: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    clutter_weight: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 1)))
    log_evidence: float = -np.inf
    change: float = np.inf
    moments: Moments | None = None
    sweeps: int = 0
    omega: float = 1.0
    displaced: Displacements | None = None
    pull: NDArray[np.float32] | None = None

    @classmethod
    def unknown(cls, candidates: Candidates) -> LinkPosterior:
        """A posterior before the first sweep."""
        xp = array_module(candidates.tail)
        return cls(
            candidates, xp.zeros(candidates.size), xp.ones((2, candidates.size)),
            clutter_weight=xp.zeros((2, 1)),
        )  # fmt: skip

    def kept(self, keep: NDArray[np.bool_]) -> LinkPosterior:
        """The candidates selected by a mask (E,), ready for the next sweep; values of detections stay."""
        if keep.all():
            return self
        none, some, displaced = self.ratio[:0], self.candidates.kept(keep), self.displaced
        if displaced is not None:
            displaced = displaced._replace(away=displaced.away[keep])
        return replace(
            self, candidates=some, probability=self.probability[keep], rivals=self.rivals[:, keep],
            ratio=self.ratio[keep] if len(self.ratio) else none, past=none, future=none, moments=None,
            displaced=displaced, pull=None if self.pull is None else self.pull[:, keep],
        )  # fmt: skip

    def at(self, rows: NDArray[np.int64], frame: NDArray[np.int64]) -> LinkPosterior:
        """That of some detections (M,), which increase, and of links between them; frame (M,) is theirs."""
        candidates, xp = self.candidates, array_module(rows)
        place = xp.full(len(candidates.row_start) - 1, -1)
        place[rows] = xp.arange(len(rows))
        first, last = (int(candidates.row_start[end]) for end in (rows[0], rows[-1] + 1))
        tail, head = (place[end[first:last]] for end in candidates[:2])
        inner = (tail >= 0) & (head >= 0)
        links, values = first + np.flatnonzero(inner), {}
        of_links = dict.fromkeys(("probability", "rivals", "ratio", "past", "future"), links)
        of_rows = dict.fromkeys(("clutter", "death", "birth", "fresh", "clutter_weight"), rows)
        for name, index in (of_links | of_rows).items():
            values[name] = getattr(self, name)[..., index]
        key = tail[inner] * np.int64(len(rows)) + head[inner]
        return replace(
            self, candidates=candidates_of(key, frame), **values, moments=None, displaced=None, pull=None
        )

    def with_pairs(self, key: NDArray[np.int64], frame: NDArray[np.int64]) -> LinkPosterior:
        """The same with further candidates, ready for the next sweep; keys as `Candidates.key` has them."""
        old = self.candidates.key()
        every = distinct([old, key])
        place = np.searchsorted(every, old)
        grown = replace(
            LinkPosterior.unknown(candidates_of(every, frame)), sweeps=self.sweeps, clutter=self.clutter,
            death=self.death, birth=self.birth, fresh=self.fresh, clutter_weight=self.clutter_weight,
            omega=self.omega,
        )  # fmt: skip
        grown.probability[place] = self.probability
        grown.rivals[:, place] = self.rivals
        if len(self.ratio):
            grown = replace(grown, ratio=np.zeros_like(every, np.float64))
            grown.ratio[place] = self.ratio
        return grown

    def neighbours(self) -> NDArray[np.int64]:
        """(2, N) probable successor in the next frame, and predecessor in the previous one; -1 for none.

        Of likely links no two share an end.
        """
        candidates = self.candidates
        likely = (self.probability > 0.5) & (candidates.lag == 1)
        tail, head = candidates.tail[likely], candidates.head[likely]
        rows = np.full((2, len(candidates.row_start) - 1), -1)
        rows[0, tail], rows[1, head] = head, tail
        return rows

    def linked(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(N,) probabilities that detections have a successor, and a predecessor."""
        candidates, p = self.candidates, self.probability
        assert len(candidates.row_start) == count + 1
        return candidates.at_tails(p), candidates.at_heads(p)
