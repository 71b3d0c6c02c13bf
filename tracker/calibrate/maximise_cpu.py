"""CPU kernels of maximisation: sums over pairs of consecutive steps, and groups of tracks.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit

_IMPROBABLE = 1e-3  # pairs less likely than this tell nothing
_LIGHT = 1e-6  # weights of products below which they tell nothing
_TWO, _THREE, _FOUR, _FIVE = np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(5)


@njit(nogil=True, cache=True, error_model="numpy")
def step_products(
    row, col, probability, frame, position, shift, ease, before, trust, group, thin, low, high, reach,
    products,
):  # pragma: no cover  # fmt: skip
    """Sums of weighted products of two steps of a particle 0, 1, … frames apart.

    The last step of each chain is any probable pair; previous steps are links without gaps.
    row, col (Q,) i4, probability (Q,) f8: pairs; frame (N,) i8; position, shift (N A,) f8; ease (N,) f8:
    inverse step scale of the frame of each detection, or (1,) for all; before (N,) i8 or -1; trust (N,) f8:
    trust of the outgoing link of each; group (N,) i8; thin: use every n-th row; low, high: A floats,
    positions of walls; reach: distance from a wall within which a step may be reflected, and is then excluded
    along this axis. Added to products (G, ROWS, 6, A) f8: weights; products; squares of the last and of the
    earlier step (without shift and scaled to step scale 1; omitted at lag 0, where they equal the products);
    at lag 0, squares of observed steps; and the contribution of noise to the products, relative to that at
    step scale 1. For lags above 0, weights are the fourth power of the probabilities, except in the last row
    (again lag 1), where they are the probabilities. Improbable pairs are ignored.
    """
    # Tuples tell the compiler how many axes there are; whole numbers without a sign index without a check.
    rows, axes, sums = products.shape[1], np.uint64(len(low)), products.reshape(-1)
    lags = rows - 1
    step = np.empty(len(low))
    for e in range(len(row)):
        p = probability[e]
        if p <= _IMPROBABLE:
            continue
        i, j = row[e], col[e]
        if frame[j] != frame[i] + 1 or (thin > 1 and i % thin != 0):
            continue
        at, after, to = np.uint64(i) * axes, np.uint64(j) * axes, np.uint64(6 * rows * group[i]) * axes
        slower = ease[min(i, len(ease) - 1)]
        for k in range(axes):
            seen = position[after + k] - position[at + k]
            step[k] = (seen - shift[at + k]) * slower
            sums[to + k] += p
            sums[to + axes + k] += p * step[k] * step[k]
            sums[to + _FIVE * axes + k] += p * slower * slower
            sums[to + _FOUR * axes + k] += p * seen * seen
        weight, here = p**4, i
        while before[here] >= 0:
            b = before[here]
            lag = frame[i] - frame[b]
            sure = trust[b] * trust[b]
            weight *= sure * sure
            if lag >= lags or weight < _LIGHT:
                break
            if frame[here] - frame[b] > 1:  # of a step over a gap nothing is known frame by frame
                here = b
                continue
            begun, ended, half = np.uint64(b) * axes, np.uint64(here) * axes, (lag + 1) / 2
            to = np.uint64(6 * (rows * group[i] + lag)) * axes
            plain, then = p * trust[b] if lag == 1 else 0.0, ease[min(b, len(ease) - 1)]
            also = np.uint64(6 * (rows * group[i] + lags)) * axes
            for k in range(axes):
                middle, away = (position[after + k] + position[begun + k]) / 2, half * reach[k]
                if (middle - away < low[k]) | (middle + away > high[k]):
                    continue
                earlier = (position[ended + k] - position[begun + k] - shift[begun + k]) * then
                _add(sums, to + k, axes, weight, step[k], earlier, slower * then)
                if plain > 0:
                    _add(sums, also + k, axes, plain, step[k], earlier, slower * then)
            here = b


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _add(sums, to, axes, weight, step, earlier, noisy):  # pragma: no cover
    """Add one pair of steps."""
    sums[to] += weight
    sums[to + axes] += weight * step * earlier
    sums[to + _TWO * axes] += weight * step * step
    sums[to + _THREE * axes] += weight * earlier * earlier
    sums[to + _FIVE * axes] += weight * noisy


@njit(nogil=True, cache=True)
def groups_of(before, group):  # pragma: no cover
    """Give each track the group of its first detection: before (N,) i8 or -1. Written: group (N,) i8."""
    for i in range(len(before)):
        if before[i] >= 0:
            group[i] = group[before[i]]
