"""Divisions: track starts joined to mothers, by assignments of their own.

In a division two tracks start, or, where one daughter was linked as if the mother went on, one. So ends are
assigned to starts first, over the distances that divisions have, and then the starts that are left to
mothers that go on, each start to at most one and each mother to at most one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .assign import AssignmentProblem, SparseCosts, assign
from .gating import pairs_within
from .movie import Movie
from .refine import Linking

_UNITS = 1 << 26
_REACH = 1.5
"""Farthest that a daughter is looked for, in spacings of the detections."""
_WIDEST = 0.35
"""Largest spread of daughters around their expected place, in spacings; chance neighbours spread wider."""
_ROUNDS, _STILL = 30, 0.05
"""Rounds of expectation and maximisation, fewer once they gain less than so much, in nats."""
_TOLD = 3000
"""Starts that tell enough of how daughters part."""
_EVIDENCE = 10.0
"""Log likelihood, in nats, that divisions must gain over chance neighbours before any is believed."""
_CLEAR = 0.8
"""And how much for each second daughter: with less, too many of them would be chance neighbours."""


@dataclass(frozen=True, eq=False)
class Divisions:
    """Links to daughters, beside the links of the tracks.

    Parameters
    ----------
    mother, daughter : (D,) int64 arrays
        Rows of the movie; a mother stands here once, for the daughter that the tracks do not link, or
        twice if they link none.
    probability : (D,) float64 array
        From the odds of a daughter against a neighbour by chance.
    """

    mother: NDArray[np.int64]
    daughter: NDArray[np.int64]
    probability: NDArray[np.float64]


def find_divisions(movie: Movie, linking: Linking, log_density: NDArray[np.float64]) -> Divisions:
    r"""Assign starts to mothers by the odds of a division against a neighbour by chance.

    Daughters part from each other, so the second is expected at the mother's place less c times the step
    of the first, with a Gaussian spread s. Both, and the share w of starts that are daughters, come
    from the movie: expectation and maximisation over the mixture of daughters and chance,

    .. math:: \frac{w N(r; s)}{(1 - w) \rho}

    with ρ the density of detections. Nothing is found unless that explains the starts much better
    than chance does.

    Parameters
    ----------
    movie : Movie
    linking : Linking
        Its links. Starts are detections without one before, after the first frame.
    log_density : (N,) float64 array
        Log of the detections per volume around each.
    """
    follower, before = linking.follower.copy(), linking.before.copy()
    ends = np.nonzero(follower < 0)[0]
    first = _assigned(movie, ends, _starts(movie, before), follower, log_density, 0.0)
    follower[first.mother], before[first.daughter] = first.daughter, first.mother
    linked = np.nonzero(follower >= 0)[0]
    going_on = linked[movie.frame[follower[linked]] == movie.frame[linked] + 1]
    second = _assigned(movie, going_on, _starts(movie, before), follower, log_density, _CLEAR)
    # A mother of one is none: what is near an end, alone, may be anything.
    kept = np.isin(first.mother, second.mother)
    return Divisions(
        np.concatenate([first.mother[kept], second.mother]),
        np.concatenate([first.daughter[kept], second.daughter]),
        np.concatenate([first.probability[kept], second.probability]),
    )


def _starts(movie: Movie, before: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.nonzero((before < 0) & (movie.frame > movie.frame[:1]))[0]


def _assigned(
    movie: Movie,
    mothers: NDArray[np.int64],
    starts: NDArray[np.int64],
    follower: NDArray[np.int64],
    log_density: NDArray[np.float64],
    clear: float,
) -> Divisions:
    """The best assignment of starts to some mothers, if there is evidence for any."""
    count, axes = movie.position.shape
    none = Divisions(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    if not len(mothers) or not len(starts):
        return none
    spacing = float(np.exp(-np.median(log_density[starts]) / axes))
    thin = max(1, len(starts) // _TOLD)
    fitted = _fitted(*_near(movie, mothers, starts[::thin], follower, spacing), log_density, spacing, clear)
    if fitted is None:
        return none
    mother, start, step, away = _near(movie, mothers, starts, follower, spacing)
    left2 = ((away + fitted[1] * step) ** 2).sum(axis=1)
    odds = _log_odds(left2, axes, log_density[start], *fitted)
    useful = np.nonzero(odds > 0)[0]
    if not len(useful):
        return none
    order = useful[np.argsort(start[useful], kind="stable")]
    mother, start, odds = mother[order], start[order], odds[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(start, minlength=count))]).astype(np.int64)
    cost = (_UNITS - np.rint(odds * (_UNITS / odds.max()))).astype(np.int32)
    unmatched = np.full(count, _UNITS // 2, dtype=np.int64)
    costs = SparseCosts(indptr, mother.astype(np.int32), cost, (count, count))
    chosen = assign(AssignmentProblem(costs, unmatched, unmatched)).col_of_row
    taken = chosen[start] == mother
    return Divisions(mother[taken], start[taken], 1 / (1 + np.exp(-np.minimum(odds[taken], 30.0))))


def _near(
    movie: Movie,
    mothers: NDArray[np.int64],
    starts: NDArray[np.int64],
    follower: NDArray[np.int64],
    spacing: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Mothers and starts of the next frame near them, the steps of the mothers and the ways to the starts."""
    points = np.zeros((len(movie.frame), 3))
    points[:, : movie.axes] = movie.position
    numbers = np.arange(movie.frame[0], movie.frame[-1] + 2)
    of_mothers, of_starts = (np.searchsorted(movie.frame[rows], numbers) for rows in (mothers, starts))
    near = pairs_within(points[mothers], points[starts], _REACH * spacing, of_mothers, of_starts, (1, 1))
    mother = mothers[np.repeat(near.rows.order, np.diff(near.indptr))]
    start = starts[near.cols.order[near.indices]]
    linked = (follower[mother] >= 0)[:, None]
    step = np.where(linked, movie.position[follower[mother]] - movie.position[mother], 0.0)
    return mother, start, step, movie.position[start] - movie.position[mother]


