"""Lineage: divisions as edges of three slots, in the same belief propagation as the links of a posterior.

`candidates`   mothers and pairs of daughters
`daughters`    model of divisions: rate, separation and direction of daughters
`packing`      belief propagation for edges of two and three slots
`learning`     EM of this model, in competition with links
`control`      false divisions: reversed time and evidence
`reverse`      a movie, its model and its posterior in reversed time
`lifetimes`    ages at which cells divide
`joint`        links and divisions in one assignment
`again`        divisions under pins, with all models held

The entry points are `with_divisions` and `with_merges`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.arrays import on_device, placed, to_host
from ...compute.tolerances import FEW
from ...gated.linking import Links
from ..inference.decide import decide
from ..inference.jpda import exponent, updated
from ..inference.posterior import LinkPosterior
from ..learn.field import Fields
from ..learn.m_steps import adapted
from ..model import Model
from ..model.movie import Movie
from .candidates import Divisions
from .control import Admission as Admission
from .control import admission, admitted, rounds_over
from .daughters import DaughterModel
from .joint import decide_jointly
from .learning import Context, Fit, beside, fitted, no_link_beside
from .lifetimes import Lifetimes, log_factors
from .reverse import in_reverse


@dataclass(frozen=True, eq=False)
class Lineage:
    """Divisions of a movie.

    Parameters
    ----------
    divisions : Divisions
        Candidates.
    probability : (P,) float64 array
        Of each.
    model : DaughterModel or None
        The separation of daughters; None if there is no evidence of divisions, and there are no candidates.
    posterior : LinkPosterior
        Of links in competition with divisions.
    held : Held or None
        What else stays when divisions are sought again under pins.
    """

    divisions: Divisions
    probability: NDArray[np.float64]
    model: DaughterModel | None
    posterior: LinkPosterior
    held: Held | None = None


class Held(NamedTuple):
    """What is known of divisions: the evidence, the model of links beside them, weights of no link (2, N)."""

    admission: Admission
    rates: Model
    none: NDArray[np.float64]


def with_divisions(
    movie: Movie, model: Model, posterior: LinkPosterior, *, solver: str = "bid_and_augment",
    exact: bool = False, workers: int = 1, known: Admission | None = None,
) -> tuple[Links, Lineage]:  # fmt: skip
    """Links and divisions of maximum expected F1.

    Parameters
    ----------
    movie : Movie
    model : Model
    posterior : LinkPosterior
        Posterior of the links, without divisions.
    solver : str
    exact : bool
        Whether margins are exact instead of lower bounds.
    workers : int
        Threads; they do not change the result.
    known : Admission, optional
        Evidence of divisions. Default: the movie is asked for it.

    Returns
    -------
    links : Links
        Including those to both daughters of a mother.
    lineage : Lineage
    """
    posterior, lineage = find_divisions(movie, model, posterior, workers=workers, known=known)
    candidates, p = posterior.candidates, posterior.probability
    if lineage.model is None:
        return decide(candidates, p, solver=solver, exact=exact), lineage
    pairs = lineage.divisions, lineage.probability
    return decide_jointly(candidates, p, *pairs, solver=solver, exact=exact), lineage


def with_merges(
    movie: Movie, model: Model, posterior: LinkPosterior, *, solver: str = "bid_and_augment",
    exact: bool = False, workers: int = 1, known: Admission | None = None,
) -> tuple[Links, Lineage]:  # fmt: skip
    """Links and merges of maximum expected F1: merges are divisions in reversed time.

    Parameters and results are those of `with_divisions`; rows of the lineage are those of the reversed movie,
    in which row i is row N - 1 - i of `movie`.
    """
    links, lineage = with_divisions(
        *in_reverse(movie, model, posterior), solver=solver, exact=exact, workers=workers, known=known
    )
    pairs = len(movie) - 1 - links.pairs[:, ::-1]
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    assert links.probability is not None
    return replace(
        links, pairs=pairs[order], cost=links.cost[order], margin=links.margin[order],
        probability=links.probability[order],
    ), lineage  # fmt: skip


def find_divisions(
    movie: Movie, model: Model, posterior: LinkPosterior, *, workers: int = 1, known: Admission | None = None
) -> tuple[LinkPosterior, Lineage]:
    """The posterior of links in competition with divisions, and the candidates with their probabilities.

    These are on the host. Without evidence of divisions the posterior is the given one, where it is.
    """
    known = known or admission(movie, model, posterior)
    if known is None:
        return posterior, Lineage(Divisions.none(movie.axes), np.empty(0), None, posterior)
    if on_device(posterior.probability):
        given = movie, model, replace(posterior, displaced=None)  # which is sooner computed again than copied
        movie, model, posterior = placed(given, to_host)
    divisions, fit = admitted(movie, model, posterior, known.model)
    fields = Fields.of(movie, workers=workers)
    context = Context.of(movie, model, posterior).near(fit.divisions)
    posterior, none = beside(posterior, context, fit), no_link_beside(context, fit)
    for turn in range(FEW):  # links, divisions, flow, rates and ages in turn
        log_factor = np.log(known.real) + _ages(movie, posterior, fit, divisions)
        omega = exponent(posterior.probability)
        posterior = updated(
            movie, model, posterior, omega=omega, none=none, with_moments=False, workers=workers
        )
        context = Context.of(movie, model, posterior).near(divisions)
        divisions = Divisions.measured(movie, model.surroundings.flow, posterior, divisions.slots)
        fit = fitted(context, divisions, fit.next_model, log_factor, rounds_over(movie))
        posterior, none = beside(posterior, context, fit), no_link_beside(context, fit)
        if turn < FEW - 1:
            model = adapted(movie, model, posterior, fields)
    held = Held(known, model, np.stack(none))
    return posterior, Lineage(divisions, fit.probability, fit.model, posterior, held)


def _ages(movie: Movie, posterior: LinkPosterior, fit: Fit, divisions: Divisions) -> NDArray[np.float64]:
    """(P,) contribution of ages to log weights, from the links and divisions that would be chosen now."""
    links = decide_jointly(posterior.candidates, posterior.probability, fit.divisions, fit.probability)
    return log_factors(Lifetimes.of(movie.frame, links.pairs), divisions)
