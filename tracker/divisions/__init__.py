"""Divisions: join track starts to mothers by a separate assignment.

The separation of daughters and the lifetime of cells are learned from the movie. Two particles that appear as
one for a while look like a division when they separate, but this happens as often in reversed time. So the
movie is also searched backward in time, and the number found there is the number of false divisions to
expect.

`families`               candidates for a mother with two daughters, and their measurements
`parting`                model of how daughters separate, learned from the track starts
`generations`            ages at which cells divide
`kin`                    similarity of these ages between sisters, and between mothers and daughters
`relink`                 links and divisions combined in one assignment
`merges`                 merges, as divisions in reversed time
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..assignment.gains import best_pairs
from ..refine.linking import Linking, LinkModel, shift_backward, turned
from ..refine.movie import Movie
from .families import Families, Nearby, Usual
from .generations import Lives
from .kin import kin_gains
from .parting import Parting, log_odds, parting_of, probabilities, share_gain
from .relink import Choice, choice_of, family_chances, reachable, relinked

_LEAST = 0.5
"""Least probability of an accepted family, against chance and all other families."""
_TRIED, _TOLD = 500, 1500
"""Number of starts in the test whether there are divisions at all, and number that suffices to learn the
separation."""
_FAMILIES = 10_000
"""The same for families."""
_CLEAR = 3.0
"""Standard deviations by which the number found forward must exceed the number found backward."""
_MORE = 0.05
"""It must also exceed it by this share of the starts, because the numbers of false divisions may differ."""
_UNSEEN = 0.25
"""Number of false divisions expected in addition to those found backward: in 288 simulated movies of crossing
spots, one had false divisions forward but none backward."""
_NEXT_TO_NONE = 1 / 3
"""Share of false divisions below which a small number of divisions is accepted."""
_HOPELESS = -8.0
"""Log odds below which a family is ignored."""
_ROUNDS = 2
"""Number of rounds of link exchange."""
_SETTLED = 0.02
"""Number of changed links, relative to the starts, at which the rounds end."""
_KEPT = 2 / 3
"""Correlation of consecutive steps above which a particle's own velocity predicts its next position;
otherwise only the step length of all particles is used. Links also include steps of daughters; cells have
correlations of up to .56."""
_SOBER = (2 / 3, -0.5)
"""Slope and intercept of the true log odds as a function of the computed log odds of families, from 15,000
families in recorded movies of six embryos, a mouse and HeLa cells at all frame rates. (The probability of
other mothers is underestimated.) The threshold `_LEAST` applies to computed values; merges are not
corrected."""
_LIVES = 3
"""Rounds in which ages and divisions are estimated alternately, before the similarity of relatives is used,
and after it; the contribution of relatives is then kept fixed."""


@dataclass(frozen=True, eq=False)
class Branches:
    """Links to daughters, in addition to the links of tracks; or from merging tracks, as in `find_merges`.

    Parameters
    ----------
    source, target : (D,) int64 arrays
        Rows of the movie. A mother occurs once, for the daughter that is not linked to her by a track, or
        twice if neither is.
    probability : (D,) float64 array
        Probability of this family, against a chance start and all other families.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    probability: NDArray[np.float64]

    @classmethod
    def none(cls) -> Branches:
        """Result for a movie without divisions."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    def __len__(self) -> int:
        return len(self.source)


def find_divisions(
    movie: Movie,
    linking: Linking,
    model: LinkModel,
    log_density: NDArray[np.float64],
    shift: NDArray[np.float64],
) -> tuple[Linking, Branches]:
    """Assign starts to mothers, with the odds of a division against a chance neighbour.

    Parameters
    ----------
    movie : Movie
    linking : Linking
        Its links. Starts are detections without a predecessor, after the first frame.
    model : LinkModel
        The model of these links.
    log_density : (N,) float64 array
        Log of the number of detections per volume around each.
    shift : (N, axes) float64 array
        Predicted displacement per frame of each detection.

    Returns
    -------
    Linking, Branches
        Links differ from the input if a daughter had been linked to a neighbour.
    """
    none = Branches.none()
    starts = _starts(movie, linking.before)
    every = max(1, min(len(starts) // _TRIED, len(movie.frame_start) // 2 - 1))
    usual = Usual.of(movie, linking.follower, shift)
    near = Nearby.of(movie, starts, log_density, shift, usual, every=every)
    going = _going(movie, linking, model, log_density)
    families = near.families(linking.before, linking.follower, going)
    sample = starts[movie.frame[starts] % every == 0]
    parting = _parting(movie, families, sample)
    if parting is None:
        return linking, none
    forward, odds, claimed = _found(families, parting, len(movie.frame))
    backward = _backward(movie, linking, model, log_density, shift, usual, parting, every)
    if every > 1:
        # Where chance finds about as many, a sample tells that all would not do.
        unsure = _CLEAR * math.sqrt(len(forward) + len(backward) + 1)
        few = len(forward) - len(backward) + unsure < _MORE * len(sample)
        if few or not _tell(forward, backward, claimed, unsure):
            return linking, none
        near = Nearby.of(movie, starts, log_density, shift, usual)
        families = near.families(linking.before, linking.follower, going)
        parting = _parting(movie, families, starts, begun=parting) or parting
        forward, odds, claimed = _found(families, parting, len(movie.frame))
        backward = _backward(movie, linking, model, log_density, shift, usual, parting)
    few = len(forward) - len(backward) < _MORE * len(starts)
    if few or not (_real(odds, forward, backward, claimed) > _LEAST).any():
        return linking, none
    among = reachable(linking, starts)
    near = Nearby.of(movie, among, log_density, shift, usual, late=True)
    for _ in range(_ROUNDS):
        starts = _starts(movie, linking.before)
        going = _going(movie, linking, model, log_density)
        families = near.families(linking.before, linking.follower, going)
        parting = _refined(movie, linking, families, starts, parting)
        odds = log_odds(families, parting)
        odds += np.log(np.maximum(_real(odds, forward, backward, claimed), 1e-9))
        families, odds = families.only(odds > _HOPELESS), odds[odds > _HOPELESS]
        # Links were weighed against starts of all kinds, families are against those by chance.
        rarer = -math.log(1 - parting.share)
        choice = choice_of(linking, families, odds, among, rarer)
        choice, chance = _aged(movie, linking, families, choice, odds)
        linking, chosen = relinked(linking, families, choice)
        if linking.changed.sum() <= _SETTLED * len(starts):
            break
    chosen = chosen[chance[chosen] > _LEAST]
    found, chance = families.only(chosen), _sober(chance[chosen])
    also = found.ended
    return linking, Branches(
        np.concatenate([found.mother, found.mother[also]]),
        np.concatenate([found.second, found.first[also]]),
        np.concatenate([chance, chance[also]]),
    )


def _sober(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correct the probabilities of families; see `_SOBER`.

    Examples
    --------
    >>> _sober(np.array([0.6, 0.9, 0.999, 1.0])).round(2).tolist()
    [0.44, 0.72, 0.98, 1.0]
    """
    slope, intercept = _SOBER
    seem = np.log(np.maximum(chance, 1e-300)) - np.log(np.maximum(1 - chance, 1e-300))
    return np.asarray(1 / (1 + np.exp(-slope * seem - intercept)))


