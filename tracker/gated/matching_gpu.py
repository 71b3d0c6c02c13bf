"""Launches the GPU kernels of match; same names and arguments as matching_cpu.py."""

# mypy: ignore-errors
# CuPy is known to compute/arrays.py alone, so its arrays have no type here.
from __future__ import annotations

import numpy as np

from ..compute.arrays import array_module
from ..compute.cuda import cuda_function, launch

_SOURCE = "gated/matching.cu"


def round_costs(distance2, power, unit):
    """Distances to a power in integer units, (P,) i4, of squared distances (P,) f8."""
    cost = array_module(distance2).empty(len(distance2), np.int32)
    arguments = (distance2, np.int64(len(cost)), np.int32(power == 2), np.float64(unit), cost)
    launch(cuda_function(_SOURCE, "round_costs"), len(cost), arguments)
    return cost


def pairs_as_given(source, target, row_order, col_order, col_of_row, margin, power, unit):
    """The matching of sorted points as one of the points as they were given; see matching_cpu."""
    xp = array_module(source)
    rows = len(source)
    found, place = xp.zeros(1, np.int64) if rows == 0 else xp.empty(rows + 1, np.int64), None
    target_of, given_margin = xp.empty(rows, np.int32), xp.empty(rows, np.int64)
    orders = (row_order, col_order, xp.asarray(col_of_row), xp.asarray(margin), np.int64(rows))
    launch(cuda_function(_SOURCE, "put_back"), rows, (*orders, target_of, given_margin, found))
    place = xp.cumsum(found)
    count = int(place[-1])
    pairs = [xp.empty(count, kind) for kind in (np.int64, np.int64, np.float64, np.float64)]
    points = (xp.ascontiguousarray(source), xp.ascontiguousarray(target))
    kind = (np.int64(rows), np.int32(power == 2), np.float64(unit))
    launch(
        cuda_function(_SOURCE, "gather_pairs"), rows, (*points, target_of, given_margin, place, *kind, *pairs)
    )
    return pairs
