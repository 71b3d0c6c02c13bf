"""Links and divisions in one assignment: a daughter that was linked to a neighbour may be reassigned.

Each mother has a second row, with the costs of her second daughter, so links and divisions form one
assignment. Only the detections that can be reached from a start by a few exchanges of links are included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..assignment.gains import best_pairs
from ..refine.linking import Linking
from .families import Families

_EXCHANGES = 3
"""Largest number of consecutive exchanges of links from a start."""
_WORTH = 12.0
"""Largest loss of log odds by these exchanges: few divisions have more."""
_ROUNDS, _MESSAGE = 4, 1e-3
"""Largest number of rounds of belief propagation, and change of messages at which it stops."""


def reachable(linking: Linking, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The starts, and the detections that might become starts if these were linked, sorted.

    Parameters
    ----------
    linking : Linking
    starts : (S,) int64 array
    """
    count = len(linking.follower)
    cost = np.full(count, np.inf)
    cost[starts] = 0.0
    # Links are optimal, so that exchanges from a start on never gain.
    loss = linking.gain[linking.row] - linking.odds
    cheap = np.nonzero(loss <= _WORTH)[0]
    col, loss, held = linking.col[cheap], loss[cheap], linking.follower[linking.row[cheap]]
    other = (held >= 0) & (held != col)
    col, loss, held = col[other], loss[other], held[other]
    for _ in range(_EXCHANGES):
        cost = np.minimum(cost, _least(held, cost[col] + loss, count))
    return np.nonzero(cost <= _WORTH)[0]


