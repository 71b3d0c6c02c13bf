"""The final choice: of all probable links those that are expected to agree best with the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._threads import in_threads
from ..assignment import Assignment
from ..assignment.gains import best_pairs
from .candidates import kept_above, places_of, starts_of
from .linking import Linking

_LOOPS = 12
"""Rounds of fractional belief propagation at most; more change no score."""
_STILL = 0.03
"""Relative change of the probability of no link, in the mean, that is none."""
_MOST = 40.0
"""Log odds from which on all are alike: their squares still are numbers."""
_CERTAIN = 1e-6
"""No link is more certain, or less probable."""
_OF_F1, _OF_CLUTTER, _WORTH = 0.35, 1.2, (0.15, 0.3)
"""Probability from which on links make the longest tracks, wherever that was measured: so much of F1 and of
the share of clutter, between these."""
_ROUNDS = 5
"""How often the greatest F1 is measured anew."""
_TELLING = 0.02
"""Probability of pairs that tell how right probabilities are."""
_FEW = 20.0
"""Pairs' worth of belief that they are right."""
_BINS, _STEPS, _STRIDE = 100, 12, 0.3

Sobriety = tuple[float, float]
"""Slope and intercept of true log odds over those that were found."""


def sobered(soft: Linking, settled: Linking, sobriety: Sobriety = (1.0, 0.0), *, workers: int = 1) -> Linking:
    r"""The links with probabilities that are neither too sure nor too humble.

    Belief propagation is exact where pairs make no loops. But two particles that may change places hear of
    themselves through each other, and become too sure. Fractional belief propagation finds the probabilities
    p of pairs, and s of detections without a link on one side, that are least in

    .. math:: \sum \Big[p \log\frac{p}{w} - c \, (1 - p) \log (1 - p)\Big] + \sum s \log s

    where w are the odds. c = 1 is belief propagation; 1/2 is exact for two that may change places and
    1 - 1/k for a ring of k that may all move on. Here c is 3/4.

    Links that were chosen make themselves more probable, and what all links tell does not know which were
    chosen: the mean of both log odds is nearest to the truth. What is left to be put right is known where the
    truth is (`sobriety_of`).

    Parameters
    ----------
    soft : Linking
        Before any links were chosen (`weighed_softly`).
    settled : Linking
        By the past and the future of links (`link_pass`); or the same.
    sobriety : (float, float)
    workers : int
        Threads; they do not change the result.

    References
    ----------
    Chertkov & Yedidia, Approximating the permanent with fractional belief propagation (2013).
    """
    against = np.sqrt(_against(soft, settled, workers))
    if sobriety != (1.0, 0.0):
        slope, intercept = sobriety
        against = np.exp(slope * np.log(against) - intercept)
    probability = np.clip(1 / (1 + against), _CERTAIN, 1 - _CERTAIN)
    trust, linked = np.zeros(len(settled.follower)), settled.follower[settled.row] == settled.col
    trust[settled.row[linked]] = probability[linked]
    return replace(settled, probability=probability, trust=trust)


def sobriety_of(soft: Linking, settled: Linking, follower: NDArray[np.int64]) -> Sobriety:
    """How true log odds depend on those of `sobered`, by logistic regression.

    Parameters
    ----------
    soft, settled : Linking
        As in `sobered`, of a movie whose truth is known.
    follower : (N,) int64 array
        The true one; -1 for none.
    """
    right = follower[settled.row] == settled.col
    odds = -np.log(_against(soft, settled, workers=1)) / 2
    telling = odds > np.log(_TELLING / (1 - _TELLING))
    odds, right = odds[telling], right[telling]
    if not len(odds):
        return 1.0, 0.0
    edges = np.linspace(odds.min(), odds.max(), _BINS)
    which = np.searchsorted(edges, odds)
    many, hits, total = (np.bincount(which, weight, _BINS + 1) for weight in (None, right, odds))
    mean = np.column_stack([total / np.maximum(many, 1), np.ones(_BINS + 1)])
    usual = np.array([1.0, 0.0])
    found = usual
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-mean @ found))
        curve = mean.T @ ((many * said * (1 - said))[:, None] * mean) + _FEW * np.eye(2)
        step = np.linalg.solve(curve, mean.T @ (hits - many * said) - _FEW * (found - usual))
        found = found + np.clip(step, -_STRIDE, _STRIDE)  # whole steps of Newton's may lead astray
    return float(found[0]), float(found[1])


