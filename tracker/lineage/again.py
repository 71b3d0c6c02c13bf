"""Divisions under pins: sought again where pins change what is known, with all models held."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from ..inference.posterior import LinkPosterior
from ..learn.pinned import Solved
from ..learn.region import Region
from . import Lineage
from .candidates import Divisions, candidate_divisions
from .learning import Context, Fit, beside, no_link_beside, under
from .lifetimes import Lifetimes, log_factors

_TURNS = 2
"""Guard: sweeps in which links and divisions compete in turn."""


def divided_again(
    solved: Solved, lineage: Lineage, links: NDArray[np.int64], workers: int
) -> tuple[LinkPosterior, Divisions, NDArray[np.float64]]:
    """The posterior of links in competition with divisions, the divisions, and their probabilities (P,).

    Parameters
    ----------
    solved : Solved
        Links under pins, in competition with divisions as they were.
    lineage : Lineage
        Without pins. Divisions outside of the core stay.
    links : (L, 2) int64 array
        The links without pins, from which the ages of cells are taken.
    workers : int
        Threads; they do not change the result.
    """
    movie, model, posterior, core = solved
    assert lineage.held is not None
    assert lineage.model is not None
    assert movie.pins is not None
    near = candidate_divisions(movie, model.surroundings.flow, posterior, core)
    near = near.kept(core[near.mother])
    log_factor = np.log(lineage.held.admission.real) + log_factors(Lifetimes.of(movie.frame, links), near)
    context = Context.of(movie, model, posterior).near(near)
    fit = under(context, near, lineage.model, log_factor)
    region, part = Region.of(movie, model, posterior, core, workers)
    for _ in range(_TURNS):
        none = np.where(core, np.stack(no_link_beside(context, fit)), lineage.held.none)
        part = region.updated(part, none, workers)
        posterior = region.pasted(posterior, part)
        context = Context.of(movie, model, posterior).near(near)
        fit = under(context, near, lineage.model, log_factor)
    slots = lineage.divisions.slots
    stay = ~core[slots].all(axis=0) & movie.pins.allows_divisions(slots)
    probability = np.append(fit.probability, lineage.probability[stay])
    return _in_core(posterior, context, fit, core), _together(near, lineage.divisions.kept(stay)), probability


def _in_core(posterior: LinkPosterior, context: Context, fit: Fit, core: NDArray[np.bool_]) -> LinkPosterior:
    """The posterior beside divisions in the core, and as it was elsewhere."""
    after, (tail, head, *_) = beside(posterior, context, fit), posterior.candidates
    values = {
        name: np.where(inner, getattr(after, name), getattr(posterior, name))
        for names, inner in (
            (("probability", "rivals"), core[tail] & core[head]), (("clutter", "death", "birth"), core)
        )
        for name in names
    }  # fmt: skip
    return replace(posterior, **values)


def _together(one: Divisions, other: Divisions) -> Divisions:
    """The divisions of both."""
    return Divisions(
        *(np.concatenate([getattr(one, field.name), getattr(other, field.name)]) for field in fields(one))
    )
