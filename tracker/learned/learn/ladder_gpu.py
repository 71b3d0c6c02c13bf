"""Launches the GPU kernels of the mixture of step scales; same names and arguments as ladder_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module, to_device, to_host
from ...compute.cuda import cuda_function, launch
from ..model.segments_gpu import THREADS

_SOURCE = "learned/learn/ladder.cu"


def square_distances(position, expected, intervals, tail, head, square):
    """Write squared distances of heads from predicted positions of tails; see ladder_cpu."""
    xp, links = array_module(square), len(square)
    given = (np.int64(links), np.int32(position.shape[1]), xp.ascontiguousarray(position), expected)
    launch(cuda_function(_SOURCE, "square_distances"), links, (*given, intervals, tail, head, square))


def link_weights(square, prior, share, every, count, ratio):
    """Weights of pairs under a ladder of Gaussians; count (L,) is on the host. See ladder_cpu."""
    xp, scales = array_module(square), len(share)
    counts = xp.zeros((THREADS, scales))
    given = (np.int64(len(square)), square, prior, to_device(share), np.int32(every))
    function = cuda_function(_SOURCE, "link_weights", options=(f"-DSCALES={scales}",))
    launch(function, THREADS, (*given, np.int32(THREADS), counts, ratio))
    count[:] = to_host(counts.sum(axis=0)) * share * every
