"""The part of a movie that pins change: sweeps over it alone, with the messages of the rest as they were."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import OPEN
from ..inference.candidates import candidates_of
from ..inference.jpda import displacements, no_link, updated
from ..inference.posterior import Displacements, LinkPosterior
from ..model import Model
from ..model.movie import Movie, summed

_MARGIN = 2
"""Guard: links beside the core that are swept with it, because links that lead out do not carry motion."""

_OF_LINKS = ("probability", "ratio", "rivals")
_OF_ROWS = ("clutter", "death", "birth", "fresh", "clutter_weight")


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
        cls, movie: Movie, model: Model, posterior: LinkPosterior, core: NDArray[np.bool_], workers: int
    ) -> tuple[Region, LinkPosterior]:
        """The region with this core, and its posterior before the next sweep."""
        whole = reached(posterior, core, _MARGIN)
        rows, count = np.flatnonzero(whole), len(movie)
        tail, head, *_ = posterior.candidates
        inner, place = whole[tail] & whole[head], np.cumsum(whole) - 1
        links = np.flatnonzero(inner)
        part, around = movie.at(rows), model.surroundings.at(rows)
        keys = place[tail[links]] * np.int64(len(rows)) + place[head[links]]
        # Over missed frames the flow is that of the nearest detection of the whole movie.
        away = displacements(movie, model.surroundings.flow, posterior.candidates.kept(inner), workers)
        begun = LinkPosterior(
            candidates_of(keys, part.frame), posterior.probability[links], posterior.rivals[:, links],
            clutter_weight=np.broadcast_to(posterior.clutter_weight, (2, count))[:, rows],
            sweeps=posterior.sweeps, omega=posterior.omega, displaced=Displacements(around.flow, away),
            pull=None if posterior.pull is None else posterior.pull[:, links],
        )  # fmt: skip
        odds = posterior.ratio * (posterior.rivals[0] * posterior.rivals[1]) ** -posterior.omega
        pull = posterior.rivals * odds * (whole[tail] != whole[head])
        others = np.stack([summed(end, each, count) for end, each in zip((tail, head), pull, strict=True)])
        return cls(part, replace(model, surroundings=around), rows, core, links, others[:, rows]), begun

    def updated(
        self, posterior: LinkPosterior, none: NDArray[np.float64] | None, workers: int
    ) -> LinkPosterior:
        """One more sweep over the region; none (2, N) are weights of no link, as far as not the model's.

        Where links lead out of the region they compete as they did: as if there were none of them.
        """
        of = np.stack(no_link(self.movie, self.model)) if none is None else none[:, self.rows]
        omega = posterior.omega
        death, birth = (of ** (1 / omega) + self.others) ** omega
        return updated(
            self.movie, self.model, posterior, omega=omega, none=(death, birth), with_moments=False,
            workers=workers,
        )  # fmt: skip

    def pasted(self, whole: LinkPosterior, part: LinkPosterior) -> LinkPosterior:
        """The posterior of the whole movie with what was computed in the core."""
        tail, head, *_ = whole.candidates
        links = self.links, self.core[tail[self.links]] & self.core[head[self.links]]
        rows = self.rows, self.core[self.rows]
        changed = {}
        for (there, here), names in ((links, _OF_LINKS), (rows, _OF_ROWS)):
            for name in names:
                changed[name] = getattr(whole, name).copy()
                changed[name][..., there[here]] = getattr(part, name)[..., here]
        return replace(whole, **changed)


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
