"""CPU kernels of learning. Serial, without the GIL; no result depends on the order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from numba import njit

_IMPROBABLE = 1e-3  # pairs less likely than this tell nothing
_LIGHT = 1e-6  # weights of products below which they tell nothing


@njit(nogil=True, cache=True)
def step_products(
    row, col, probability, frame, position, shift, before, trust, group, thin, low, high, reach, products
):  # pragma: no cover
    """Sums of weighted products of a particle's steps 0, 1, … frames apart.

    The last step of each chain is any probable pair; those before are links, those over gaps left out.
    row (Q,) i8, col (Q,) i4, probability (Q,) f8 pairs; frame (N,) i8; position, shift (N, A) f8;
    before (N,) i8 or -1; trust (N,) f8 of the link that leaves each; group (N,) i8; thin: every so many rows
    count; low, high (A,) f8 where walls may be, reach (A,) f8 the way from them in one frame: along an axis,
    what may have met one counts in no product.
    Added to products (G, LAGS, 5, A) f8: weights, products, squares of the last and of the earlier step
    (all less the shift), and, at lag 0, squares of the step as seen.
    """
    lags, axes = products.shape[1], position.shape[1]
    for e in range(len(row)):
        p = probability[e]
        if p <= _IMPROBABLE:
            continue
        i, j = row[e], col[e]
        if frame[j] != frame[i] + 1 or (thin > 1 and i % thin != 0):
            continue
        g = group[i]
        for k in range(axes):
            seen = position[j, k] - position[i, k]
            step = seen - shift[i, k]
            products[g, 0, 0, k] += p
            products[g, 0, 1, k] += p * step * step
            products[g, 0, 2, k] += p * step * step
            products[g, 0, 3, k] += p * step * step
            products[g, 0, 4, k] += p * seen * seen
        weight, here = p**4, i
        while before[here] >= 0:
            b = before[here]
            lag = frame[i] - frame[b]
            weight *= trust[b] ** 4
            if lag >= lags or weight < _LIGHT:
                break
            if frame[here] - frame[b] > 1:  # of a step over a gap nothing is known frame by frame
                here = b
                continue
            for k in range(axes):
                middle, away = (position[j, k] + position[b, k]) / 2, (lag + 1) / 2 * reach[k]
                if middle - away < low[k] or middle + away > high[k]:
                    continue
                step = position[j, k] - position[i, k] - shift[i, k]
                earlier = position[here, k] - position[b, k] - shift[b, k]
                products[g, lag, 0, k] += weight
                products[g, lag, 1, k] += weight * step * earlier
                products[g, lag, 2, k] += weight * step * step
                products[g, lag, 3, k] += weight * earlier * earlier
            here = b


@njit(nogil=True, cache=True)
def groups_of(before, group):  # pragma: no cover
    """Tracks keep the group of their first detection: before (N,) i8 or -1. Written: group (N,) i8."""
    for i in range(len(before)):
        if before[i] >= 0:
            group[i] = group[before[i]]
