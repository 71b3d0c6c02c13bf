"""Links and divisions in one assignment: each mother has a second row for her second daughter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...assignment.exact_margins import exact_margins
from ...assignment.gains import best_pairs
from ...compute.arrays import array_module
from ...gated.linking import Links
from ..inference.candidates import Candidates
from ..inference.decide import half_f1, log_odds
from ..model.movie import summed
from .candidates import Divisions


def decide_jointly(
    candidates: Candidates, link_probability: NDArray[np.float64], divisions: Divisions,
    probability: NDArray[np.float64], *, solver: str = "bid_and_augment", exact: bool = False,
) -> Links:  # fmt: skip
    """The links, including those to daughters, of maximum expected F1 for links and for divisions.

    Probabilities are of links (E,) in competition with divisions, and of divisions (P,). The links are sorted
    by source, then target; a mother is the source of two. Costs are defined as in `decide`, from the link or
    the division, the one with the larger benefit.
    """
    count, xp = len(candidates.row_start) - 1, array_module(link_probability)
    key = np.concatenate([
        candidates.key(), divisions.mother * count + divisions.first,
        (divisions.mother + count) * count + divisions.second,
    ])  # fmt: skip
    every, place = xp.unique(key, return_inverse=True)
    both = np.tile(probability, 2)
    of_pair = np.minimum(summed(place, np.concatenate([link_probability, both]), len(every)), 1.0)
    of_division = summed(place[candidates.size :], both, len(every))
    as_link, as_division = (
        log_odds(each) - log_odds(half_f1(every_one))
        for each, every_one in ((of_pair, of_pair), (of_division, probability))
    )
    benefit = np.maximum(as_link, np.where(of_division > 0, as_division, -np.inf))
    useful = np.flatnonzero(benefit > 0)
    row, column = np.divmod(every[useful], count)
    start = xp.searchsorted(row, xp.arange(2 * count + 1))
    answer, unit = best_pairs(start, column.astype(np.int32), benefit[useful], (2 * count, count), solver)
    taken = xp.asarray(answer.col_of_row)[row] == column
    source, target = row[taken] % count, column[taken]
    order = np.argsort(source * count + target)
    margin = xp.asarray(exact_margins(answer) if exact else answer.margin)[row[taken]] * unit
    return Links(
        np.stack([source, target], axis=1)[order], -benefit[useful][taken][order], margin[order],
        float(answer.gap * unit), probability=of_pair[useful][taken][order],
    )  # fmt: skip
