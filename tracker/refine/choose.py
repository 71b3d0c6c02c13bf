"""Final choice: the links with the best expected agreement with the truth."""

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
"""Largest number of rounds of fractional belief propagation; more change no score."""
_STILL = 0.03
"""Mean relative change of the probability of no link at which the iteration stops."""
_MOST = 40.0
"""Limit of log odds, below which squares of odds do not overflow."""
_CERTAIN = 1e-6
"""Distance of probabilities from 0 and 1."""
_OF_F1, _OF_CLUTTER, _WORTH = 0.35, 1.2, (0.15, 0.3)
"""Threshold of the probability that gave the longest correct tracks in tests: coefficients of F1 and of the
share of clutter, and its limits."""
_ROUNDS = 5
"""Number of iterations for the largest F1."""
_TELLING = 0.02
"""Least probability of pairs used for the correction of probabilities."""
_FEW = 20.0
"""Weight, in pairs, of the prior that probabilities are correct."""
_BINS, _STEPS, _STRIDE = 100, 12, 0.3

Sobriety = tuple[float, float]
"""Slope and intercept of the true log odds as a function of the computed ones."""


def sobered(soft: Linking, settled: Linking, sobriety: Sobriety = (1.0, 0.0), *, workers: int = 1) -> Linking:
    r"""Correct the probabilities of links, which are neither too high nor too low afterwards.

    Belief propagation is exact if the pairs form no loops. For two particles that may be exchanged, messages
    return through the other particle, and the probabilities become too extreme. Fractional belief propagation
    minimises, over the probabilities p of pairs and s of detections without a link on one side,

    .. math:: \sum \Big[p \log\frac{p}{w} - c \, (1 - p) \log (1 - p)\Big] + \sum s \log s

    where w are the odds. c = 1 is belief propagation; c = 1/2 is exact for two particles that may be
    exchanged, and 1 - 1/k for a cycle of k particles. Here c is 3/4.

    Probabilities computed along the chosen links favour these links; those computed from all probable links
    do not use the choice. The mean of both log odds is closest to the truth. The remaining error is corrected
    with values measured on movies with known truth (`sobriety_of`).

    Parameters
    ----------
    soft : Linking
        The result before links were chosen (`weighed_softly`).
    settled : Linking
        The result from the past and future of links (`link_pass`), or the same as `soft`.
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
    """Regress the true log odds on those of `sobered` (logistic regression).

    Parameters
    ----------
    soft, settled : Linking
        As in `sobered`, for a movie with known truth.
    follower : (N,) int64 array
        The true follower; -1 for none.
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
    r"""Choose links among the same pairs for a high expected F1 and long correct tracks.

    The most likely set of links does not have the best expected agreement with the truth. If p are
    probabilities and T true links are expected, then for the largest

    .. math:: F_1 = 2 \sum p / (\mathrm{links} + T)

    links are chosen if :math:`p > F_1 / 2` (Dinkelbach 1967). So in difficult movies, most chosen links are
    wrong. For identities (IDF1), other rules hold: a right link extends the longest correct part of a track,
    and a wrong link only costs if both its ends are in such parts, which are short in difficult movies; but
    linked clutter is always an error. In tests, the best threshold for a share c of clutter was p > .35 F1 +
    1.2 c, limited to .15 to .3; it has twice the weight of the first one. The largest F1 is estimated from
    the most likely links. Gains are the log odds of p minus those of the combined threshold.

    Parameters
    ----------
    linking : Linking
        The most likely set of links.
    clutter : float
        Share of clutter among detections.
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
    """(Q,) squared odds against each pair: the product of those from both linkings."""
    told = [settled] if soft is settled else [settled, soft]
    every = list(in_threads(lambda by: _probabilities(settled, _looked_up(by, settled)), told, workers))
    probability, other = every[0], every[-1]
    return (1 - probability) * (1 - other) / (probability * other)


def _odds(linking: Linking) -> NDArray[np.float32]:
    return np.exp(np.minimum(linking.odds, _MOST).astype(np.float32))


def _looked_up(soft: Linking, settled: Linking) -> NDArray[np.float32]:
    """(Q,) odds in one linking of the pairs of the other."""
    if soft is settled:
        return _odds(soft)
    from .candidates_cpu import looked_up

    found = np.empty(len(settled.row), np.float32)
    looked_up(settled.row, settled.col, soft.row, soft.col, _odds(soft), found)
    return found


def _probabilities(linking: Linking, odds: NDArray[np.float32]) -> NDArray[np.float64]:
    """(Q,) probabilities of all pairs with these odds."""
    from .choose_cpu import fractional_probabilities

    probability, count = np.empty(len(linking.row)), len(linking.follower)
    indptr = starts_of(linking.row, count)
    where = indptr.view(np.uint64), linking.col.view(np.uint32)  # without a sign they need no check
    fractional_probabilities(*where, count, odds, _LOOPS, _STILL, probability)
    return np.clip(probability, _CERTAIN, 1 - _CERTAIN)


def best_of(
    linking: Linking, gain: NDArray[np.float64], solver: str
) -> tuple[Assignment, float, NDArray[np.int64]]:
    """The pairs of a linking with the largest sum of gains, the gain of a unit, and their indices.

    Parameters
    ----------
    linking : Linking
    gain : (Q,) float64 array
        Gains of its pairs.
    solver : str

    Returns
    -------
    Assignment, float, (L,) int64 array
        As in `best_pairs`; the last one for the rows that have a pair, in order.
    """
    count = len(linking.follower)
    indptr = starts_of(linking.row, count)
    indptr, col, useful, gained = kept_above(indptr, linking.col, gain, 0.0)
    answer, unit = best_pairs(indptr, col, gained, (count, count), solver)
    _, taken = places_of(indptr, col, answer.col_of_row.astype(np.int64))
    return answer, unit, useful[taken]


def _best(known: Linking, gain: NDArray[np.float64], solver: str) -> Linking:
    """The links with the largest sum of gains."""
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