def chosen(linking: Linking, clutter: float, solver: str) -> Linking:
    r"""Other links of the same pairs, whose F1 is expected to be best and whose tracks to be long.

    The most likely links together are not those that agree best with the truth. If p are probabilities and
    T true links are expected, as many as are most likely, those of the greatest

    .. math:: F_1 = 2 \sum p / (\mathrm{links} + T)

    are worth while where :math:`p > F_1 / 2` (Dinkelbach 1967). So where little can be followed, links are
    chosen of which most are wrong. What keeps identities longest (IDF1) depends on other things: a right link
    adds to the longest part of a track, and a wrong one only costs where both its ends are in such longest
    parts, which are short where little can be followed; but clutter that is linked is no longer right alone.
    Where a share c is clutter that is p > .35 F1 + 1.2 c, between .15 and .3, wherever it was measured, and
    counts twice. The greatest F1 is taken from the most likely links. Gains are the log odds of p less those
    of this threshold.

    Parameters
    ----------
    linking : Linking
        The most likely links.
    clutter : float
        Share of detections that are no particle.
    solver : str
    """
    trust = linking.trust[linking.follower >= 0]
    kept, expected, worth = trust, len(trust), 0.0
    for _ in range(_ROUNDS):
        best = 2 * kept.sum() / max(len(kept) + expected, 1)
        longest = min(max(_OF_F1 * best + _OF_CLUTTER * clutter, _WORTH[0]), _WORTH[1])
        worth = (best / 2 + 2 * longest) / 3
        kept = trust[trust > worth]
    against = (1 - linking.probability) * (worth / (1 - worth))
    return _best(linking, np.log(linking.probability / against), solver)


def _against(soft: Linking, settled: Linking, workers: int) -> NDArray[np.float64]:
    """(Q,) odds against each pair, squared: the product of those by both."""
    told = [settled] if soft is settled else [settled, soft]
    every = list(in_threads(lambda by: _probabilities(settled, _looked_up(by, settled)), told, workers))
    probability, other = every[0], every[-1]
    return (1 - probability) * (1 - other) / (probability * other)


def _odds(linking: Linking) -> NDArray[np.float32]:
    return np.exp(np.minimum(linking.odds, _MOST).astype(np.float32))


def _looked_up(soft: Linking, settled: Linking) -> NDArray[np.float32]:
    """(Q,) odds that the one knows of the pairs of the other."""
    if soft is settled:
        return _odds(soft)
    from .candidates_cpu import looked_up

    found = np.empty(len(settled.row), np.float32)
    looked_up(settled.row, settled.col, soft.row, soft.col, _odds(soft), found)
    return found


def _probabilities(linking: Linking, odds: NDArray[np.float32]) -> NDArray[np.float64]:
    """(Q,) probabilities of all pairs, if those are their odds."""
    from .choose_cpu import fractional_probabilities

    probability, count = np.empty(len(linking.row)), len(linking.follower)
    indptr = starts_of(linking.row, count)
    where = indptr.view(np.uint64), linking.col.view(np.uint32)  # without a sign they need no check
    fractional_probabilities(*where, count, odds, _LOOPS, _STILL, probability)
    return np.clip(probability, _CERTAIN, 1 - _CERTAIN)


def best_of(
    linking: Linking, gain: NDArray[np.float64], solver: str
) -> tuple[Assignment, float, NDArray[np.int64]]:
    """The pairs of a linking whose gains sum to the most, the gain of a unit, and where those pairs stand.

    Parameters
    ----------
    linking : Linking
    gain : (Q,) float64 array
        Of its pairs.
    solver : str

    Returns
    -------
    Assignment, float, (L,) int64 array
        As `best_pairs`; the last for the rows that have a pair, in their order.
    """
    count = len(linking.follower)
    indptr = starts_of(linking.row, count)
    indptr, col, useful, gained = kept_above(indptr, linking.col, gain, 0.0)
    answer, unit = best_pairs(indptr, col, gained, (count, count), solver)
    _, taken = places_of(indptr, col, answer.col_of_row.astype(np.int64))
    return answer, unit, useful[taken]


def _best(known: Linking, gain: NDArray[np.float64], solver: str) -> Linking:
    """The links of the greatest gains together."""
    answer, unit, taken = best_of(known, gain, solver)
    follower = answer.col_of_row.astype(np.int64)
    linked = follower >= 0
    trust, gained = np.zeros(len(follower)), np.zeros(len(follower))
    trust[linked], gained[linked] = known.probability[taken], gain[taken]
    return replace(
        known, follower=follower, before=answer.row_of_col.astype(np.int64), trust=trust, gain=gained,
        margin=answer.margin * unit, odds=gain, changed=follower != known.follower,
        gap=float(answer.gap * unit),
    )  # fmt: skip
