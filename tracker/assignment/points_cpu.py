"""CPU kernels of `points`; each call works on separate rows or pairs, so no result depends on threads.

Shapes: source (R,D) f8, by_axis (D,C) f8: the targets axis by axis; squared: whether to omit the root.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..compute.kernels import kernel


@kernel
def distances(source, by_axis, squared, costs, first, last):  # pragma: no cover
    """Distances of a block of rows to all targets. Written: costs (R,C) f8."""
    for i in range(first, last):
        row = costs[i]
        row[:] = 0.0
        for axis in range(len(by_axis)):
            x, axis_of_target = source[i, axis], by_axis[axis]
            for j in range(len(row)):
                row[j] += (x - axis_of_target[j]) * (x - axis_of_target[j])
        if not squared:
            for j in range(len(row)):
                row[j] = np.sqrt(row[j])


@kernel
def pairs(source, by_axis, squared, rows, cols, costs, first, last):  # pragma: no cover
    """Distances of pairs rows (P,), cols (P,), bit-identical to `distances`. Written: costs (P,) f8."""
    for p in range(first, last):
        distance = 0.0
        for axis in range(len(by_axis)):
            difference = source[rows[p], axis] - by_axis[axis, cols[p]]
            distance += difference * difference
        costs[p] = distance if squared else np.sqrt(distance)
