"""Launches the GPU kernel of mean steps; same name and arguments as in field_cpu.py."""

# mypy: ignore-errors
# CuPy is known to _arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from .._arrays import array_module
from .._cuda import cuda_function, launch


def mean_steps(first, last, position, links, probability, least, step, weight):
    """Write the mean displacement to the next frame, and its probability; see field_cpu.mean_steps."""
    axes, place = position.shape[1], array_module(position).ascontiguousarray(position)
    given = (np.int64(first), np.int64(last), np.int32(axes), place, *links, probability, np.float64(least))
    launch(cuda_function("learn/first.cu", "mean_steps"), last - first, (*given, step, weight))
