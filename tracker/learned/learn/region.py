"""The part of a movie that pins change: sweeps over it alone, with the messages of the rest as they were."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import OPEN
from ..inference.jpda import displacements, no_link, updated
from ..inference.posterior import Displacements, LinkPosterior
from ..model import Model
from ..model.movie import Movie, summed

_MARGIN = 2
"""Guard: links beside the core that are swept with it, because links that lead out do not carry motion."""


@dataclass(frozen=True, eq=False)
class Region:
    """M detections near pins, as a movie of their own, among N of the whole movie."""

    movie: Movie
    model: Model
    rows: NDArray[np.int64]  # (M,) in the whole movie
    core: NDArray[np.bool_]  # (N,) whose values are computed here
    links: NDArray[np.int64]  # (K,) places of their links among the candidates of the whole movie
    others: NDArray[np.float64]  # (2, M) weights of links to other detections, to the power 1 / omega

    @classmethod
    def of(
        cls, movie: Movie, model: Model, posterior: LinkPosterior, core: NDArray[np.bool_]
    ) -> tuple[Region, LinkPosterior]:
        """The region with this core, and its posterior before the next sweep."""
        whole = reached(posterior, core, _MARGIN)
        rows, flow = np.flatnonzero(whole), model.local.flow
        part, near = movie.at(rows), model.take("row", rows)
        begun, links = posterior.at(rows, part.frame)
        # Over missed frames the flow is that of the nearest detection of the whole movie.
        tail, head, *_ = posterior.candidates
        inner = posterior.candidates.kept(whole[tail] & whole[head])
        away = Displacements(near.local.flow, displacements(movie, flow, inner))
        leave, ratio, competing = whole[tail] != whole[head], posterior.ratio, posterior.competing
        others = left_out((tail, head), leave, (ratio, competing, posterior.omega), len(movie))
        region = cls(movie=part, model=near, rows=rows, core=core, links=links, others=others[:, rows])
        return region, replace(begun, displaced=away)

    def updated(self, posterior: LinkPosterior, unlinked: NDArray[np.float64] | None) -> LinkPosterior:
        """One more sweep over the region; unlinked (2, N) are weights of no link, if not the model's.

        Where links lead out of the region they compete as they did: as if there were none of them.
        """
        of = np.stack(no_link(self.movie, self.model)) if unlinked is None else unlinked[:, self.rows]
        omega = posterior.omega
        death, birth = (of ** (1 / omega) + self.others) ** omega
        return updated(
            self.movie, self.model, posterior, omega=omega, unlinked=(death, birth), with_moments=False,
        )  # fmt: skip

    def pasted(self, whole: LinkPosterior, part: LinkPosterior) -> LinkPosterior:
        """The posterior of the whole movie with what was computed in the core."""
        tail, head, *_ = whole.candidates
        links = self.core[tail[self.links]] & self.core[head[self.links]]
        rows = self.core[self.rows]
        return whole.paste(part, "link", self.links[links], links).paste(part, "row", self.rows[rows], rows)


def left_out(
    ends: tuple[NDArray[np.integer], NDArray[np.integer]], out: NDArray[np.bool_],
    weights: tuple[NDArray[np.float64], NDArray[np.float64], float], count: int,
) -> NDArray[np.float64]:  # fmt: skip
    """(2, N) weights, to the power 1 / omega, of the links (E,) that are left out, in their rows and columns.

    weights are ratio (E,), competing (2, E) and omega.
    """
    ratio, competing, omega = weights
    incoming = ratio * (competing[0] * competing[1]) ** -omega * competing * out
    return np.stack([summed(end, each, count) for end, each in zip(ends, incoming, strict=True)])


def ends_of(posterior: LinkPosterior, links: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """(N,) the detections that some candidates (E,) link."""
    ends = np.zeros(count, np.bool_)
    tail, head, *_ = posterior.candidates
    ends[tail[links]] = ends[head[links]] = True
    return ends


def reached(posterior: LinkPosterior, seeds: NDArray[np.bool_], hops: int = 1) -> NDArray[np.bool_]:
    """(N,) the detections to which some lead within so many likely links."""
    here, likely = seeds.copy(), posterior.probability > OPEN
    tail, head = posterior.candidates.tail[likely], posterior.candidates.head[likely]
    for _ in range(hops):
        either = here[tail] | here[head]
        here[tail[either]] = here[head[either]] = True
    return here
