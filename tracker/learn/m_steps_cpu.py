"""CPU kernel of the M-step: sums of the moments of all links, in the order of links."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def add_moments(moments, p, once, tail, group, begins, renews, to):  # pragma: no cover
    """Add the moments of links, weighted by their probability, to sums by group.

    moments: chance (E, K, 2), sums (E, K, D, 4), residual (E, D) f4; p (E,) f8; once (E,) u1 whether the link
    is over one interval: of others, residuals alone count; tail (E,) i4; group (N,) i4; begins (N,) f8 the
    probability of no predecessor, renews (K,) f8 of a renewal into a class, over its share. Written to:
    chance (G, K, 3) f8, whose third is the renewals of a step that has a predecessor, sums (G, K, D, 4),
    residual (G, D), links (G,).
    """
    chance, sums, residual = moments
    to_chance, to_sums, to_residual, to_links = to
    classes, axes = chance.shape[1], residual.shape[1]
    for f in range(len(p)):
        w, g, none = p[f], group[tail[f]], begins[tail[f]]
        if not w > 0:
            continue
        to_links[g] += w
        for d in range(axes):
            to_residual[g, d] += w * residual[f, d]
        if not once[f]:
            continue
        for c in range(classes):
            fresh = renews[c] * (1 - none)
            to_chance[g, c, 0] += w * chance[f, c, 0]
            to_chance[g, c, 1] += w * chance[f, c, 1]
            if chance[f, c, 1] > 0 and fresh > 0:
                to_chance[g, c, 2] += w * chance[f, c, 1] * fresh / (none + fresh)
            for d in range(axes):
                for k in range(4):
                    to_sums[g, c, d, k] += w * sums[f, c, d, k]


@njit(nogil=True, cache=True, error_model="numpy")
def add_squares(sums, p, once, interval, inverse, scale, to):  # pragma: no cover
    """Add to (T, 3) f8, of each interval, count, sum and sum of squares of squared steps over their variance.

    sums (E, K, D, 4) f4; p (E,) f8; once (E,) u1; interval (E,) i8; inverse (K, D) f8, of variances times the
    number of axes; scale (T,) f8.
    """
    for f in range(len(p)):
        if once[f] and p[f] > 0:
            t, square = interval[f], 0.0
            for c in range(sums.shape[1]):
                for d in range(sums.shape[2]):
                    square += (sums[f, c, d, 0] + sums[f, c, d, 1]) * inverse[c, d]
            square *= scale[t] * scale[t]
            to[t, 0] += p[f]
            to[t, 1] += p[f] * square
            to[t, 2] += p[f] * square * square
