"""CPU kernels of the background: sums over blocks, and interpolation between them.

Serial and without the GIL; each call writes separate blocks or rows.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def block_sums(values, keep, block, weight, total):  # pragma: no cover
    """Counts and sums, over blocks of each plane, of the voxels that are finite and kept.

    values (Z, y, X) f4; keep (Z, y, X) bool; block: rows, columns; written: weight, total (Z, b, c) f8.
    """
    for z in range(values.shape[0]):
        for y in range(values.shape[1]):
            row = y // block[0]
            for x in range(values.shape[2]):
                v = values[z, y, x]
                if keep[z, y, x] and math.isfinite(v):
                    weight[z, row, x // block[1]] += 1.0
                    total[z, row, x // block[1]] += v


@njit(nogil=True, cache=True)
def spread(grid, y_index, y_share, x_index, x_share, out):  # pragma: no cover
    """Linear interpolation of a coarse grid (Z, b, c) f8, and extrapolation beyond its outer centres.

    y_index (y,) i8, y_share (y,) f8: block before each row, and how far on it is; x alike; out (Z, y, X) f4.
    """
    rows, columns = grid.shape[1], grid.shape[2]
    line = np.zeros(columns)
    for z in range(out.shape[0]):
        for y in range(out.shape[1]):
            a, u = y_index[y], y_share[y]
            b = min(a + 1, rows - 1)
            for k in range(columns):
                line[k] = grid[z, a, k] + u * (grid[z, b, k] - grid[z, a, k])
            for x in range(out.shape[2]):
                k = x_index[x]
                out[z, y, x] = line[k] + x_share[x] * (line[min(k + 1, columns - 1)] - line[k])
