"""Divisions under pins: sought again where pins change what is known, with all models held."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import FEW
from ..inference.posterior import LinkPosterior
from ..learn.pinned import Solved
from ..learn.region import Region
from . import Lineage
from .candidates import Divisions, candidate_divisions
from .learning import Context, beside, no_link_beside, under
from .lifetimes import Lifetimes, log_factors


def divided_again(
    solved: Solved, lineage: Lineage, links: NDArray[np.int64], workers: int
) -> tuple[LinkPosterior, Divisions, NDArray[np.float64]]:
    """The posterior of links in competition with divisions, the divisions, and their probabilities (P,).

    Links under pins were solved in competition with divisions as they were. The lineage is that without pins;
    its divisions outside of the core stay. From the links (L, 2) without pins the ages of cells are taken.
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
    for _ in range(FEW):
        none = np.where(core, np.stack(no_link_beside(context, fit)), lineage.held.none)
        part = region.updated(part, none, workers)
        posterior = region.pasted(posterior, part)
        context = Context.of(movie, model, posterior).near(near)
        fit = under(context, near, lineage.model, log_factor)
    slots = lineage.divisions.slots
    stay = ~core[slots].all(axis=0) & movie.pins.allows_divisions(slots)
    both, names = (near, lineage.divisions.kept(stay)), [field.name for field in fields(near)]
    divisions = Divisions(*(np.concatenate([getattr(each, name) for each in both]) for name in names))
    probability = np.append(fit.probability, lineage.probability[stay])
    after, (tail, head, *_) = beside(posterior, context, fit), posterior.candidates
    # Beside divisions in the core, and as it was elsewhere.
    inner = dict.fromkeys(("probability", "rivals"), core[tail] & core[head])
    inner |= dict.fromkeys(("clutter", "death", "birth"), core)
    values = {
        name: np.where(of, getattr(after, name), getattr(posterior, name)) for name, of in inner.items()
    }
    return replace(posterior, **values), divisions, probability
