"""CPU kernels of the mixture of step scales, fitted to pairs as a Poisson process."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from ...compute.kernels import kernel
from ..inference.filter_cpu import FARTHEST
from ..inference.powers_cpu import gauss


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
    scales = len(share)
    count[:] = 0
    for f in range(0, len(square), every):
        first = gauss(min(square[f], FARTHEST))
        value, mixed = first, share[0] * first
        for k in range(1, scales):  # half the variance is the square
            value = value * value
            mixed += share[k] * value
        r = prior[f] * mixed
        if every == 1:
            ratio[f] = r
        each, value = prior[f] / (1 + r), first
        count[0] += each * value
        for k in range(1, scales):
            value = value * value
            count[k] += each * value
    for k in range(scales):
        count[k] *= share[k] * every
