"""Launches the GPU kernels of the field; same names and arguments as field_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ...compute.arrays import array_module, to_host
from ...compute.cuda import cuda_function, launch
from ..model.segments_gpu import THREADS


def _kernel(name, step):
    return cuda_function("learned/learn/field.cu", name, options=(f"-DAXES={step.shape[1]}",))


def surroundings(first, last, near, position, step, weight, inner, predictor):
    """Predict the vector at rows first:last by three predictors of (N, 4, D); see field_cpu.surroundings."""
    given = (np.int64(first), np.int64(last), np.int32(near.shape[1]), near, position, step, weight)
    launch(_kernel("surroundings", step), last - first, (*given, np.int32(inner), predictor), block=128)


def products_of(predictor, step, weight, products):
    """Add to products (D, P + 1, P + 1) on the host; see field_cpu.products_of."""
    table = array_module(step).empty((THREADS, *products.shape))
    given = (np.int64(len(step)), predictor, step, weight, np.int32(THREADS), table)
    launch(_kernel("products_of", step), THREADS, given, block=64)
    products += to_host(table.sum(axis=0))


def mean_steps(first, last, position, links, probability, least, step, weight):
    """Write the mean displacement to the next frame, and its probability; see field_cpu.mean_steps."""
    place = array_module(position).ascontiguousarray(position)
    given = (np.int64(first), np.int64(last), place, *links, probability, np.float64(least), step, weight)
    launch(_kernel("mean_steps", step), last - first, given)
