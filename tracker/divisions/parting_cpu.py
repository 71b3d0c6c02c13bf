"""CPU kernels of parting: log odds of families, and estimates from their probabilities.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_UNLIKELY = 1e-6  # families less likely than this tell nothing
_LEAST = 1e-300


@njit(nogil=True, cache=True, error_model="numpy")
def _log_apart(apart2, axes, least2, e):  # pragma: no cover
    """Log of the distance between two daughters, with scaled axes."""
    square = 0.0
    for k in range(len(axes)):
        square += apart2[e, k] / axes[k]
    return 0.5 * math.log(max(square, least2))


@njit(nogil=True, cache=True, error_model="numpy")
def _middles2(along2, aside2, apart2, used, shrunk, e):  # pragma: no cover
    """Squared deviations of the midpoint if one daughter is nearer to the mother, or the other one.

    used: variances along and across the line between them, and by which share of it the middle is off.
    """
    along, aside, off = used
    across2 = aside2[e] / aside
    if off == 0.0:
        both = (along2[e] / along + across2) * shrunk * shrunk
        return both, both, 0.0
    square = 0.0
    for k in range(apart2.shape[1]):
        square += apart2[e, k]
    way, far = math.sqrt(along2[e]), off * math.sqrt(square)
    one = ((way - far) ** 2 / along + across2) * shrunk * shrunk
    return one, ((way + far) ** 2 / along + across2) * shrunk * shrunk, far


@njit(nogil=True, cache=True, error_model="numpy")
def log_odds(
    along2,
    aside2,
    apart2,
    growth,
    crowd,
    chance,
    usual_growth,
    axes,
    numbers,
    constants,
    freedom,
    largest,
    odds,
):  # pragma: no cover
    """Log odds of each family.

    along2, aside2, growth (or NaN), crowd, chance, usual_growth (P,) f8, apart2 (P, A) f8 as in `Families`;
    axes (A,) f8; numbers: along, aside, off, both, apart, spread, slope, growth, its spread, the square of
    the least distance; constants: of the share and all that does not depend on the family, and of the growth;
    freedom of Student's t, a whole number; largest odds. Written: odds (P,) f8.
    """
    along, aside, off, both, apart, spread, slope, grown, grown_spread, least2 = numbers
    dimensions, power = len(axes), np.int64(freedom) + len(axes)
    log_scale, shrunk = 0.0, 1.0
    for e in range(len(odds)):
        if log_scale != slope * crowd[e]:  # all families of one mother have the same
            log_scale = slope * crowd[e]
            shrunk = math.exp(-log_scale)
        one, other, _ = _middles2(along2, aside2, apart2, (along, aside, off), shrunk, e)
        log_apart = _log_apart(apart2, axes, least2, e)
        left = log_apart - log_scale - apart
        value = constants[0] - chance[e] - dimensions * (log_scale + log_apart)
        value -= 0.5 * (freedom + dimensions) * math.log(1 + one / freedom)
        if off > 0.0:
            less = math.sqrt((freedom + one) / (freedom + other)) ** power
            value += math.log((1 + less) / (1 + both))
        value -= 0.5 * (freedom + 1) * math.log(1 + left * left / (freedom * spread))
        if growth[e] == growth[e]:
            left = growth[e] * shrunk - grown
            value += constants[1] - left * left / (2 * grown_spread) - log_scale - usual_growth[e]
        odds[e] = min(value, largest)


@njit(nogil=True, cache=True, error_model="numpy")
def likeliest(
    probability, along2, aside2, apart2, growth, crowd, axes, numbers, before, alike, freedom, stretch, found
):  # pragma: no cover
    """Moments of all learned parameters, weighted by the probabilities of families.

    probability (P,) f8; along2 to numbers as in `log_odds`, as they were used; before: how many divisions'
    worth is known before, then variance of the middle, apart, spread, growth, its spread; alike: divisions'
    worth of belief that all axes are alike. Written: stretch (A,) f8 the new axes; found (11,) f8: sum of the
    probabilities, along, aside, apart, spread, slope, growth, its spread, the sum where growth is known,
    off, both.
    """
    along, aside, off, _, apart, spread, _, _, _, least2 = numbers
    worth, usual_middle, usual_apart, usual_spread, usual_growth, usual_growth_spread = before
    dimensions, power = len(axes), np.int64(freedom) + len(axes)
    log_apart, shrunk_of, heeds = np.empty_like(growth), np.empty_like(growth), np.empty_like(growth)
    total = _LEAST
    stretch[:] = 0.0
    for e in range(len(probability)):
        p = probability[e]
        if p > _UNLIKELY:
            total += p
            square = _LEAST
            for k in range(dimensions):
                square += apart2[e, k] / axes[k]
            for k in range(dimensions):
                stretch[k] += p * apart2[e, k] / square
    volume = 0.0
    for k in range(dimensions):
        stretch[k] = (dimensions * stretch[k] + alike) / (total + alike)
        volume += math.log(stretch[k]) / dimensions
    for k in range(dimensions):
        stretch[k] /= math.exp(volume)
    room = 0.0
    for e in range(len(probability)):
        if probability[e] > _UNLIKELY:
            room += probability[e] * crowd[e]
    room /= total
    rises, square = 0.0, 0.1 * alike
    for e in range(len(probability)):
        p = probability[e]
        if p > _UNLIKELY:
            log_apart[e] = _log_apart(apart2, stretch, least2, e)
            rises += p * (crowd[e] - room) * log_apart[e]
            square += p * (crowd[e] - room) ** 2
    slope = min(max(rises / square, 0.0), 1.5)
    found[:] = 0.0
    found[1], found[2] = worth * usual_middle / (total + worth), worth * usual_middle / (total + worth)
    found[3], found[6], heard = worth * usual_apart, worth * usual_growth, worth
    mixed, square = 0.0, _LEAST
    for e in range(len(probability)):
        p = probability[e]
        if p > _UNLIKELY:
            shrunk = shrunk_of[e] = math.exp(-slope * crowd[e]) if slope > 0 else 1.0
            one, other, far = _middles2(along2, aside2, apart2, (along, aside, off), shrunk, e)
            heed = p * (freedom + dimensions) / (freedom + one) * shrunk * shrunk
            if far > 0.0:
                less = math.sqrt((freedom + one) / (freedom + other)) ** power
                heed /= 1 + less
                found[10] += p * less / total
                less *= heed * (freedom + one) / (freedom + other)
                mixed += (heed - less) * math.sqrt(along2[e]) * far / off
                square += (heed + less) * (far / off) ** 2
                heed += less
            found[1] += heed * along2[e] / (total + worth)
            found[2] += heed * aside2[e] / (total + worth) / max(dimensions - 1, 1)
            left = log_apart[e] - slope * crowd[e]
            heed = heeds[e] = p * (freedom + 1) / (freedom + (left - apart) ** 2 / spread)
            heard += heed
            found[3] += heed * left
            if growth[e] == growth[e]:
                found[8] += p
                found[6] += p * growth[e] * shrunk
    found[9] = min(mixed / square, 0.5)
    found[1] -= (2 * mixed - found[9] * square) * found[9] / (total + worth)
    found[3] /= heard
    found[6] /= found[8] + worth
    found[4] = worth * (usual_spread + (usual_apart - found[3]) ** 2) / (total + worth)
    found[7] = worth * (usual_growth_spread + (usual_growth - found[6]) ** 2)
    for e in range(len(probability)):
        p = probability[e]
        if p > _UNLIKELY:
            left = log_apart[e] - slope * crowd[e]
            found[4] += heeds[e] * (left - found[3]) ** 2 / (total + worth)
            if growth[e] == growth[e]:
                found[7] += p * (growth[e] * shrunk_of[e] - found[6]) ** 2
    found[7] /= found[8] + worth
    found[0], found[5] = total, slope
