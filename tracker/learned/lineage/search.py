"""Divisions of a movie: first the evidence of some, then these with links, flow, rates and ages in turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import FEW
from ..inference.jpda import exponent, updated
from ..inference.posterior import LinkPosterior
from ..learn.field import Fields
from ..learn.m_steps import adapt
from ..model import Model
from ..model.movie import Movie
from .candidates import Divisions
from .control import DivisionEvidence, division_evidence, likely_divisions, rounds_over
from .daughters import DaughterModel
from .joint import decide_jointly
from .learning import Context, DivisionFit, beside, fitted, no_link_beside
from .lifetimes import Lifetimes, log_factors


@dataclass(frozen=True, eq=False)
class Lineage:
    """Divisions of a movie that gives evidence of some.

    Parameters
    ----------
    divisions : Divisions
        Candidates.
    probability : (P,) float64 array
        Of each.
    model : DaughterModel
        The separation of daughters.
    posterior : LinkPosterior
        Of links in competition with divisions.
    evidence : DivisionEvidence
    rates : Model
        The model of links beside divisions.
    unlinked : (2, N) float64 array
        Weights of no successor and of no predecessor beside divisions.
    """

    divisions: Divisions
    probability: NDArray[np.float64]
    model: DaughterModel
    posterior: LinkPosterior
    evidence: DivisionEvidence
    rates: Model
    unlinked: NDArray[np.float64]


def find_divisions(movie: Movie, model: Model, posterior: LinkPosterior) -> Lineage | None:
    """Divisions, where the movie is; None without evidence of any.

    Parameters
    ----------
    movie : Movie
    model : Model
    posterior : LinkPosterior
        Posterior of the links, without divisions.
    """
    evidence = division_evidence(movie, model, posterior)
    return None if evidence is None else divisions_by(evidence, movie, model, posterior)


def divisions_by(evidence: DivisionEvidence, movie: Movie, model: Model, posterior: LinkPosterior) -> Lineage:
    """Divisions by evidence that is known. Other parameters are those of `find_divisions`."""
    divisions, fit, context = likely_divisions(movie, model, posterior, evidence.model)
    fields = Fields.of(movie)
    posterior, unlinked = beside(posterior, context, fit), no_link_beside(context, fit)
    for turn in range(FEW):  # links, divisions, flow, rates and ages in turn
        log_factor = np.log(evidence.real) + _ages(movie, posterior, fit, divisions)
        omega = exponent(posterior.probability)
        posterior = updated(movie, model, posterior, omega=omega, unlinked=unlinked, with_moments=False)
        context = Context.of(movie, model, posterior).near(divisions)
        divisions = Divisions.measured(movie, model.local.flow, posterior, divisions.slots)
        fit = fitted(context, divisions, fit.next_model, log_factor, rounds_over(movie))
        posterior, unlinked = beside(posterior, context, fit), no_link_beside(context, fit)
        if turn < FEW - 1:
            model = adapt(movie, model, posterior, fields)
    return Lineage(
        divisions=divisions, probability=fit.probability, model=fit.model, posterior=posterior,
        evidence=evidence, rates=model, unlinked=unlinked,
    )  # fmt: skip


def _ages(
    movie: Movie, posterior: LinkPosterior, fit: DivisionFit, divisions: Divisions
) -> NDArray[np.float64]:
    """(P,) contribution of ages to log weights, from the links and divisions that would be chosen now."""
    links = decide_jointly(posterior.candidates, posterior.probability, fit.divisions, fit.probability)
    return log_factors(Lifetimes.of(movie.frame, links.pairs), divisions)
