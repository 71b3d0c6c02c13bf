"""Candidate divisions: a mother and two detections of the next frame that may be her daughters."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import DIVISION, Arrays, array_module
from ...compute.tolerances import OPEN
from ..inference.candidates import Search, distinct, pairs_near
from ..inference.posterior import LinkPosterior
from ..learn.em import LEAST_REACH
from ..model.movie import Movie

_NEAREST = 5
"""Prior: number of starts near a mother that may be daughters, and of mothers near a start."""
LEAST = 0.02
"""Guard: least distance between daughters and least standard deviation of an offset, in spacings."""


@dataclass(frozen=True, eq=False)
class Divisions(Arrays):
    """P candidate divisions.

    Parameters
    ----------
    mother, first, second : (P,) int64 arrays
        Rows of the three detections.
    distance : (P,) float64 array
        Distance between the daughters, in spacings.
    direction : (P, D) float64 array
        Unit vector from the first to the second.
    along, across : (P,) float64 arrays
        Squared offset of the midpoint between the daughters from the predicted position of the mother, along
        and across the line between them.
    growth : (P,) float64 array
        Increase of the distance between the daughters one frame later; NaN if unknown.
    log_density : (P,) float64 array
        Sum of the logs of the densities of detections around both daughters.
    room : (P,) float64 array
        Log of the local spacing around the mother, relative to its mean over the movie.
    """

    mother: NDArray[np.int64] = field(metadata=DIVISION)
    first: NDArray[np.int64] = field(metadata=DIVISION)
    second: NDArray[np.int64] = field(metadata=DIVISION)
    distance: NDArray[np.float64] = field(metadata=DIVISION)
    direction: NDArray[np.float64] = field(metadata=DIVISION)
    along: NDArray[np.float64] = field(metadata=DIVISION)
    across: NDArray[np.float64] = field(metadata=DIVISION)
    growth: NDArray[np.float64] = field(metadata=DIVISION)
    log_density: NDArray[np.float64] = field(metadata=DIVISION)
    room: NDArray[np.float64] = field(metadata=DIVISION)

    def __len__(self) -> int:
        return len(self.mother)

    @property
    def slots(self) -> NDArray[np.int64]:
        """(3, P) mothers and daughters."""
        return np.stack([self.mother, self.first, self.second])

    @classmethod
    def measured(
        cls, movie: Movie, flow: NDArray[np.float64], posterior: LinkPosterior, slots: NDArray[np.int64]
    ) -> Divisions:
        """Divisions of mothers and daughters (3, P), with the distances that determine their weights.

        Probable links of the posterior show where daughters are one frame later.
        """
        mother, first, second = slots
        position, log_density = movie.position, np.log(movie.density)
        between, distance = _apart(position, first, second)
        offset = (position[first] + position[second]) / 2 - position[mother] - flow[mother]
        along = (product(offset, between) / distance) ** 2
        across = np.maximum(product(offset, offset) - along, 0)
        later, growth = posterior.neighbours()[0][slots[1:]], np.full_like(distance, np.nan)
        both = np.flatnonzero((later >= 0).all(axis=0))
        growth[both] = _apart(position, *later[:, both])[1] - distance[both]
        return cls(
            mother=mother, first=first, second=second, distance=distance,
            direction=between / distance[:, None], along=along, across=across, growth=growth,
            log_density=log_density[first] + log_density[second], room=_room(movie)[mother],
        )  # fmt: skip


def _room(movie: Movie) -> NDArray[np.float64]:
    """(N,) log of the local spacing, relative to its mean."""
    room: NDArray[np.float64] = -np.log(movie.density) / movie.axes
    return room - room.mean()


def product(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) scalar products of vectors (P, D), the same wherever they are computed."""
    return np.stack([a * b for a, b in zip(one.T, other.T, strict=True)]).sum(axis=0)


def _apart(
    position: NDArray[np.float64], first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Vectors (P, D) and distances (P,) from the first to the second of pairs of rows."""
    between = position[second] - position[first]
    return between, np.maximum(np.sqrt(product(between, between)), LEAST)


def candidate_divisions(
    movie: Movie, flow: NDArray[np.float64], posterior: LinkPosterior, inside: NDArray[np.bool_]
) -> Divisions:
    """All divisions that may be: one daughter at least is a start, both are near the mother.

    They are sorted by mother, then by daughters. The posterior is without divisions; starts are `inside`
    (N,).
    """
    starts = (1 - posterior.degree_probability()[1] > OPEN) & inside & (movie.frame > 0)
    mother, daughter = _options(movie, flow, posterior, starts)
    one, other = _pairs_within(mother)
    keep = starts[daughter[one]] | starts[daughter[other]]
    one, other = one[keep], other[keep]
    slots = np.stack([mother[one], daughter[one], daughter[other]])
    if movie.pins is not None:
        slots = slots[:, movie.pins.allows_divisions(slots)]
    return Divisions.measured(movie, flow, posterior, slots)


def _options(
    movie: Movie, flow: NDArray[np.float64], posterior: LinkPosterior, starts: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a mother near a start, and a detection that may be her daughter, sorted."""
    count, expected, links = np.int64(len(movie)), movie.position + flow, posterior.candidates
    reach = LEAST_REACH * np.exp(np.maximum(_room(movie), 0))
    near = pairs_near(movie, Search(1, _NEAREST, expected, heads=starts, radius=reach))
    mothers = np.zeros_like(starts)
    mothers[near // count] = True
    linked = np.flatnonzero((links.lag == 1) & mothers[links.tail])
    way = movie.position[links.head[linked]] - expected[links.tail[linked]]
    close = linked[product(way, way) < reach[links.tail[linked]] ** 2]
    return np.divmod(distinct([near, links.key()[close]]), count)


def _pairs_within(group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of indices with equal values in `group`, which is sorted.

    Examples
    --------
    >>> [side.tolist() for side in _pairs_within(np.array([4, 4, 4, 7, 9, 9]))]
    [[0, 0, 1, 4], [1, 2, 2, 5]]
    """
    xp = array_module(group)
    later = xp.searchsorted(group, group, side="right") - xp.arange(len(group)) - 1
    last = xp.cumsum(later)
    every = xp.arange(int(later.sum()))
    one = xp.searchsorted(last, every, side="right")
    return one, one + 1 + every - (last - later)[one]
