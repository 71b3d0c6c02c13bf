"""CPU kernels of the mixture of step scales, fitted to pairs as a Poisson process."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ...compute.kernels import kernel
from ..inference.filter_cpu import FARTHEST
from ..inference.powers_cpu import gauss

_BLOCK = 64  # guard: pairs that are computed side by side


@kernel(error_model="numpy")
def square_distances(position, expected, intervals, tail, head, square):  # pragma: no cover
    """Write square (E,) f8, squared distances of heads from predicted positions, by interval of tails."""
    for f in range(len(tail)):
        total = 0.0
        for d in range(position.shape[1]):
            u = position[head[f], d] - expected[tail[f], d]
            total += u * u
        square[f] = total / intervals[tail[f]]


@kernel(error_model="numpy")
def link_weights(square, prior, share, every, count, ratio):  # pragma: no cover
    """Weights of pairs under a ladder of Gaussians, each of half the variance of the one before.

    The first variance is 1. square (E,) f8; prior (E,) f8, the weight of a link over the density; share (L,)
    f8, of each scale times its norm. Of every so many pairs count (L,) f8 is written, the expected links
    of each scale; of all pairs ratio (E,) f8, the likelihood ratio, if `every` is 1.
    """
    scales, pairs = len(share), (len(square) + every - 1) // every
    value, mixed, each = np.empty((scales, _BLOCK)), np.empty(_BLOCK), np.empty(_BLOCK)
    count[:] = 0
    for begin in range(0, pairs, _BLOCK):
        many = min(_BLOCK, pairs - begin)
        for p in range(many):
            f = (begin + p) * every
            value[0, p], each[p] = gauss(min(square[f], FARTHEST)), prior[f]
            mixed[p] = share[0] * value[0, p]
        for k in range(1, scales):
            for p in range(many):  # half the variance is the square
                value[k, p] = value[k - 1, p] * value[k - 1, p]
                mixed[p] += share[k] * value[k, p]
        for p in range(many):
            r = each[p] * mixed[p]
            if every == 1:
                ratio[begin + p] = r
            each[p] /= 1 + r
        for k in range(scales):
            total = count[k]
            for p in range(many):
                total += each[p] * value[k, p]
            count[k] = total
    for k in range(scales):
        count[k] *= share[k] * every
