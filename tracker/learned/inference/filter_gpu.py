"""Launches the GPU kernels of the filters; same names and arguments as filter_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module, to_device, to_host
from ...compute.cuda import cuda_function, launch

_SOURCE = "learned/inference/filter.cu"


def kernel(source, name, steps):
    """A kernel compiled for the number of classes and axes."""
    classes, axes = steps.variance.shape
    return cuda_function(source, name, options=(f"-DCLASSES={classes}", f"-DAXES={axes}"))


def packed(steps):
    """The parameters as `Motion` in motion.cuh has them, and the scales of intervals."""
    rates = steps.correlation, steps.share, steps.renewal, steps.entry, steps.noise
    both = np.concatenate([steps.variance.ravel(), *rates]), np.ascontiguousarray(steps.step_scale)
    return tuple(map(to_device, both))


def prepare_links(first, last, links, delay, survival, density, competing, omega, *made):
    """Write what a sweep needs of links; see filter_cpu.prepare_links."""
    given = (*links, to_device(delay), *survival, density, *competing, np.float64(omega), *made)
    function = cuda_function(_SOURCE, "prepare_links", options=("-DCLASSES=1", "-DAXES=1"))
    launch(function, last - first, (np.int64(first), np.int64(last), *given))


def filter_rows(blocks, steps, places, side, messages):
    """One sweep in one direction, a launch for each frame; see filter_cpu.filter_rows."""
    motion, scale = packed(steps)
    incoming, mixed = (side.in_start, side.in_link), (side.competing, side.n)
    sides = *incoming, side.out_link, side.near, np.int32(side.way), *mixed
    spans = to_host(side.out_start[array_module(side.n).asarray(blocks)]).tolist()
    filters = kernel(_SOURCE, "filter_rows", steps)
    movie = places.when, places.lag, places.away, places.prior, motion, scale
    written = messages.likelihood, messages.state
    for begin, end in spans:
        span = np.int64(begin), np.int64(end)
        launch(filters, end - begin, (*span, *sides, *movie, *written), block=128)
    written = messages.likelihood, messages.weight, messages.fresh, messages.total
    count = len(side.n)
    launch(kernel(_SOURCE, "normalise", steps), count, (np.int64(count), *incoming, *mixed, *written))
