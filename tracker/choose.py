"""The final choice: of all probable links those that are expected to agree best with the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .assign.gains import best_pairs
from .candidates import kept_above, places_of
from .linking import Linking

_SOBER = 0.75
"""Power of the odds of a link that comes nearest to the truth: 1/2 if two links could swap, 1 among many."""
_WORTH = 0.4
"""Share of the F1 from which on a link is chosen: 1/2 gives the best F1, somewhat less longer tracks."""
_SAME = 0.01
"""Change of the F1 that is none, and how often it is measured at most."""
_ROUNDS = 5


def sobered(soft: Linking, settled: Linking) -> Linking:
    """The links with probabilities that are neither too sure nor too humble.

    Links that were chosen make themselves more probable, and what all links tell does not know which were
    chosen: the mean of both probabilities is nearest to the truth.

    Parameters
    ----------
    soft : Linking
        Before any links were chosen (`soft_pass`).
    settled : Linking
        By the past and the future of links (`link_pass`); or the same.
    """
    probability = _sober(settled.probability)
    if soft is not settled:
        probability = (probability + _sober(_looked_up(soft, settled))) / 2
    trust, linked = np.zeros(len(settled.follower)), settled.follower[settled.row] == settled.col
    trust[settled.row[linked]] = probability[linked]
    return replace(settled, probability=probability, trust=trust)


def chosen(linking: Linking, solver: str) -> Linking:
    r"""Other links of the same pairs, whose F1 is expected to be best.

    The most likely links together are not those that agree best with the truth. If p are probabilities and
    T true links are expected, as many as are most likely, those of the greatest

    .. math:: F_1 = 2 \sum p / (\mathrm{links} + T)

    are worth while where :math:`p > F_1 / 2` (Dinkelbach 1967). So where little can be followed, links are
    chosen of which most are wrong. Gains are the log odds of p less those of the threshold.

    Parameters
    ----------
    linking : Linking
        The most likely links.
    solver : str
    """
    expected, best = float((linking.follower >= 0).sum()), linking
    odds = np.log(linking.probability) - np.log1p(-linking.probability)
    for _ in range(_ROUNDS):
        known = _f1(best, expected)
        worth = np.clip(_WORTH * known, 1e-6, 0.5)
        best = _best(linking, odds - np.log(worth / (1 - worth)), solver)
        if abs(_f1(best, expected) - known) < _SAME:
            break
    return best


def _sober(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities with less extreme odds: belief propagation hears of itself wherever links could swap."""
    chance = np.clip(chance, 1e-12, 1 - 1e-12)
    yes, no = chance**_SOBER, (1 - chance) ** _SOBER
    return np.asarray(yes / (yes + no))


def _looked_up(soft: Linking, settled: Linking) -> NDArray[np.float64]:
    """(Q,) what the one says of the pairs of the other."""
    from .candidates_cpu import looked_up

    found = np.empty(len(settled.row))
    looked_up(settled.row, settled.col, soft.row, soft.col, soft.probability, found)
    return found


def _f1(linking: Linking, expected: float) -> float:
    """F1 that the links are expected to have."""
    return float(2 * linking.trust.sum() / max((linking.follower >= 0).sum() + expected, 1.0))


def _best(known: Linking, gain: NDArray[np.float64], solver: str) -> Linking:
    """The links of the greatest gains together."""
    count = len(known.follower)
    indptr = np.searchsorted(known.row, np.arange(count + 1)).astype(np.int64)
    indptr, col, useful = kept_above(indptr, known.col.astype(np.int32), gain, 0.0)
    answer, unit = best_pairs(indptr, col, gain[useful], (count, count), solver)
    follower = answer.col_of_row.astype(np.int64)
    trust, gained = np.zeros(count), np.zeros(count)
    linked, taken = places_of(indptr, col, follower)
    trust[linked], gained[linked] = known.probability[useful[taken]], gain[useful[taken]]
    return replace(
        known, follower=follower, before=answer.row_of_col.astype(np.int64), trust=trust, gain=gained,
        margin=answer.margin * unit, odds=gain, changed=follower != known.follower,
        gap=float(answer.gap * unit),
    )  # fmt: skip
