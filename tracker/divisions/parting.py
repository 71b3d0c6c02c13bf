r"""Separation of daughter cells, learned from all track starts of a movie by expectation-maximisation.

The point m midway between the daughters is where the mother is foretold, but for a Student's t that is wider
along the line between them: daughters are unequal. Where they are so much so that it tells, as with buds, m
is off along that line by a share of their distance, one half if one of them stays. The log of their distance
r has a Student's t, too, with axes along which they part more or less; and they part further, by a Gaussian
amount g, into the next frame. All lengths may grow with the room that cells have. A share w of all starts are
daughters; for each family the odds are

.. math:: \frac{w}{1 - w} \frac{t(m) \, t(\log r) \, r^{-d} \, N(g)}{\rho f(v) h(g)}

with ρ, f and h the densities of starts, of the steps v of all particles and of the growth by chance, d the
number of axes. All that is learned begins at what is usual, believed as much as two divisions, so that one
that is clear tells enough. Divisions are believed where the evidence is strong, less what learning costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .families import FREEDOM, Families, log_t

_APART = (0.25, 0.6)
"""Initial distances between daughters, in spacings: the likelihood has several maxima."""
_USUAL_APART, _USUAL_SPREAD = 0.45, 0.5
"""Prior distance between daughters, in spacings, and spread of its log: embryos, cultured cells and bacteria
have .17 to .85."""
_USUAL_MIDDLE = 0.05
"""Prior deviation of the midpoint between daughters, and of the increase of their distance, in spacings."""
_BEFORE = 2.0
"""Weight of this prior, in divisions."""
_FIRST, _ROUNDS, _STILL = 6, 30, 0.05
"""Number of iterations from each initial distance, number from the best one, and gain in nats at which they
stop."""
_WIDEST = 0.5
"""Largest spread of the midpoint, in spacings; that of chance neighbours is wider."""
_LEARNED = 9
"""Number of learned parameters, without those of unequal separation."""
_ALIKE = 5.0
"""Weight, in divisions, of the prior that separation is equal along all axes."""
_STRONG = 3.0
"""Evidence in nats that counts as strong, 20 to 1 (Kass & Raftery 1995)."""
_SHARE = 0.5
"""Prior number of daughters, and of other starts (Jeffreys' prior)."""
_LARGEST = 500.0
"""Limit of log odds: their exponentials must be finite."""


@dataclass(frozen=True, eq=False)
class Parting:
    """Model of the separation of daughters, in the unit of the positions.

    Parameters
    ----------
    share : float
        Share of starts that are daughters.
    along, aside : float
        Variances of the midpoint between the daughters along and across the line between them.
    off, both : float
        Offset of the midpoint along that line as a share of the distance, 0.5 if one daughter stays at the
        position of the mother; and probability of an offset towards the other daughter relative to that
        towards this one.
    apart, spread : float
        Mean and variance of the log of their distance.
    axes : (A,) float64 array
        Relative squared distance along the axes; the product is 1.
    slope : float
        Slope of the log of all these lengths as a function of the log of the spacing around the mother.
    growth, growth_spread : float
        Mean and variance of the increase of their distance to the next frame.
    """

    share: float
    along: float
    aside: float
    off: float
    both: float
    apart: float
    spread: float
    axes: NDArray[np.float64]
    slope: float
    growth: float
    growth_spread: float


def parting_of(
    families: Families, starts: int, earlier: NDArray[np.float64], begun: Parting | None = None
) -> Parting | None:
    """Maximum-likelihood separation of daughters; None without evidence for divisions.

    Parameters
    ----------
    families : Families
    starts : int
        Number of starts.
    earlier : (P,) float64 array
        Additional log odds, 0 for none.
    begun : Parting, optional
        Initial parameters.
    """
    if not len(families):
        return None
    families = _renumbered(families)
    if begun is None:
        begun = _first(families, starts, earlier)
    parting, evidence = _climbed(families, starts, earlier, begun, _ROUNDS, judged=True)
    wide = max(parting.along, parting.aside) > (_WIDEST * families.spacing) ** 2
    return None if evidence < _needed(starts, parting) or wide else parting


def _first(families: Families, starts: int, earlier: NDArray[np.float64]) -> Parting:
    """The best result from all initial distances, after a few iterations."""
    tried = [_climbed(families, starts, earlier, _begun(families, apart, 0.0), _FIRST) for apart in _APART]
    even, most = max(tried, key=lambda reached: reached[1])
    uneven, gained = _climbed(families, starts, earlier, _begun(families, _USUAL_APART, 0.5), _FIRST)
    return uneven if gained > most + _STRONG else even


def _needed(starts: int, parting: Parting) -> float:
    """Least gain in nats: strong evidence, plus half the log of the information gained on the parameters.

    The information on the share grows by the number of starts; that on the other parameters by 1 + D / 2 with
    D divisions (`_BEFORE`).
    """
    learned = 0.5 * (_LEARNED + (parting.off > 0)) * math.log1p(starts * parting.share / _BEFORE)
    return _STRONG + 0.5 * math.log(1 + starts) + learned


def _renumbered(families: Families) -> Families:
    """A copy with starts renumbered from 0, so that sums over starts are short."""
    ended = families.ended
    rows = np.concatenate([families.second, families.first[ended]])
    number = np.unique(rows, return_inverse=True)[1]
    first = np.zeros(len(families), dtype=np.int64)
    first[ended] = number[len(families) :]
    return replace(families, first=first, second=number[: len(families)])


def log_odds(families: Families, parting: Parting) -> NDArray[np.float64]:
    """(P,) log odds of a family against a particle that continues as usual and a chance start.

    Either daughter may be the one nearer to the mother.
    """
    parting = replace(parting, both=1.0)
    odds, late = _log_odds(families, parting), np.nonzero(families.late)[0]
    if len(late):
        odds[late] = _log_odds(families.only(late), _later(families, parting))
    return odds


def _later(families: Families, parting: Parting) -> Parting:
    """The model one frame later, with larger distance and deviation of the midpoint."""
    daughters = parting.share * families.missed
    return replace(
        parting,
        share=daughters / (daughters + 1 - parting.share),
        along=parting.along + families.usual2,
        aside=parting.aside + families.usual2,
        apart=math.log(max(math.exp(parting.apart) + parting.growth, 1e-6 * families.spacing)),
    )


def _log_odds(families: Families, parting: Parting) -> NDArray[np.float64]:
    """Log odds of families during learning, when one daughter is assumed to be nearer to the mother."""
    from . import parting_cpu as kernels

    axes = len(parting.axes)
    constant = math.log(parting.share / (1 - parting.share)) + _log_t0(axes) + _log_t0(1)
    constant -= 0.5 * (math.log(parting.along) + (axes - 1) * math.log(parting.aside))
    constant -= 0.5 * math.log(parting.spread)
    constant -= math.log(2 * math.pi ** (axes / 2) / math.gamma(axes / 2))  # the surface of a unit sphere
    of_growth = -0.5 * math.log(2 * math.pi * parting.growth_spread)
    odds = np.empty(len(families))
    kernels.log_odds(
        families.along2, families.aside2, families.apart2, families.growth, families.crowd, families.chance,
        families.usual_growth, parting.axes, _numbers(families, parting), (constant, of_growth), FREEDOM,
        _LARGEST, odds,
    )  # fmt: skip
    return odds


def share_gain(families: Families, odds: NDArray[np.float64], starts: int, parting: Parting) -> float:
    """Change of the log odds of families due to the share of daughters among their starts.

    Parameters
    ----------
    families : Families
    odds : (P,) float64 array
        Log odds that include the share of `parting`.
    starts : int
    parting : Parting
    """
    told = math.log(parting.share / (1 - parting.share))
    gain = 0.0
    for _ in range(_ROUNDS):
        chance, _ = probabilities(families, odds + gain)
        share, before = _share(float(chance.sum()), starts), gain
        gain = math.log(share / (1 - share)) - told
        if abs(gain - before) < _STILL:
            break
    return gain


def _share(daughters: float, starts: int) -> float:
    return min((daughters + _SHARE) / (starts + 2 * _SHARE), 1 - 1e-3)


def probabilities(families: Families, odds: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """(P,) probability of each family among all with the same starts; and the log sum of all explanations.

    The latter is a sum over all starts in a family, relative to chance alone.
    """
    weight, ended = np.exp(np.minimum(odds, _LARGEST)), families.ended
    size = int(max(families.second.max(initial=-1), families.first[ended].max(initial=-1))) + 1
    total = 1 + np.bincount(families.second, weight, size)
    most = total[families.second]
    if ended.any():
        total += np.bincount(families.first[ended], weight[ended], size)
        most = total[families.second]
        most[ended] = np.maximum(most[ended], total[families.first[ended]])
    return weight / most, float(np.log(total).sum())


def _begun(families: Families, apart: float, off: float) -> Parting:
    distance = apart * families.spacing
    axes, variance = families.apart2.shape[1], (0.25 * distance) ** 2
    middle = (variance, variance, off, 0.0)
    return Parting(0.5, *middle, math.log(distance), 0.25, np.ones(axes), 0.0, 0.0, 4 * variance)


def _climbed(
    families: Families,
    starts: int,
    earlier: NDArray[np.float64],
    parting: Parting,
    rounds: int,
    *,
    judged: bool = False,
) -> tuple[Parting, float]:
    """Improve the parameters; returns them with the log likelihood, and stops early if it cannot suffice."""
    evidence = -math.inf
    for left in range(rounds, 0, -1):
        used, before = parting, evidence
        chance, explained = probabilities(families, _log_odds(families, used) + earlier)
        evidence = explained + starts * math.log(1 - used.share)
        parting = _likeliest(families, starts, chance, used)
        # Gains fall from round to round.
        hopeless = judged and evidence + left * (evidence - before) < _needed(starts, used)
        if evidence < before + _STILL or hopeless:
            break
    return used, evidence


def _likeliest(families: Families, starts: int, chance: NDArray[np.float64], used: Parting) -> Parting:
    """Parameters estimated with these probabilities."""
    from . import parting_cpu as kernels

    stretch, found, least = np.empty_like(used.axes), np.empty(11), (1e-4 * families.spacing) ** 2
    middle = (_USUAL_MIDDLE * families.spacing) ** 2 + families.usual2
    before = (
        _BEFORE, middle, math.log(_USUAL_APART * families.spacing), _USUAL_SPREAD**2,
        _USUAL_MIDDLE * families.spacing, middle + families.usual2,
    )  # fmt: skip
    kernels.likeliest(
        chance, families.along2, families.aside2, families.apart2, families.growth, families.crowd, used.axes,
        _numbers(families, used), before, _ALIKE, FREEDOM, stretch, found,
    )  # fmt: skip
    total, along, aside, apart, spread, slope, growth, growth_spread, _, off, both = found.tolist()
    return Parting(
        share=_share(total, starts),
        along=max(along, least),
        aside=max(aside, least),
        off=off,
        both=both,
        apart=apart,
        spread=max(spread, 1e-3),
        axes=stretch,
        slope=slope,
        growth=growth,
        growth_spread=max(growth_spread, least),
    )


def _numbers(families: Families, parting: Parting) -> tuple[float, ...]:
    """The arguments of the kernels."""
    least2 = (1e-6 * families.spacing) ** 2
    return (
        parting.along, parting.aside, parting.off, parting.both, parting.apart, parting.spread, parting.slope,
        parting.growth, parting.growth_spread, least2,
    )  # fmt: skip


def _log_t0(axes: int) -> float:
    """Log density of Student's t of unit width at its centre."""
    return float(log_t(np.zeros(1), axes, 1.0, FREEDOM)[0])
