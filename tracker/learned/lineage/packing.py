r"""Belief propagation for links and divisions.

A pair of a detection i and a detection j of a later frame is true if j is the successor of i, or one of the
two daughters of i. The row of i holds no pair, a link of weight G, or a division of weight W, which makes two
pairs true at once; the column of j holds one pair at most. With the odds :math:`o = G / (R C)^\omega` of a
pair and :math:`c = o R`, fractional belief propagation is

.. math:: T_i = n_i^{1/\omega} + \sum_j c_{ij} + \sum_{a,b} V_{iab} \, c_{ia} c_{ib}, \quad
          V = (W / (G_{ia} G_{ib}))^{1/\omega}

.. math:: D_{ij} = 1 + \sum_b V_{ijb} \, c_{ib}, \quad R_{ij} = (T_i - c_{ij} D_{ij}) / D_{ij}, \quad
          C_{ij} = n_j^{1/\omega} + \sum_{i' \ne i} o_{i'j} C_{i'j}

Without divisions this is the propagation of `inference.jpda`. A link and the divisions that begin with the
same pair are one variable, so they compete exactly. T. Minka, Power EP, 2004; J. Williams and R. Lau, IEEE
Trans. Aerospace and Electronic Systems 50, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compute.tolerances import FEW, NEGLIGIBLE, TINY
from ..model.movie import summed


@dataclass(frozen=True, eq=False)
class Pairs:
    """E pairs of detections, and P divisions that are two pairs each.

    Parameters
    ----------
    row, column : (E,) int64 arrays
        Detections of each pair.
    ratio : (E,) float64 array
        G of a pair that is a candidate link; 1 otherwise.
    link : (E,) float64 array
        1 for candidate links, 0 for pairs that occur in divisions only.
    competing : (2, E) float64 array
        R and C, the weights of what competes with a pair in its row and column.
    daughters : (2, P) int64 array
        The two pairs of each division.
    weight : (P,) float64 array
        V of each division.
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    ratio: NDArray[np.float64]
    link: NDArray[np.float64]
    competing: NDArray[np.float64]
    daughters: NDArray[np.int64]
    weight: NDArray[np.float64]

    def weighing(self, log_weight: NDArray[np.float64], omega: float) -> Pairs:
        """The pairs with divisions of log weights (P,)."""
        of_links = np.log(self.ratio)[self.daughters].sum(axis=0)
        return replace(self, weight=np.exp((log_weight - of_links) / omega))

    def odds(self, omega: float) -> NDArray[np.float64]:
        """(E,) odds that a pair is true."""
        odds: NDArray[np.float64] = self.ratio * (self.competing[0] * self.competing[1]) ** -omega
        return odds

    def rows(self, least: NDArray[np.float64], odds: NDArray[np.float64]) -> Rows:
        """Sums over rows, from the odds of pairs (E,); least (N,) is the weight of no pair, ** 1 / omega."""
        each = odds * self.competing[0]
        one, other = each[self.daughters]
        mothers, count = self.row[self.daughters[0]], len(least)
        divided = summed(mothers, self.weight * one * other, count)
        total = least + summed(self.row, self.link * each, count) + divided
        apart = self.weight * np.stack([other, one])
        divisor = self.link + summed(self.daughters.ravel(), apart.ravel(), len(each))
        return Rows(each, total, np.maximum(divisor, TINY), divided)

    def beliefs(self, unlinked: NDArray[np.float64], omega: float) -> Beliefs:
        """Probabilities from the present competing weights; unlinked (2, N) are weights of no pair."""
        odds = self.odds(omega)
        rows = self.rows(unlinked[0] ** (1 / omega), odds)
        both = self.weight * rows.each[self.daughters].prod(axis=0)
        linked = self.link / rows.divisor
        division = both / rows.total[self.row[self.daughters[0]]]
        return Beliefs(rows, odds / (1 + odds) * linked, division, odds * self.competing[1] * (1 - linked))


class Rows(NamedTuple):
    """Sums over rows: c (E,), T (N,), D (E,), and the part of T that belongs to divisions (N,)."""

    each: NDArray[np.float64]
    total: NDArray[np.float64]
    divisor: NDArray[np.float64]
    divided: NDArray[np.float64]


class Beliefs(NamedTuple):
    """Probabilities of links (E,) and divisions (P,).

    `daughter` (E,) is the weight of a pair in its column, as a mother and her daughter.
    """

    rows: Rows
    link: NDArray[np.float64]
    division: NDArray[np.float64]
    daughter: NDArray[np.float64]


def propagated(unlinked: NDArray[np.float64], pairs: Pairs, omega: float, rounds: int = FEW) -> Pairs:
    """The pairs with the competing weights that belief propagation finds.

    Parameters
    ----------
    unlinked : (2, N) float64 array
        Weights of no pair in rows and in columns.
    pairs : Pairs
        With the competing weights from which propagation starts.
    omega : float
        Exponent of competing weights.
    rounds : int
        Largest number of these.

    Examples
    --------
    Row 0 is linked to column 1, or divides into 1 and 2:

    >>> pairs = Pairs(
    ...     np.array([0, 0]), np.array([1, 2]), np.array([8.0, 1.0]), np.array([1.0, 0.0]), np.ones((2, 2)),
    ...     np.array([[0], [1]]), np.empty(0),
    ... )
    >>> none = np.ones((2, 3))
    >>> some = propagated(none, pairs.weighing(np.log([3.0]), 1.0), 1.0).beliefs(none, 1.0)
    >>> some.link.round(4).tolist(), some.division.round(4).tolist()
    ([0.6667, 0.0], [0.25])
    """
    least, competing = unlinked ** (1 / omega), pairs.competing.copy()
    pairs = replace(pairs, competing=competing)
    odds = pairs.odds(omega)
    for _ in range(rounds):
        last, rows = odds, pairs.rows(least[0], odds)
        rest = rows.total[pairs.row] - rows.each * rows.divisor
        competing[0] = np.maximum(rest, least[0][pairs.row]) / rows.divisor
        incoming_weight = pairs.odds(omega) * competing[1]
        total = least[1] + summed(pairs.column, incoming_weight, unlinked.shape[1])
        competing[1] = np.maximum(total[pairs.column] - incoming_weight, least[1][pairs.column])
        odds = pairs.odds(omega)
        if (np.abs(odds / (1 + odds) - last / (1 + last)) < NEGLIGIBLE).all():
            break
    return pairs


def log_partition(unlinked: NDArray[np.float64], pairs: Pairs, rounds: int = FEW) -> float:
    r"""Bethe approximation of the log of the total weight of all sets of pairs, with the exponent 1.

    .. math:: z = \sum_i \log T_i + \sum_j \log\Big(n_j + \sum_i o_{ij} C_{ij}\Big) - \sum \log(1 + o)
    """
    pairs = propagated(unlinked, pairs, 1.0, rounds)
    odds = pairs.odds(1.0)
    columns = unlinked[1] + summed(pairs.column, odds * pairs.competing[1], unlinked.shape[1])
    rows = pairs.rows(unlinked[0], odds)
    return float(np.log(rows.total).sum() + np.log(columns).sum() - np.log1p(odds).sum())
