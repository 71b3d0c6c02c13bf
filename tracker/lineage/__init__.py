"""Lineage: divisions as a further kind of edge, in addition to the links of a posterior.

`evidence`     probabilities of each detection from links alone, forward and backward in time
`candidates`   mothers and pairs of daughters
`daughters`    model of the separation of daughters, learned by EM
`lifetimes`    ages at which cells divide
`joint`        links and divisions in one assignment

The entry point is `with_divisions`. Two spots that appear as one for a while look like daughters when
they separate. Such spots also fuse, so a time-reversed movie shows equally many apparent divisions. The
number of divisions found in the time-reversed movie is therefore the expected number of false divisions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..inference.decide import decide
from ..inference.posterior import LinkPosterior
from ..linking import Links
from ..model import Model
from ..model.movie import Movie
from .candidates import Divisions, candidate_divisions
from .daughters import DaughterModel, Rates, learned_daughters, log_odds, marginals
from .evidence import Evidence
from .joint import decide_jointly
from .lifetimes import Lives, log_factors

_STRONG = 3.0
"""Error level: evidence in nats beyond the penalty for parameters, odds of 20 to 1 (Kass & Raftery 1995)."""
_PARAMETERS = 5
"""Number of parameters of the daughter model."""
_CLEAR = 2.0
"""Error level: standard deviations by which divisions found forward must exceed those found backward."""
_MORE = 0.05
"""Error level: the same as a share of the starts, because meetings may begin and end at different rates."""
_UNSEEN = 0.25
"""Prior: false divisions in addition to the number found backward."""
_LIKELY = 0.5
"""Error level: least probability of a division that is counted."""
_ROUNDS = 2
"""Guard: rounds in which ages and divisions are estimated alternately."""


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
        The separation of daughters; None if there is no evidence of divisions, and all probabilities are 0.
    """

    divisions: Divisions
    probability: NDArray[np.float64]
    model: DaughterModel | None


def with_divisions(
    movie: Movie,
    model: Model,
    posterior: LinkPosterior,
    *,
    solver: str = "bid_and_augment",
    exact: bool = False,
) -> tuple[Links, Lineage]:
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

    Returns
    -------
    links : Links
        Including those to both daughters of a mother.
    lineage : Lineage
    """
    candidates, p = posterior.candidates, posterior.probability
    lineage = find_divisions(movie, model, posterior)
    if lineage.model is None:
        return decide(candidates, p, solver=solver, exact=exact), lineage
    found = lineage.divisions, lineage.probability
    return decide_jointly(candidates, p, *found, solver=solver, exact=exact), lineage


def find_divisions(movie: Movie, model: Model, posterior: LinkPosterior) -> Lineage:
    """Probability of each candidate division.

    Parameters
    ----------
    movie, model, posterior
        As in `with_divisions`.
    """
    evidence = Evidence.of(movie, model, posterior)
    divisions = candidate_divisions(evidence)
    factor = np.zeros(len(divisions))
    rates = _rates(movie, model, evidence)
    daughters, gain = learned_daughters(divisions, rates, movie.axes, factor)
    needed = _STRONG + 0.5 * _PARAMETERS * np.log1p(rates.starts)
    real = _share_real(evidence, divisions, daughters, rates.starts)
    if gain < needed or real <= _LIKELY:
        return Lineage(divisions, factor, None)
    probability = marginals(divisions, log_odds(divisions, daughters, movie.axes) + np.log(real))[0]
    for _ in range(_ROUNDS):
        links = decide_jointly(posterior.candidates, posterior.probability, divisions, probability)
        factor = log_factors(Lives.of(movie.frame, links.pairs), divisions)
        daughters, _ = learned_daughters(divisions, rates, movie.axes, factor)
        odds = log_odds(divisions, daughters, movie.axes) + factor + np.log(real)
        probability = marginals(divisions, odds)[0]
    return Lineage(divisions, probability, daughters)


def _rates(movie: Movie, model: Model, evidence: Evidence) -> Rates:
    """Rates of deaths and births without divisions, excluding the first and last frame."""
    around = model.surroundings
    inner = (movie.frame > 0) & (movie.left > 0)
    if not inner.any():  # two frames have no other
        inner[:] = True
    death = model.association.death(movie.left, around.survival)[inner].mean()
    birth = model.association.birth(movie.frame, around.survival_back)[inner].mean()
    starts = float(evidence.no_predecessor[movie.frame > 0].sum())
    return Rates(float(len(movie)), starts, float(death * birth**2))


def _share_real(evidence: Evidence, divisions: Divisions, daughters: DaughterModel, starts: float) -> float:
    """Share of the divisions found that exceeds those in reversed time; 0 if it is not significant."""
    axes = evidence.movie.axes
    reverse = candidate_divisions(evidence.backward())
    forward, backward = (
        float((marginals(some, log_odds(some, daughters, axes))[0] > _LIKELY).sum())
        for some in (divisions, reverse)
    )
    excess = forward - backward - _UNSEEN
    if excess < max(_CLEAR * np.sqrt(backward + _UNSEEN), _MORE * starts):
        return 0.0
    return excess / forward
