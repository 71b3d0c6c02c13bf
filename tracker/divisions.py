"""Divisions: track starts joined to mothers, by assignments of their own.

In a division two tracks start, or, where one daughter was linked as if the mother went on, one. So ends are
assigned to starts first, over the distances that divisions have, and then the starts that are left to
mothers that go on, each start to at most one and each mother to at most one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from .assign import AssignmentProblem, SparseCosts, assign
from .gating import pairs_within
from .movie import Movie
from .refine import Linking

_UNITS = 1 << 26
_REACH = 1.5
"""Farthest that a daughter is looked for, in spacings of the detections."""
_WIDEST = 0.5
"""Largest spread of daughters around their expected place, in spacings; chance neighbours spread wider."""
_ROUNDS, _STILL = 30, 0.05
"""Rounds of expectation and maximisation, fewer once they gain less than so much, in nats."""
_TOLD = 3000
"""Starts that tell enough of how daughters part."""
_FREEDOM = 4.0
"""Degrees of freedom of Student's t for the steps of all particles: some jump without dividing."""
_LEAST = 0.5
"""Least probability of a daughter that is believed, against chance and all other mothers."""
_EVIDENCE = 10.0
"""Log likelihood, in nats, that divisions must gain over chance neighbours before any is believed."""
_CLEAR = 0.85
"""And the probability that second daughters must have in the mean: with less, none are believed."""


@dataclass(frozen=True, eq=False)
class Divisions:
    """Links to daughters, beside the links of the tracks.

    Parameters
    ----------
    mother, daughter : (D,) int64 arrays
        Rows of the movie; a mother stands here once, for the daughter that the tracks do not link, or
        twice if they link none.
    probability : (D,) float64 array
        Of this mother against a start by chance and all other mothers.
    """

    mother: NDArray[np.int64]
    daughter: NDArray[np.int64]
    probability: NDArray[np.float64]


def find_divisions(movie: Movie, linking: Linking, log_density: NDArray[np.float64]) -> Divisions:
    r"""Assign starts to mothers by the odds of a division against a neighbour by chance.

    Daughters part from each other: the first makes a step v of unusual length, of mean square τ², and the
    second is expected at the mother's place less c times that step, with a Gaussian spread s. All this, and
    the share w of starts that are daughters, come from the movie: expectation and maximisation over the
    mixture of daughters and chance,

    .. math:: \frac{w N(r; s) N(v; \tau)}{(1 - w) \rho f(v)}

    with ρ the density of those that may be mothers and f the density of the steps of all particles. Nothing
    is found unless that explains the starts much better than chance does.

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
    some = _near(movie, mothers, starts[::thin], follower, log_density, spacing)
    fitted = _fitted(some, axes, spacing) if len(some.start) else None
    if fitted is None:
        return none
    near = some if thin == 1 else _near(movie, mothers, starts, follower, log_density, spacing)
    odds = _log_odds(near, axes, fitted)
    weight = np.exp(np.minimum(odds, 500.0))
    probability = weight / (1 + np.bincount(near.start, weight))[near.start]
    useful = np.nonzero((odds > 0) & (probability > _LEAST))[0]
    if not len(useful):
        return none
    order = useful[np.argsort(near.start[useful], kind="stable")]
    mother, start = near.mother[order], near.start[order]
    odds, probability = odds[order], probability[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(start, minlength=count))]).astype(np.int64)
    cost = (_UNITS - np.rint(odds * (_UNITS / odds.max()))).astype(np.int32)
    unmatched = np.full(count, _UNITS // 2, dtype=np.int64)
    costs = SparseCosts(indptr, mother.astype(np.int32), cost, (count, count))
    chosen = assign(AssignmentProblem(costs, unmatched, unmatched)).col_of_row
    taken = chosen[start] == mother
    if probability[taken].mean() < clear:
        return none
    return Divisions(mother[taken], start[taken], probability[taken])


class _Near(NamedTuple):
    """Pairs of a mother and a start of the next frame near her; all (P,).

    away2 is the square of the way to the start, step2 that of the mother's step to the daughter she is linked
    to (0 for none) and both their product; density is the log of the density of mothers by chance, and of
    such a step, if it is one, among the steps of all particles.
    """

    mother: NDArray[np.int64]
    start: NDArray[np.int64]
    away2: NDArray[np.float64]
    both: NDArray[np.float64]
    step2: NDArray[np.float64]
    density: NDArray[np.float64]
    linked: bool


class _Parting(NamedTuple):
    """How daughters part.

    A share of the starts are daughters; the second is expected at the mother's place less slope times the
    step to the first, with a variance; step2 is the mean square of that step.
    """

    share: float
    slope: float
    variance: float
    step2: float


def _near(
    movie: Movie,
    mothers: NDArray[np.int64],
    starts: NDArray[np.int64],
    follower: NDArray[np.int64],
    log_density: NDArray[np.float64],
    spacing: float,
) -> _Near:
    """Mothers and the starts near them."""
    points = np.zeros((len(movie.frame), 3))
    points[:, : movie.axes] = movie.position
    numbers = np.arange(movie.frame[0], movie.frame[-1] + 2)
    of_mothers, of_starts = (np.searchsorted(movie.frame[rows], numbers) for rows in (mothers, starts))
    near = pairs_within(points[mothers], points[starts], _REACH * spacing, of_mothers, of_starts, (1, 1))
    mother = mothers[np.repeat(near.rows.order, np.diff(near.indptr))]
    start = starts[near.cols.order[near.indices]]
    away = movie.position[start] - movie.position[mother]
    density = log_density[start] + math.log(len(mothers) / len(movie.frame))
    linked = bool((follower[mothers] >= 0).all())
    if not linked:
        nothing = np.zeros(len(mother))
        return _Near(mother, start, (away**2).sum(axis=1), nothing, nothing, density, linked)
    steps = movie.position[follower[mothers]] - movie.position[mothers]
    usual2 = float(np.median((steps**2).sum(axis=1))) / (movie.axes * float(f.ppf(0.5, movie.axes, _FREEDOM)))
    step = movie.position[follower[mother]] - movie.position[mother]
    step2 = (step**2).sum(axis=1)
    density = density + _log_t(step2, movie.axes, max(usual2, 1e-12 * spacing**2))
    return _Near(mother, start, (away**2).sum(axis=1), (step * away).sum(axis=1), step2, density, linked)


def _log_t(square: NDArray[np.float64], axes: int, variance: float) -> NDArray[np.float64]:
    """Log density of Student's t, of vectors with these squares."""
    constant = math.lgamma((_FREEDOM + axes) / 2) - math.lgamma(_FREEDOM / 2)
    constant -= axes / 2 * math.log(_FREEDOM * math.pi * variance)
    return np.asarray(constant - (_FREEDOM + axes) / 2 * np.log1p(square / (_FREEDOM * variance)))


