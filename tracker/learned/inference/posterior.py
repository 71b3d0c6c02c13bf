"""The posterior over links: probabilities of all candidates, given a movie and a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import LINK, LINK_BY_SIDE, ROW, ROW_BY_SIDE, Arrays, array_module
from .candidates import Candidates, candidates_of, distinct
from .records import Moments


@dataclass(frozen=True, eq=False)
class Displacements(Arrays):
    """Places (E, D) of tails, moved by a flow (N, D), from heads: they stay while the flow does."""

    flow: NDArray[np.float64] = field(metadata=ROW)
    away: NDArray[np.float32] = field(metadata=LINK)


def _empty() -> NDArray[np.float64]:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class LinkPosterior(Arrays):
    """Probabilities of candidate links and detections.

    Parameters
    ----------
    candidates : Candidates
    probability : (E,) float64 array
        Marginal probability of each link.
    competing : (2, E) float64 array
        Weights of its competitors in row and column, from which the next sweep starts.
    clutter_weight : (2, N) float64 array
        Weights of clutter in rows and columns.
    ratio : (E,) float64 array
        Likelihood ratio, from both sides.
    clutter, death, birth : (N,) float64 arrays
        Probability that a detection is clutter, the last of its track, and the first of its track.
    birth_forward : (N,) float64 array
        Probability, from the past alone, that a detection has no predecessor.
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
        Exponent of competing weights of the last sweep.
    displaced : Displacements or None
        Of the last sweep.
    incoming_weight : (2, E) float32 array or None
        Weights of links where they come in, by which features are followed.
    """

    candidates: Candidates
    probability: NDArray[np.float64] = field(metadata=LINK)
    competing: NDArray[np.float64] = field(metadata=LINK_BY_SIDE)
    clutter_weight: NDArray[np.float64] = field(metadata=ROW_BY_SIDE)
    ratio: NDArray[np.float64] = field(metadata=LINK, default_factory=_empty)
    clutter: NDArray[np.float64] = field(metadata=ROW, default_factory=_empty)
    death: NDArray[np.float64] = field(metadata=ROW, default_factory=_empty)
    birth: NDArray[np.float64] = field(metadata=ROW, default_factory=_empty)
    birth_forward: NDArray[np.float64] = field(metadata=ROW, default_factory=_empty)
    log_evidence: float = -np.inf
    change: float = np.inf
    moments: Moments | None = None
    sweeps: int = 0
    omega: float = 1.0
    displaced: Displacements | None = None
    incoming_weight: NDArray[np.float32] | None = field(metadata=LINK_BY_SIDE, default=None)

    @classmethod
    def unknown(cls, candidates: Candidates) -> LinkPosterior:
        """A posterior before the first sweep."""
        xp = array_module(candidates.tail)
        return cls.begun(candidates, xp.zeros(candidates.size), xp.ones((2, candidates.size)))

    @classmethod
    def begun(
        cls, candidates: Candidates, probability: NDArray[np.float64], competing: NDArray[np.float64]
    ) -> LinkPosterior:
        """A posterior of which links alone are known."""
        nothing = array_module(probability).zeros((2, len(candidates.row_start) - 1))
        return cls(candidates, probability, competing, nothing)

    def kept(self, keep: NDArray[np.bool_]) -> LinkPosterior:
        """The candidates selected by a mask (E,), ready for the next sweep; values of detections stay."""
        if keep.all():
            return self
        candidates, part = self.candidates.kept(keep), replace(self, moments=None).take("link", keep)
        return replace(part, candidates=candidates)

    def at(
        self, rows: NDArray[np.int64], frame: NDArray[np.int64]
    ) -> tuple[LinkPosterior, NDArray[np.int64]]:
        """That of some detections (M,), which increase, and the places of links between them.

        frame (M,) is theirs.
        """
        links, key = self.candidates.between(rows)
        part = replace(self, moments=None, displaced=None).take("row", rows).take("link", links)
        return replace(part, candidates=candidates_of(key, frame)), links

    def with_pairs(self, key: NDArray[np.int64], frame: NDArray[np.int64]) -> LinkPosterior:
        """The same with further candidates, ready for the next sweep; keys as `Candidates.key` has them."""
        old = self.candidates.key()
        every = distinct([old, key])
        blank = LinkPosterior.unknown(candidates_of(every, frame))
        ratio = np.zeros_like(blank.probability, shape=len(every) if len(self.ratio) else 0)
        grown = replace(
            self, candidates=blank.candidates, probability=blank.probability, competing=blank.competing,
            ratio=ratio, moments=None, displaced=None, incoming_weight=None,
        )  # fmt: skip
        return grown.paste(self, "link", np.searchsorted(every, old))

    def neighbours(self) -> NDArray[np.int64]:
        """(2, N) probable successor in the next frame, and predecessor in the previous one; -1 for none.

        Of likely links no two share an end.
        """
        candidates = self.candidates
        likely = (self.probability > 0.5) & (candidates.lag == 1)
        tail, head = candidates.tail[likely], candidates.head[likely]
        rows = np.full_like(candidates.row_start, -1, shape=(2, len(candidates.row_start) - 1))
        rows[0, tail], rows[1, head] = head, tail
        return rows

    def degree_probability(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(N,) probabilities that detections have a successor, and a predecessor."""
        return self.candidates.at_tails(self.probability), self.candidates.at_heads(self.probability)