def _least(place: NDArray[np.int64], value: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """(count,) least of the values with each index; inf if there are none."""
    least = np.full(count, np.inf)
    np.minimum.at(least, place, value)
    return least


@dataclass(frozen=True, eq=False)
class Choice:
    """Links and families as pairs that exclude each other.

    Rows below N are detections with their possible links; rows from N are mothers with their second
    daughters. Pairs are sorted by row, then by column.

    Parameters
    ----------
    row, col : (K,) int64 arrays
    gain : (K,) float64 array
        Log odds.
    family : (K,) int64 array
        Family of each pair; -1 for links.
    share : (K,) float64 array
        Share of the log odds of the family in each pair: half if both daughters start.
    """

    row: NDArray[np.int64]
    col: NDArray[np.int64]
    gain: NDArray[np.float64]
    family: NDArray[np.int64]
    share: NDArray[np.float64]

    @cached_property
    def chance(self) -> NDArray[np.float64]:
        """(K,) probability of each pair, by belief propagation over all choices."""
        from ..refine import weigh_cpu as kernels

        indptr, col, shape = _compressed(self.row, self.col)
        chance = np.empty(len(col))
        kernels.pair_probabilities(indptr, col, shape[1], self.gain, _ROUNDS, _MESSAGE, chance)
        return chance

    def by(self, odds: NDArray[np.float64]) -> Choice:
        """A copy with these log odds (P,) of the families."""
        return replace(self, gain=np.where(self.family < 0, self.gain, self.share * odds[self.family]))


def choice_of(
    linking: Linking,
    families: Families,
    odds: NDArray[np.float64],
    among: NDArray[np.int64],
    rarer: float = 0.0,
) -> Choice:
    """Construct the choice among links and families.

    Parameters
    ----------
    linking : Linking
    families : Families
    odds : (P,) float64 array
        Log odds of each family; of families in which both daughters start, only the best per mother is kept.
    among : (S,) int64 array
        Detections whose links may change, including the starts.
    rarer : float
        Log of the ratio of chance starts to all starts, against which links were weighed.
    """
    given = _given(linking, among)
    family = np.nonzero(_likeliest_of_ended(families, odds))[0]
    both = family[families.ended[family]]
    count, links = len(linking.follower), len(given)
    row = np.concatenate([linking.row[given], families.mother[both], families.mother[family] + count])
    col = np.concatenate([linking.col[given], families.first[both], families.second[family]])
    of = np.concatenate([np.full(links, -1), both, family])
    share = np.where(of < 0, 0.0, np.where(families.ended[of], 0.5, 1.0))
    gain = np.concatenate([linking.odds[given] + rarer, share[links:] * odds[of[links:]]])
    order = np.argsort(row * count + col, kind="stable")
    return Choice(row[order], col[order], gain[order], of[order], share[order])


def family_chances(choice: Choice, families: Families) -> NDArray[np.float64]:
    """(P,) probability of each family."""
    probability = np.zeros(len(families))
    told = choice.family >= 0
    probability[choice.family[told]] = choice.chance[told]
    return probability


def relinked(linking: Linking, families: Families, choice: Choice) -> tuple[Linking, NDArray[np.int64]]:
    """Find the best links and families jointly.

    Parameters
    ----------
    linking : Linking
    families : Families
    choice : Choice

    Returns
    -------
    linking : Linking
        With changed links. Mothers whose two daughters both start keep no link.
    chosen : (D,) int64 array
        The chosen families.
    """
    count = len(linking.follower)
    kept = np.ones(len(choice.row), dtype=np.bool_)
    while True:
        taken, margin, gap = _solved(choice, kept)
        follower = linking.follower.copy()
        follower[choice.row[choice.row < count]] = -1
        plain = taken & (choice.row < count)  # firsts of two that start included
        follower[choice.row[plain]] = choice.col[plain]
        chosen = choice.family[taken & (choice.row >= count)]
        # A family holds only with both daughters.
        alone = follower[families.mother[chosen]] != families.first[chosen]
        half = np.setdiff1d(choice.family[plain & (choice.family >= 0)], chosen)
        broken = np.concatenate([chosen[alone], half])
        if not len(broken):
            break
        kept &= ~np.isin(choice.family, broken)
    # Two that start are told as daughters, not as a link.
    pairs = families.mother[chosen][families.ended[chosen]]
    follower[pairs] = -1
    plain &= ~np.isin(choice.row, pairs)
    new = _with_links(linking, follower, choice, plain, margin)
    return replace(new, gap=max(linking.gap, gap)), chosen


def _given(linking: Linking, among: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs that lead to some detections, and the current links of their rows."""
    open_to = np.zeros(len(linking.follower), dtype=np.bool_)
    open_to[among] = True
    near = open_to[linking.col]
    rows = np.zeros(len(linking.follower), dtype=np.bool_)
    rows[linking.row[near]] = True
    return np.nonzero(near | (rows[linking.row] & (linking.follower[linking.row] == linking.col)))[0]


def _likeliest_of_ended(families: Families, odds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Select all families of mothers with a link, and the likeliest family of each mother without one."""
    kept, ended = ~families.ended, np.nonzero(families.ended)[0]
    best = ended[np.lexsort((-odds[ended], families.mother[ended]))]
    kept[best[np.diff(families.mother[best], prepend=-1) != 0]] = True
    return kept


def _solved(choice: Choice, kept: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.float64], float]:
    """The selected pairs, their margins, and the gap to the lower bound."""
    useful = np.nonzero(kept & (choice.gain > 0))[0]
    # A pair may be a link and half of a family as well: it counts as what gains more.
    gain, same = choice.gain[useful], np.diff(choice.row[useful]) == 0
    twice = np.nonzero(same & (np.diff(choice.col[useful]) == 0))[0]
    useful = np.delete(useful, twice + (gain[twice] >= gain[twice + 1]))
    taken, margin = np.zeros(len(kept), dtype=np.bool_), np.zeros(len(kept))
    indptr, col, shape = _compressed(choice.row[useful], choice.col[useful])
    answer, unit = best_pairs(indptr, col, choice.gain[useful], shape)
    row = np.repeat(np.arange(shape[0]), np.diff(indptr))
    taken[useful] = answer.col_of_row[row] == col
    margin[useful] = answer.margin[row] * unit
    return taken, margin, float(answer.gap * unit)


def _compressed(
    row: NDArray[np.int64], col: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], tuple[int, int]]:
    """Starts of the rows, columns and shape of sorted pairs, without empty rows and columns."""
    begin = np.nonzero(np.diff(row, prepend=-1))[0]
    indptr = np.append(begin, len(row)).astype(np.int64)
    used = np.zeros(int(col.max(initial=-1)) + 1, dtype=np.bool_)
    used[col] = True
    number = np.cumsum(used) - 1
    return indptr, number[col].astype(np.int32), (len(begin), int(used.sum()))


def _with_links(
    linking: Linking,
    follower: NDArray[np.int64],
    choice: Choice,
    plain: NDArray[np.bool_],
    margin: NDArray[np.float64],
) -> Linking:
    """The linking with these links; what is known of them is set for the rows whose link is another."""
    before = np.full(len(follower), -1, dtype=np.int64)
    linked = np.nonzero(follower >= 0)[0]
    before[follower[linked]] = linked
    changed = follower != linking.follower
    other = np.nonzero(plain)[0]
    other = other[changed[choice.row[other]]]
    known = []
    for old, new in (
        (linking.trust, choice.chance), (linking.gain, choice.gain), (linking.margin, margin)
    ):  # fmt: skip
        values = np.where(follower < 0, 0.0, old)
        values[choice.row[other]] = new[other]
        known.append(values)
    trust, gain, margins = known
    return replace(
        linking, follower=follower, before=before, trust=trust, gain=gain, margin=margins, changed=changed
    )