def _fitted(near: _Near, axes: int, spacing: float) -> _Parting | None:
    """The likeliest way in which daughters part; None without evidence."""
    number = np.unique(near.start, return_inverse=True)[1]
    fitted, most = None, _EVIDENCE
    # The likelihood has several peaks: begin narrow and begin wide.
    for spread in (0.05, 0.1, 0.2, 0.3):
        parting, evidence = (
            _Parting(0.5, 1.0, (spread * spacing) ** 2, (spread * spacing) ** 2 * axes),
            -np.inf,
        )
        for _ in range(_ROUNDS):
            used, before = parting, evidence
            weight = np.exp(np.minimum(_log_odds(near, axes, used), 500.0))
            total = 1 + np.bincount(number, weight)
            chance = weight / total[number]
            daughters = max(float(chance.sum()), 1e-300)
            evidence = float(np.log((1 - used.share) * total).sum())
            along, long = float((chance * near.both).sum()), float((chance * near.step2).sum())
            slope = min(max(-along / max(long, 1e-300), 0.0), 1.5)
            left2 = float((chance * _left2(near, slope)).sum())
            parting = _Parting(
                min(max(daughters / len(total), 1e-6), 1 - 1e-3), slope,
                max(left2 / daughters / axes, 1e-9 * spacing**2), max(long / daughters, 1e-9 * spacing**2),
            )  # fmt: skip
            if evidence < before + _STILL:
                break
        if evidence > most and parting.variance < (_WIDEST * spacing) ** 2:
            fitted, most = used, evidence
    return fitted


def _left2(near: _Near, slope: float) -> NDArray[np.float64]:
    """(P,) squared distance of each start from where the second daughter is expected."""
    return near.away2 + 2 * slope * near.both + slope**2 * near.step2


def _log_odds(near: _Near, axes: int, parting: _Parting) -> NDArray[np.float64]:
    """(P,) log odds of a daughter against a neighbour by chance of a particle that goes on as usual."""
    variance = parting.variance
    constant = math.log(parting.share / (1 - parting.share)) - 0.5 * axes * math.log(2 * math.pi * variance)
    left = _left2(near, parting.slope) / variance / 2 + near.density
    if near.linked:
        spread = parting.step2 / axes
        left = left + near.step2 / spread / 2 + 0.5 * axes * math.log(2 * math.pi * spread)
    return np.asarray(constant - left)
