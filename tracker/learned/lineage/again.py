"""Divisions under pins: sought again where pins change what is known, with all models held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import FEW
from ...pins.rows import PinnedRows
from ..learn.pinned import Solved
from ..learn.region import Region
from .candidates import candidate_divisions
from .learning import Context, beside, no_link_beside, under
from .lifetimes import Lifetimes, log_factors
from .search import Lineage


def divided_again(solved: Solved, lineage: Lineage, pins: PinnedRows, links: NDArray[np.int64]) -> Lineage:
    """The divisions, and the posterior of links in competition with them.

    Links under pins were solved in competition with divisions as they were. The lineage is that without pins;
    its divisions outside of the core stay. From the links (L, 2) without pins the ages of cells are taken.
    """
    movie, model, posterior, core = solved
    near = candidate_divisions(movie, model.local.flow, posterior, core)
    near = near.take("division", core[near.mother])
    log_factor = np.log(lineage.evidence.real) + log_factors(Lifetimes.of(movie.frame, links), near)
    context = Context.of(movie, model, posterior).near(near)
    fit = under(context, near, lineage.model, log_factor)
    region, part = Region.of(movie, model, posterior, core)
    for _ in range(FEW):
        unlinked = np.where(core, no_link_beside(context, fit), lineage.unlinked)
        part = region.updated(part, unlinked)
        posterior = region.pasted(posterior, part)
        context = Context.of(movie, model, posterior).near(near)
        fit = under(context, near, lineage.model, log_factor)
    slots = lineage.divisions.slots
    stay = ~core[slots].all(axis=0) & pins.allows_divisions(slots)
    divisions = near.join(lineage.divisions.take("division", stay), "division")
    probability = np.append(fit.probability, lineage.probability[stay])
    after, (tail, head, *_) = beside(posterior, context, fit), posterior.candidates
    # Beside divisions in the core, and as it was elsewhere.
    inner = core[tail] & core[head]
    posterior = posterior.paste(after, "link", inner, inner).paste(after, "row", core, core)
    return replace(lineage, divisions=divisions, probability=probability, posterior=posterior)
