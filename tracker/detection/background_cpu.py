"""CPU kernels of the background: sums over blocks, and interpolation between their centres.

Serial and without the GIL; each call writes its own arrays or rows.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def block_sums(values, gauge, most, edges_y, edges_x, sums):  # pragma: no cover
    """Add up, over blocks of each plane, the voxels at which a gauge is below `most`.

    values, gauge (Z, y, X) f4, NaN where nothing was measured; edges_y (b+1,), edges_x (c+1,) i8: the first
    row, column of each block; written: sums (4, Z, b, c) f4, counts, values, and offsets from the middle of
    the block along y and x.
    """
    columns = len(edges_x) - 1
    for z in range(values.shape[0]):
        for b in range(len(edges_y) - 1):
            middle = 0.5 * (edges_y[b] + edges_y[b + 1] - 1)
            for y in range(edges_y[b], edges_y[b + 1]):
                for c in range(columns):
                    count, total, along = np.float32(0), np.float32(0), np.float32(0)
                    for x in range(edges_x[c], edges_x[c + 1]):
                        v = values[z, y, x]
                        if gauge[z, y, x] < most and v == v:
                            count += np.float32(1)
                            total += v
                            along += np.float32(x)
                    sums[0, z, b, c] += count
                    sums[1, z, b, c] += total
                    sums[2, z, b, c] += count * np.float32(y - middle)
                    sums[3, z, b, c] += along - count * np.float32(0.5 * (edges_x[c] + edges_x[c + 1] - 1))


@njit(nogil=True, cache=True)
def spread(grid, y_index, y_share, x_index, x_share, out):  # pragma: no cover
    """Add the linear interpolation of a coarse grid (Z, b, c) f4, and its extrapolation beyond outer centres.

    y_index (y,) i8, y_share (y,) f4: block before each row, and how far on it is; x alike; out (Z, y, X) f4.
    """
    rows, columns = grid.shape[1], grid.shape[2]
    line, rise = np.zeros(columns, np.float32), np.zeros(columns, np.float32)
    for z in range(out.shape[0]):
        for y in range(out.shape[1]):
            a, u = y_index[y], y_share[y]
            b = min(a + 1, rows - 1)
            for k in range(columns):
                line[k] = grid[z, a, k] + u * (grid[z, b, k] - grid[z, a, k])
            for k in range(columns - 1):
                rise[k] = line[k + 1] - line[k]
            for x in range(out.shape[2]):
                k = x_index[x]
                out[z, y, x] += line[k] + x_share[x] * rise[k]
