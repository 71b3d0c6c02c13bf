"""CPU kernel of the M-step: sums of the moments of all links, in the order of links."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from ...compute.kernels import kernel


@kernel(error_model="numpy")
def add_moments(moments, p, once, tail, group, begins, renews, interval, inverse, to):  # pragma: no cover
    """Add the moments of links, weighted by their probability, to sums by group and by interval.

    moments: shares (E, K, 2), sums (E, K, D, 4), residual (E, D) f4; p (E,) f8; once (E,) u1 whether the link
    is over one interval: of others, residuals alone count; tail (E,) i4; of each detection group, interval
    (N,) i8 and begins (N,) f8, the probability of no predecessor; renews (K,) f8 of a renewal into a class,
    over its share; inverse (K, D) f8, of variances times the number of axes. Written to: steps (G, K, 3) f8,
    whose third is the renewals of a step that has a predecessor, sums (G, K, D, 4), residual (G, D), links
    (G,), and by_interval (T, 3) f8, the number, sum and sum of squares of squared steps over their variance.
    """
    shares, sums, residual = moments
    to_steps, to_sums, to_residual, to_links, by_interval = to
    classes, axes = shares.shape[1], residual.shape[1]
    for f in range(len(p)):
        i, w = tail[f], p[f]
        g, unlinked, square = group[i], begins[i], 0.0
        to_links[g] += w
        for d in range(axes):
            to_residual[g, d] += w * residual[f, d]
        if not once[f]:
            continue
        for c in range(classes):
            fresh = renews[c] * (1 - unlinked)
            to_steps[g, c, 0] += w * shares[f, c, 0]
            to_steps[g, c, 1] += w * shares[f, c, 1]
            if fresh > 0:
                to_steps[g, c, 2] += w * shares[f, c, 1] * fresh / (unlinked + fresh)
            for d in range(axes):
                square += (sums[f, c, d, 0] + sums[f, c, d, 1]) * inverse[c, d]
                for k in range(4):
                    to_sums[g, c, d, k] += w * sums[f, c, d, k]
        t = interval[i]
        by_interval[t, 0] += w
        by_interval[t, 1] += w * square
        by_interval[t, 2] += w * square * square
