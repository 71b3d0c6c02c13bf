"""Probabilities of each detection from links alone, in either direction of time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior import LinkPosterior
from ..model import Model
from ..model.movie import Movie
from ..neighbours import nearest


@dataclass(frozen=True, eq=False)
class Evidence:
    """A movie and the posterior of its links to the next frame, without divisions.

    Parameters
    ----------
    movie : Movie
    flow : (N, D) float64 array
        Step to the next frame that a detection shares with its neighbours.
    tail, head : (E,) int64 arrays
        Candidate links of lag 1, sorted by tail, then by head.
    apart : (E,) float64 array
        Probability that neither end of a candidate has a link, apart from the candidate itself.
    no_successor, no_predecessor : (N,) float64 arrays
        Probability that a detection has no successor, or no predecessor.
    successor, predecessor : (N,) int64 arrays
        The probable successor in the next frame and predecessor in the previous one; -1 for none.
    """

    movie: Movie
    flow: NDArray[np.float64]
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    apart: NDArray[np.float64]
    no_successor: NDArray[np.float64]
    no_predecessor: NDArray[np.float64]
    successor: NDArray[np.int64]
    predecessor: NDArray[np.int64]

    @classmethod
    def of(cls, movie: Movie, model: Model, posterior: LinkPosterior) -> Evidence:
        """Compute the evidence from the posterior of links.

        The odds of a link against 'neither end is linked' are `ratio` over the weights of a death and a
        birth. The probability that neither end is linked therefore follows from that of the link, even if
        it is very small.
        """
        candidates, around = posterior.candidates, model.surroundings
        next_frame = np.flatnonzero(candidates.lag == 1)
        tail, head = (rows[next_frame].astype(np.int64) for rows in (candidates.tail, candidates.head))
        death = model.association.death(movie.left, around.survival)
        birth = model.association.birth(movie.frame, around.survival_back)
        odds = posterior.ratio[next_frame] / (death[tail] * birth[head])
        after, before = posterior.linked(len(movie))
        probability = posterior.probability[next_frame]
        successor, predecessor = np.full((2, len(movie)), -1)
        likely = probability > 0.5  # of which no two share an end
        successor[tail[likely]], predecessor[head[likely]] = head[likely], tail[likely]
        return cls(
            movie, around.flow, tail, head, probability / np.maximum(odds, 1e-300),
            np.clip(1 - after, 0, 1), np.clip(1 - before, 0, 1), successor, predecessor,
        )  # fmt: skip

    def backward(self) -> Evidence:
        """The time-reversed movie, in which a meeting looks like a division.

        Its flow is minus the step from the previous frame: that of the predecessor, or of the detection there
        whose predicted position is nearest.
        """
        movie, last = self.movie, len(self.movie) - 1
        turned = replace(
            movie,
            position=np.ascontiguousarray(movie.position[::-1]),
            frame=movie.frames - 1 - movie.frame[::-1],
            frame_start=len(movie) - movie.frame_start[::-1],
            density=movie.density[::-1],
            time=None if movie.time is None else -movie.time[::-1],
        )
        order = np.lexsort((last - self.tail, last - self.head))
        return Evidence(
            turned, -self._flow_before()[::-1], (last - self.head)[order], (last - self.tail)[order],
            self.apart[order],
            self.no_predecessor[::-1], self.no_successor[::-1], _turned(self.predecessor),
            _turned(self.successor),
        )  # fmt: skip

    def _flow_before(self) -> NDArray[np.float64]:
        """(N, D) step from the previous frame that a detection shares with its neighbours."""
        movie, source = self.movie, self.predecessor.copy()
        expected = movie.position + self.flow
        orphans = np.flatnonzero((source < 0) & (movie.frame > 0))
        places = np.concatenate([movie.position[orphans], expected])
        ends = np.arange(movie.frames + 1)
        start = np.concatenate(
            [np.searchsorted(movie.frame[orphans], ends[:-1]), movie.frame_start + len(orphans)]
        )
        near, _ = nearest(places, start, np.arange(len(orphans)), 1, offset=movie.frames - 1)
        source[orphans] = np.where(near[:, 0] < 0, -1, near[:, 0] - len(orphans))
        return np.where(source[:, None] < 0, 0.0, self.flow[source])


def _turned(row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows in the time-reversed movie."""
    return np.where(row < 0, -1, len(row) - 1 - row)[::-1]
