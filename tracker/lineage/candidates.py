"""Candidate divisions: a mother and two detections of the next frame that may be her daughters."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..inference.candidates import Search, pairs_near
from .evidence import Evidence

_REACH = 1.8
"""Prior: largest distance of daughters from the predicted position of the mother, in spacings."""
_NEAREST = 8
"""Prior: number of starts near a mother that may be daughters, and of mothers near a start."""
_STARTS = 0.02
"""Error level: probability of no predecessor below which a detection without a link to the mother is no
daughter."""
_RARE = 1e-9
"""Guard: weight relative to all alternatives below which a division is no candidate."""


@dataclass(frozen=True, eq=False)
class Divisions:
    """P candidate divisions.

    Parameters
    ----------
    mother, first, second : (P,) int64 arrays
        Rows; the second daughter is the one with the smaller probability of a link to the mother.
    weight : (P,) float64 array
        Probability that the mother has no other successor and the daughters no other predecessor.
    distance : (P,) float64 array
        Distance between the daughters, in spacings.
    along, across : (P,) float64 arrays
        Squared offset of the midpoint between the daughters from the predicted position of the mother, along
        and across the line between them.
    growth : (P,) float64 array
        Increase of the distance between the daughters one frame later; NaN if unknown.
    log_chance : (P,) float64 array
        Log of the density of detections around both daughters.
    """

    mother: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    weight: NDArray[np.float64]
    distance: NDArray[np.float64]
    along: NDArray[np.float64]
    across: NDArray[np.float64]
    growth: NDArray[np.float64]
    log_chance: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.mother)

    def kept(self, keep: NDArray[np.bool_]) -> Divisions:
        """The divisions selected by a mask (P,)."""
        return Divisions(*(getattr(self, field.name)[keep] for field in fields(self)))


def candidate_divisions(evidence: Evidence) -> Divisions:
    """Find all candidate divisions of a movie.

    Parameters
    ----------
    evidence : Evidence

    Returns
    -------
    Divisions
        Sorted by mother, then by daughters.
    """
    mother, daughter, apart = _options(evidence)
    one, other = _pairs_within(mother)
    alone = evidence.no_predecessor[daughter]
    weights = apart[one] * alone[other], apart[other] * alone[one]
    weight = np.maximum(*weights)
    swap = weights[1] > weights[0]
    one, other = np.where(swap, other, one), np.where(swap, one, other)
    likely = (weight > _RARE) & (alone[other] > _STARTS)
    one, other, weight = one[likely], other[likely], weight[likely]
    return _measured(evidence, mother[one], daughter[one], daughter[other], weight)


def _options(evidence: Evidence) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of mother and daughter near a start, and the probability that neither has another link."""
    movie, count = evidence.movie, np.int64(len(evidence.movie))
    starts = (evidence.no_predecessor > _STARTS) & (movie.frame > 0)
    expected = movie.position + evidence.flow
    near = pairs_near(movie, Search(1, _NEAREST, expected, heads=starts, radius=_REACH))
    linked = evidence.tail * count + evidence.head
    of_mothers = np.isin(evidence.tail, np.unique(near // count))
    way = movie.position[evidence.head] - expected[evidence.tail]
    close = of_mothers & (np.einsum("ij,ij->i", way, way) < _REACH**2)
    key = np.union1d(near, linked[close])
    mother, daughter = np.divmod(key, count)
    apart = evidence.no_successor[mother] * evidence.no_predecessor[daughter]
    place = np.minimum(np.searchsorted(linked, key), max(len(linked) - 1, 0))
    if len(linked):
        known = linked[place] == key
        apart = np.where(known, np.maximum(apart, evidence.apart[place]), apart)
    return mother, daughter, apart


def _pairs_within(group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of indices with equal values in `group`, which is sorted.

    Examples
    --------
    >>> [side.tolist() for side in _pairs_within(np.array([4, 4, 4, 7, 9, 9]))]
    [[0, 0, 1, 4], [1, 2, 2, 5]]
    """
    later = np.searchsorted(group, group, side="right") - np.arange(len(group)) - 1
    one = np.repeat(np.arange(len(group)), later)
    number = np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    return one, one + 1 + number


def _measured(
    evidence: Evidence,
    mother: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    weight: NDArray[np.float64],
) -> Divisions:
    """Candidates with the distances that determine their odds."""
    position, density = evidence.movie.position, evidence.movie.density
    between = position[second] - position[first]
    distance = np.maximum(np.sqrt(np.einsum("ij,ij->i", between, between)), 1e-9)
    offset = (position[first] + position[second]) / 2 - position[mother] - evidence.flow[mother]
    along = (np.einsum("ij,ij->i", offset, between) / distance) ** 2
    across = np.maximum(np.einsum("ij,ij->i", offset, offset) - along, 0)
    later, known = evidence.successor[np.stack([first, second])], np.full(len(mother), np.nan)
    both = np.flatnonzero((later >= 0).all(axis=0))
    apart = position[later[1, both]] - position[later[0, both]]
    known[both] = np.sqrt(np.einsum("ij,ij->i", apart, apart)) - distance[both]
    log_chance = np.log(density[first]) + np.log(density[second])
    return Divisions(mother, first, second, weight, distance, along, across, known, log_chance)
