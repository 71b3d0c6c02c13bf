"""What tracks do beside going on: nothing, they divide, or they merge; how links follow, also under pins.

A movie that divides does not merge. Merges are divisions in reversed time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...compute.arrays import placed, to_host
from ...gated.linking import Links
from ...pins.rows import PinnedRows
from ..inference.decide import decide
from ..inference.posterior import LinkPosterior
from ..learn.options import LearnOptions
from ..learn.pinned import pinned
from ..model import Model
from ..model.movie import Movie
from .again import divided_again
from .joint import decide_jointly
from .reverse import in_reverse
from .search import Lineage, divisions_by, find_divisions

_SOLVER = "bid_and_augment"
"""The usual solver."""


@dataclass(frozen=True, eq=False)
class Plain:
    """Tracks neither divide nor merge."""

    movie: Movie
    model: Model
    posterior: LinkPosterior

    def decide(self, solver: str = _SOLVER, *, exact: bool = False) -> Links:
        """The links of maximum expected F1; exact margins or lower bounds of them."""
        return decide(self.posterior.candidates, self.posterior.probability, solver=solver, exact=exact)

    def under(self, pins: PinnedRows, links: Links, options: LearnOptions) -> Plain:
        """The same under pins, from the links without them."""
        del links
        solved = pinned(self.movie, self.model, self.posterior, pins, options)
        return Plain(solved.movie, solved.model, solved.posterior)


@dataclass(frozen=True, eq=False)
class Dividing:
    """Some tracks divide."""

    movie: Movie
    lineage: Lineage

    @property
    def posterior(self) -> LinkPosterior:
        """Of links in competition with divisions."""
        return self.lineage.posterior

    def decide(self, solver: str = _SOLVER, *, exact: bool = False) -> Links:
        """The links of maximum expected F1, including those to both daughters of a mother."""
        candidates, p, of = self.posterior.candidates, self.posterior.probability, self.lineage
        return decide_jointly(candidates, p, of.divisions, of.probability, solver=solver, exact=exact)

    def under(self, pins: PinnedRows, links: Links, options: LearnOptions) -> Dividing:
        """The same under pins, from the links without them, which say how old cells are."""
        of = self.lineage
        solved = pinned(self.movie, of.rates, of.posterior, pins, options, of.unlinked)
        return Dividing(solved.movie, divided_again(solved, of, pins, links.pairs))


@dataclass(frozen=True, eq=False)
class Merging:
    """Some tracks merge: rows of the lineage are those of reversed time, in which row i is row N - 1 - i."""

    plain: Plain
    lineage: Lineage

    @property
    def movie(self) -> Movie:
        """That of the links."""
        return self.plain.movie

    @property
    def posterior(self) -> LinkPosterior:
        """Of links without merges."""
        return self.plain.posterior

    def decide(self, solver: str = _SOLVER, *, exact: bool = False) -> Links:
        """The links of maximum expected F1, including those of both that merge."""
        back = Dividing(self.plain.movie, self.lineage).decide(solver, exact=exact)
        pairs = len(self.plain.movie) - 1 - back.pairs[:, ::-1]
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        return replace(back, pairs=pairs).take("link", order)

    def under(self, pins: PinnedRows, links: Links, options: LearnOptions) -> Merging:
        """The same under pins, from the links without them."""
        plain = self.plain.under(pins, links, options)
        back = in_reverse(plain.movie, plain.model, plain.posterior)
        return Merging(plain, divisions_by(self.lineage.evidence, *back))


Hypothesis = Plain | Dividing | Merging


def hypothesis(
    movie: Movie, model: Model, posterior: LinkPosterior, *, divisions: bool = True, merges: bool = False,
) -> Hypothesis:  # fmt: skip
    """What the tracks of a movie do, by its evidence: divide, else merge, if that is requested.

    Parameters
    ----------
    movie : Movie
    model : Model
    posterior : LinkPosterior
        Posterior of the links alone.
    divisions, merges : bool
        What is asked for.
    """
    plain = Plain(movie, model, posterior)
    if divisions and (lineage := find_divisions(movie, model, posterior)) is not None:
        return Dividing(movie, lineage)
    if merges:  # which the CPU alone looks for
        back = in_reverse(*placed((movie, model, posterior), to_host))
        if (lineage := find_divisions(*back)) is not None:
            return Merging(plain, lineage)
    return plain