def _fitted(
    mother: NDArray[np.int64],
    start: NDArray[np.int64],
    step: NDArray[np.float64],
    away: NDArray[np.float64],
    log_density: NDArray[np.float64],
    spacing: float,
    clear: float,
) -> tuple[float, float, float] | None:
    """The likeliest share, slope and variance; None without evidence."""
    if not len(mother):
        return None
    number, axes = np.unique(start, return_inverse=True)[1], step.shape[1]
    away2, both, step2 = _squares(step, away)
    fitted, most = None, _EVIDENCE
    # The likelihood has several peaks: begin narrow and begin wide.
    for spread in (0.05, 0.1, 0.2, 0.3):
        share, slope, variance = 0.5, 1.0, (spread * spacing) ** 2
        evidence = -np.inf
        for _ in range(_ROUNDS):
            used, before = (share, slope, variance), evidence
            odds = _log_odds(away2 + 2 * slope * both + slope**2 * step2, axes, log_density[start], *used)
            weight = np.exp(np.minimum(odds, 500.0))
            total = 1 + np.bincount(number, weight)
            chance = weight / total[number]
            daughters = max(float(chance.sum()), 1e-300)
            evidence = float(np.log((1 - share) * total).sum())
            share = min(max(daughters / len(total), 1e-6), 1 - 1e-3)
            along, long = float((chance * both).sum()), float((chance * step2).sum())
            slope = min(max(-along / max(long, 1e-300), 0.0), 1.5)
            left2 = float((chance * (away2 + 2 * slope * both + slope**2 * step2)).sum())
            variance = max(left2 / daughters / axes, 1e-9 * spacing**2)
            if evidence < before + _STILL:
                break
        enough = evidence > most and evidence > clear * daughters
        if enough and variance < (_WIDEST * spacing) ** 2:
            fitted, most = used, evidence
    return fitted


def _squares(
    step: NDArray[np.float64], away: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(P,) squares of the ways, products of steps and ways, squares of the steps."""
    return (away**2).sum(axis=1), (step * away).sum(axis=1), (step**2).sum(axis=1)


def _log_odds(
    left2: NDArray[np.float64],
    axes: int,
    log_density: NDArray[np.float64],
    share: float,
    _slope: float,
    variance: float,
) -> NDArray[np.float64]:
    """(P,) log odds of a daughter, so far from her place, against a neighbour by chance."""
    spread = 0.5 * axes * np.log(2 * np.pi * variance)
    return np.asarray(np.log(share / (1 - share)) - left2 / variance / 2 - log_density - spread)