def _found(
    families: Families, parting: Parting, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Log odds of the divisions found, (P,) log odds of all families, and the sum of their probabilities."""
    odds = log_odds(families, parting)
    chance, _ = probabilities(families, odds)
    return odds[_assigned(families, odds, chance, count)], odds, float(chance.sum())


def _aged(
    movie: Movie, linking: Linking, families: Families, choice: Choice, odds: NDArray[np.float64]
) -> tuple[Choice, NDArray[np.float64]]:
    """The choice with log odds from ages, and the probability of each family."""
    lives = Lives.of(movie, linking.before, families)
    for _ in range(_LIVES):
        choice = choice.by(odds + lives.gains(family_chances(choice, families)))
    odds = odds + kin_gains(lives, family_chances(choice, families))
    for _ in range(_LIVES):
        choice = choice.by(odds + lives.gains(family_chances(choice, families)))
    return choice, family_chances(choice, families)


def _going(
    movie: Movie, linking: Linking, model: LinkModel, log_density: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(N,) log density of the follower of each detection, given past and future; see `_KEPT`."""
    going = np.full(len(movie.frame), -np.inf)
    kept = model.motion.step_covariance(1) / np.maximum(model.motion.step_variance(1), 1e-300)
    if kept.mean() < _KEPT:
        return going
    linked = np.nonzero(linking.follower >= 0)[0]
    after = linking.follower[linked]
    gap = np.minimum(movie.frame[after] - movie.frame[linked], len(model.follow))
    seen = model.gain_of_gap()[gap] - math.log(model.start)
    # They were linked before: they are no clutter.
    real = sum(float(model.freedom_to_link(np.zeros(1), rate)[0]) for rate in (model.end, model.start))
    going[linked] = linking.gain[linked] - seen - real + log_density[after]
    return going


def _starts(movie: Movie, before: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.nonzero((before < 0) & (movie.frame > movie.frame[:1]))[0]


def _parting(
    movie: Movie,
    families: Families,
    starts: NDArray[np.int64],
    earlier: NDArray[np.float64] | None = None,
    begun: Parting | None = None,
) -> Parting | None:
    """Learn the separation of daughters from a sufficient number of frames."""
    earlier = np.zeros(len(families)) if earlier is None else earlier
    thin = max(1, len(starts) // _TOLD, math.ceil(len(families) / _FAMILIES))
    if thin > 1:
        told = np.unique(movie.frame[starts])[::thin]
        some = np.isin(movie.frame[families.second], told)
        families, earlier = families.only(some), earlier[some]
        starts = starts[np.isin(movie.frame[starts], told)]
    soon = ~families.late
    return parting_of(families.only(soon), len(starts), earlier[soon], begun)


def _refined(
    movie: Movie, linking: Linking, families: Families, starts: NDArray[np.int64], parting: Parting
) -> Parting:
    """Learn the separation of daughters, with log odds from ages, from the families of the current starts."""
    families = families.only(linking.before[families.second] < 0)
    chance, _ = probabilities(families, log_odds(families, parting))
    lives = Lives.of(movie, linking.before, families)
    aged = lives.gains(chance) + kin_gains(lives, chance)
    return _parting(movie, families, starts, aged, parting) or parting


def _backward(
    movie: Movie,
    linking: Linking,
    model: LinkModel,
    log_density: NDArray[np.float64],
    shift: NDArray[np.float64],
    usual: Usual,
    parting: Parting,
    every: int = 1,
) -> NDArray[np.float64]:
    """The log odds of the divisions found in reversed time, where their share differs."""
    count, back, linking = len(movie.frame), movie.backward(), linking.backward()
    starts = _starts(back, linking.before)
    behind = shift_backward(turned(linking.follower), shift)
    near = Nearby.of(back, starts, log_density[::-1], behind, usual, every=every)
    going = _going(back, linking, model, log_density[::-1])
    families = near.families(linking.before, linking.follower, going)
    odds = log_odds(families, parting)
    own = odds + share_gain(families, odds, int((back.frame[starts] % every == 0).sum()), parting)
    chance, _ = probabilities(families, own)
    return odds[_assigned(families, own, chance, count)]


def _real(
    odds: NDArray[np.float64], forward: NDArray[np.float64], backward: NDArray[np.float64], claimed: float
) -> NDArray[np.float64]:
    """(P,) share of true divisions among those found forward with the same or higher log odds.

    The expected number of false divisions is the number found backward, plus a fraction of one. The share is
    0 unless significantly more are found forward, both in total and with high log odds.

    Parameters
    ----------
    odds : (P,) float64 array
        Log odds of each family.
    forward, backward : (F,), (B,) float64 arrays
        Log odds of the divisions found forward and backward in time.
    claimed : float
        Sum of the probabilities of all families. The part of families that are not found measures chance.

    Examples
    --------
    >>> _real(np.array([8.0, 1.0]), np.arange(10.0), np.array([2.0]), 10.0).round(2).tolist()
    [0.96, 0.88]
    >>> _real(np.array([8.0]), np.array([8.0]), np.empty(0), 1.0).tolist()
    [0.75]
    """
    # Some threshold is crossed more often forward in every movie: all of them together must tell.
    if not _tell(forward, backward, claimed):
        return np.zeros(len(odds))
    forward, backward = np.sort(forward), np.sort(backward)
    found, seen = np.arange(len(forward), 0, -1), len(backward) - np.searchsorted(backward, forward)
    share = np.where(_clear(found, seen), 1 - (seen + _UNSEEN) / found, 0.0)
    # A family may look worse than others and still be in no worse company.
    rank = np.searchsorted(forward, odds, side="right") - 1
    return np.asarray(np.maximum.accumulate(share)[np.maximum(rank, 0)])


def _tell(
    forward: NDArray[np.float64], backward: NDArray[np.float64], claimed: float, unsure: float = 0.0
) -> bool:
    """Whether the number of divisions found forward, plus `unsure`, significantly exceeds chance.

    Examples
    --------
    >>> [_tell(np.full(20, 3.0), np.empty(0), 32.0, unsure) for unsure in (0.0, 13.0)]
    [False, True]
    """
    vague = max(claimed - len(forward), 0.0)
    return bool(_clear((1 / (1 + np.exp(-forward))).sum() + unsure, len(backward) + vague))


def _clear(found: ArrayLike, seen: ArrayLike) -> NDArray[np.bool_]:
    """Whether more were found than those found backward can explain, or almost none were found backward."""
    forward, false = np.asarray(found), np.asarray(seen) + _UNSEEN
    many = forward - false > _CLEAR * np.sqrt(2 * false)  # both numbers vary
    return np.asarray(many | (false < _NEXT_TO_NONE * forward))


def _assigned(
    families: Families, odds: NDArray[np.float64], chance: NDArray[np.float64], count: int
) -> NDArray[np.int64]:
    """The families in the best assignment of starts to mothers."""
    useful = np.nonzero((odds > 0) & (chance > _LEAST))[0]
    if not len(useful):
        return useful
    useful = useful[np.argsort(families.second[useful], kind="stable")]
    mother, start = families.mother[useful], families.second[useful]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(start, minlength=count))]).astype(np.int64)
    answer, _ = best_pairs(indptr, mother.astype(np.int32), odds[useful], (count, count))
    return _each_once(families, useful[answer.col_of_row[start] == mother], odds)


def _each_once(families: Families, chosen: NDArray[np.int64], odds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Remove families whose first daughter is also a start and belongs to a more probable family."""
    chosen = chosen[np.argsort(-odds[chosen], kind="stable")]
    ended = families.ended[chosen]
    daughters = np.column_stack([families.second[chosen], np.where(ended, families.first[chosen], -1)])
    rank = np.arange(len(chosen))
    best = np.full(int(daughters.max()) + 1, len(chosen))
    for side in daughters.T:
        np.minimum.at(best, side[side >= 0], rank[side >= 0])
    return np.sort(chosen[(best[daughters[:, 0]] == rank) & ((best[daughters[:, 1]] == rank) | ~ended)])
