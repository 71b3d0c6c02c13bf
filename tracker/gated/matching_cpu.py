"""CPU kernels of `match`, in NumPy; results do not depend on the order of threads."""

# mypy: ignore-errors
# The twin of matching_gpu.py, whose arrays have no type.
from __future__ import annotations

import numpy as np


def round_costs(distance2, power, unit):
    """Distances to a power in integer units, (P,) i4, of squared distances (P,) f8, which are overwritten."""
    costs = distance2 if power == 2 else np.sqrt(distance2)
    np.rint(np.divide(costs, unit, out=costs), out=costs)
    return costs.astype(np.int32)


def pairs_as_given(source, target, row_order, col_order, col_of_row, margin, power, unit):
    """Convert a matching of sorted points to row numbers of the points in their original order.

    source (R, 3), target (C, 3) f8; row_order, col_of_row (R,), col_order (C,) i4; margin (R,) i8. Returns
    of each pair, by source, rows of source and target (M,) i8, its cost and its margin times unit (M,) f8.
    """
    target_of = np.empty(len(col_of_row), np.int64)
    target_of[row_order] = np.append(col_order, -1)[col_of_row]
    margin_of = np.empty_like(margin)
    margin_of[row_order] = margin
    rows = np.nonzero(target_of >= 0)[0]
    z, y, x = (source[rows] - target[target_of[rows]]).T
    distance2 = z * z + y * y + x * x
    cost = distance2 if power == 2 else np.sqrt(distance2)
    return rows, target_of[rows], cost, margin_of[rows].astype(np.float64) * unit
