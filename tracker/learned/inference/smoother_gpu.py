"""Launches the GPU kernels of the smoother; same names and arguments as smoother_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module
from ...compute.cuda import launch
from .filter_gpu import kernel, packed

_SOURCE = "learned/inference/smoother.cu"


def future_as_observations(first, last, steps, messages, factor):
    """Replace the states of backward messages by observations; see smoother_cpu."""
    function, (motion, _) = kernel(_SOURCE, "future_as_observations", steps), packed(steps)
    given = (np.int64(first), np.int64(last), motion, messages.weight, messages.state, factor)
    launch(function, (last - first) * factor.shape[1], given)


def smooth_rows(first, last, steps, places, behind, ahead, past, future, factor, G, moments):
    """Write the likelihood ratios of links; see smoother_cpu.smooth_rows. The CPU alone computes moments."""
    assert not len(moments.residual)
    xp = array_module(G)
    links = behind.out_start[xp.asarray([first, last])].tolist()
    given = places.when, places.away, places.prior, places.exclusion, places.lag
    sides = behind.in_start, behind.in_link, behind.near, behind.far, ahead.in_start, ahead.in_link
    earlier = past.likelihood, past.weight, past.state, past.fresh
    after = future.likelihood, future.weight, future.state, future.fresh, factor
    given = (*map(np.int64, links), *packed(steps), *given, *sides, *earlier, *after, G)
    launch(kernel(_SOURCE, "smooth_rows", steps), links[1] - links[0], given, block=128)
