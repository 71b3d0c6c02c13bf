"""Links and divisions in one assignment: each mother has a second row for her second daughter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..assignment.exact_margins import exact_margins
from ..assignment.gains import best_pairs
from ..inference.candidates import Candidates
from ..inference.decide import half_f1, log_odds
from ..linking import Links
from .candidates import Divisions


@dataclass(frozen=True, eq=False)
class _Edges:
    """Pairs that exclude each other in rows and columns, sorted by both; rows from N are the second rows.

    `probability` is the probability of the pair, `division` the part due to divisions.
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    probability: NDArray[np.float64]
    division: NDArray[np.float64]


def decide_jointly(
    candidates: Candidates,
    link_probability: NDArray[np.float64],
    divisions: Divisions,
    probability: NDArray[np.float64],
    *,
    solver: str = "bid_and_augment",
    exact: bool = False,
) -> Links:
    """The links, including those to daughters, of maximum expected F1 for links and for divisions.

    Parameters
    ----------
    candidates : Candidates
    link_probability : (E,) float64 array
        Of each link, in competition with divisions.
    divisions : Divisions
    probability : (P,) float64 array
        Probability of each division.
    solver : str
    exact : bool
        Whether margins are exact instead of lower bounds.

    Returns
    -------
    Links
        Sorted by source, then target; a mother is the source of two. Costs are defined as in `decide`, from
        the link or the division, whichever gives the larger gain.
    """
    count = len(candidates.row_start) - 1
    edges = _edges(candidates, link_probability, divisions, probability)
    of_links, of_divisions = (
        log_odds(each) - log_odds(half_f1(every, float(every.sum())))
        for each, every in ((edges.probability, edges.probability), (edges.division, probability))
    )
    gain = np.maximum(of_links, np.where(edges.division > 0, of_divisions, -np.inf))
    useful = np.flatnonzero(gain > 0)
    row, column = edges.row[useful], edges.column[useful]
    start = np.searchsorted(row, np.arange(2 * count + 1))
    answer, unit = best_pairs(start, column.astype(np.int32), gain[useful], (2 * count, count), solver)
    taken = answer.col_of_row[row] == column
    source, target = row[taken] % count, column[taken]
    order = np.lexsort((target, source))
    each = exact_margins(answer) if exact else answer.margin
    margin, sure = each[row[taken]] * unit, edges.probability[useful][taken]
    return Links(
        np.column_stack([source, target])[order], -gain[useful][taken][order], margin[order],
        float(answer.gap * unit), probability=sure[order],
    )  # fmt: skip


def _edges(
    candidates: Candidates,
    link_probability: NDArray[np.float64],
    divisions: Divisions,
    probability: NDArray[np.float64],
) -> _Edges:
    """Pairs of links, and pairs of a mother and each of her daughters; their probabilities add up."""
    count = np.int64(len(candidates.row_start) - 1)
    key = np.concatenate([
        candidates.key(), divisions.mother * count + divisions.first,
        (divisions.mother + count) * count + divisions.second,
    ])  # fmt: skip
    every, place = np.unique(key, return_inverse=True)
    total = np.bincount(place, np.concatenate([link_probability, probability, probability]), len(every))
    row, column = np.divmod(every, count)
    divided = place[candidates.size :]
    division = np.bincount(divided, np.concatenate([probability, probability]), len(every))
    return _Edges(row, column, np.minimum(total, 1.0), division.astype(np.float64))
