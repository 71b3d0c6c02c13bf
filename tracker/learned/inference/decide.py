"""Decision: from link probabilities to links, by maximum expected F1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...assignment.exact_margins import exact_margins
from ...assignment.gains import best_pairs
from ...compute.arrays import array_module
from ...compute.tolerances import LEAST, ROUNDS, TINY
from ...gated.linking import Links
from .candidates import Candidates


def decide(
    candidates: Candidates, probability: NDArray[np.float64], *, solver: str = "bid_and_augment",
    exact: bool = False,
) -> Links:  # fmt: skip
    r"""The links of maximum expected F1, with at most one successor and one predecessor per detection.

    For a set of links with probabilities p, if T true links are expected, the sum of all, the expected F1 is

    .. math:: F_1 = 2 \sum p / (\mathrm{links} + T)

    It is maximised by the links with :math:`p > F_1 / 2` (Dinkelbach 1967). If such links exclude each other,
    the set with the largest sum of log odds of p, relative to the log odds of this threshold, is chosen: it
    is the most probable set if links are otherwise independent.

    Parameters
    ----------
    candidates : Candidates
    probability : (E,) float64 array
        Of each.
    solver : str
    exact : bool
        Whether margins are exact instead of lower bounds.

    Returns
    -------
    Links
        On the device of the candidates. The cost is minus the log odds of a link, relative to those of
        F1 / 2; cost, margin and gap are in nats.

    Examples
    --------
    >>> from outbid.learned.inference.candidates import candidates_of
    >>> some = candidates_of(np.array([2, 3, 6]), np.array([0, 0, 1, 1]))
    >>> decide(some, np.array([0.8, 0.1, 0.15])).pairs.tolist()
    [[0, 2]]
    """
    threshold = half_f1(probability)
    useful = np.flatnonzero(probability > threshold)
    tail, head = candidates.tail[useful], candidates.head[useful]
    gain = log_odds(probability[useful]) - log_odds(threshold)
    xp, contested = array_module(tail), np.flatnonzero(_contested(tail) | _contested(head))
    margin, kept, gap = gain.copy(), xp.ones(len(useful), np.bool_), 0.0
    if len(contested):  # links without a rival need no solver
        rows, row = xp.unique(tail[contested], return_inverse=True)
        columns, column = xp.unique(head[contested], return_inverse=True)
        start, shape = xp.searchsorted(row, xp.arange(len(rows) + 1)), (len(rows), len(columns))
        answer, unit = best_pairs(start, column.astype(np.int32), gain[contested], shape, solver)
        chosen, least = answer.col_of_row, exact_margins(answer) if exact else answer.margin
        kept[contested] = xp.asarray(chosen)[row] == column
        margin[contested], gap = xp.asarray(least)[row] * unit, float(answer.gap * unit)
    pairs = xp.stack([tail[kept], head[kept]], axis=1).astype(np.int64)
    return Links(pairs, -gain[kept], margin[kept], gap, probability=probability[useful[kept]])


def _contested(end: NDArray[np.int32]) -> NDArray[np.bool_]:
    """(E,) whether another link has the same end."""
    several: NDArray[np.bool_] = array_module(end).bincount(end)[end] > 1 if len(end) else end > 0
    return several


def log_odds(probability: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Log odds of probabilities, in nats; finite for 0 and 1.

    Examples
    --------
    >>> log_odds(np.array([0.0, 0.5, 0.9])).round(2).tolist()
    [-13.82, 0.0, 2.2]
    """
    p = np.clip(probability, LEAST, 1 - LEAST)
    odds: NDArray[np.float64] = np.log(p) - np.log1p(-p)
    return odds


def half_f1(probability: NDArray[np.float64]) -> float:
    """Half of the largest expected F1, if as many links are true as are expected: the threshold for links.

    Two links above a threshold near 1/2 rarely share an end, so exclusion is ignored here.
    """
    threshold, truth = 0.5, float(probability.sum())
    for _ in range(ROUNDS):
        above, last = probability[probability > threshold], threshold
        threshold = float(above.sum()) / max(len(above) + truth, TINY)
        if threshold == last:
            break
    return threshold
