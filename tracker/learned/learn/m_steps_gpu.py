"""Launches the GPU kernel of the M-step; same name and arguments as m_steps_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module, to_device, to_host
from ...compute.cuda import cuda_function, launch
from ..model.segments_gpu import THREADS, summed


def add_moments(moments, p, once, tail, group, begins, renews, interval, inverse, to):
    """Add the moments of links to sums on the host, whose groups are G; see m_steps_cpu.add_moments."""
    xp, (groups, classes, _), axes = array_module(p), to[0].shape, to[2].shape[1]
    shapes = (3 * classes, 4 * classes * axes, axes, 1)
    table, square = xp.zeros((groups, sum(shapes), THREADS)), xp.empty(len(p))
    given = (np.int64(len(p)), *moments, p, once, tail, group, begins, to_device(renews), to_device(inverse))
    options = f"-DCLASSES={classes}", f"-DAXES={axes}"
    given = (*given, np.int32(THREADS), table, square)
    launch(
        cuda_function("learned/learn/m_steps.cu", "add_moments", options=options), THREADS, given, block=64
    )
    ends = np.cumsum(shapes)[:-1]
    for written, sums in zip(to, np.split(to_host(table.sum(axis=2)), ends, axis=1), strict=False):
        written[...] += sums.reshape(written.shape)
    weight, when = xp.where(once, p, 0.0), interval[tail]
    for k in range(3):
        to[4][:, k] += to_host(summed(when, weight * square**k, len(to[4])))
