"""The part of a movie that pins change: sweeps over it alone, with the messages of the rest as they were."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..inference.candidates import Candidates, candidates_of
from ..inference.jpda import NO_PULL, displacements
from ..inference.posterior import Displacements, LinkPosterior, swept
from ..model import Model, Surroundings
from ..model.movie import Movie

_HOPS = 12
"""Error level: links from a pin up to which probabilities are computed again."""
_MARGIN = 6
"""Guard: further links that are swept beside them; what they receive from farther on is cut off."""
_LIKELY = 0.01
"""Error level: probability of a link below which messages do not pass it on."""


@dataclass(frozen=True, eq=False)
class Region:
    """Detections near pins, as a movie of their own.

    Parameters
    ----------
    movie, model
        Of M detections.
    rows : (M,) int64 array
        Their rows in the whole movie.
    core : (N,) bool array
        Detections of the whole movie whose values are computed here.
    links : (K,) int64 array
        Places of their links among the candidates of the whole movie.
    """

    movie: Movie
    model: Model
    rows: NDArray[np.int64]
    core: NDArray[np.bool_]
    links: NDArray[np.int64]

    @classmethod
    def of(
        cls, movie: Movie, model: Model, posterior: LinkPosterior, core: NDArray[np.bool_], workers: int
    ) -> tuple[Region, LinkPosterior]:
        """The region with this core, and its posterior before the next sweep."""
        whole = reached(posterior.candidates, posterior.probability, core, _MARGIN)
        rows = np.flatnonzero(whole)
        tail, head, *_ = posterior.candidates
        links = np.flatnonzero(whole[tail] & whole[head])
        place = np.cumsum(whole) - 1
        around = model.surroundings
        small = replace(
            model,
            surroundings=Surroundings(around.flow[rows], around.survival[rows], around.survival_back[rows]),
        )
        part = replace(
            movie, position=movie.position[rows], frame=movie.frame[rows],
            frame_start=np.searchsorted(rows, movie.frame_start), density=movie.density[rows], near=None,
            marks=None if movie.marks is None else movie.marks.at(rows),
            pins=None if movie.pins is None else movie.pins.at(rows),
        )  # fmt: skip
        keys = place[tail[links]] * np.int64(len(rows)) + place[head[links]]
        some = np.zeros(len(tail), np.bool_)
        some[links] = True
        # Over missed frames the flow is that of the nearest detection of the whole movie.
        away = displacements(movie, around.flow, posterior.candidates.kept(some), workers)
        begun = LinkPosterior(
            candidates_of(keys, part.frame), posterior.probability[links], posterior.rivals[:, links],
            clutter_weight=np.broadcast_to(posterior.clutter_weight, (2, len(movie)))[:, rows],
            sweeps=posterior.sweeps, omega=posterior.omega,
            displaced=Displacements(small.surroundings.flow, away),
            pull=posterior.pull[:, links] if posterior.pull.size else NO_PULL,
        )  # fmt: skip
        return cls(part, small, rows, core, links), begun

    def swept(
        self, posterior: LinkPosterior, none: NDArray[np.float64] | None, workers: int
    ) -> LinkPosterior:
        """One more sweep over the region; none (2, N) are weights of no link in the whole movie."""
        death_and_birth = None if none is None else (none[0, self.rows], none[1, self.rows])
        return swept(
            self.movie, self.model, posterior, omega=posterior.omega, none=death_and_birth,
            with_moments=False, workers=workers,
        )  # fmt: skip

    def pasted(self, whole: LinkPosterior, part: LinkPosterior) -> LinkPosterior:
        """The posterior of the whole movie with what was computed in the core."""
        tail, head, *_ = whole.candidates
        inner = self.core[tail[self.links]] & self.core[head[self.links]]
        links, rows = self.links[inner], self.core[self.rows]
        changed = {name: getattr(whole, name).copy() for name in ("probability", "ratio", "rivals")}
        for name, values in changed.items():
            values[..., links] = getattr(part, name)[..., inner]
        for name in ("clutter", "death", "birth", "fresh", "clutter_weight"):
            changed[name] = getattr(whole, name).copy()
            changed[name][..., self.rows[rows]] = getattr(part, name)[..., rows]
        return replace(whole, **changed)


def reached(
    candidates: Candidates, probability: NDArray[np.float64], seeds: NDArray[np.bool_], hops: int = _HOPS
) -> NDArray[np.bool_]:
    """(N,) the detections to which some lead within so many likely links."""
    likely = probability > _LIKELY
    tail, head = candidates.tail[likely], candidates.head[likely]
    here = seeds.copy()
    for _ in range(hops):
        either = here[tail] | here[head]
        if either.all():
            break
        here[tail[either]] = here[head[either]] = True
    return here
