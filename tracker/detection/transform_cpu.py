"""CPU kernel of cosine transforms along a short axis. Serial and without the GIL."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ..compute.kernels import inner_kernel, kernel

_COLUMNS = 512
"""Guard: columns that are transformed before the next, so that they stay in the processor's cache."""


@inner_kernel
def add_rows(weight, rows, low, first, into):  # pragma: no cover
    """Add every second row from the first, times its weight, from a column on; four at a time."""
    zero = np.float32(0)
    for i in range(first, len(rows), 8):
        a, b, c, d = i, i + 2, i + 4, i + 6
        s, t = weight[a], weight[b] if b < len(rows) else zero
        u, v = weight[c] if c < len(rows) else zero, weight[d] if d < len(rows) else zero
        stop = low + len(into)
        x, y = rows[a, low:stop], rows[b if b < len(rows) else a, low:stop]
        z, w = rows[c if c < len(rows) else a, low:stop], rows[d if d < len(rows) else a, low:stop]
        for j in range(len(into)):
            into[j] += s * x[j] + t * y[j] + u * z[j] + v * w[j]


@kernel
def cosines(matrix, rows, back):  # pragma: no cover
    """The product (k, m) f4 of cosines (k, n) f4 and rows (n, m) f4, or (n, m) of their transpose and (k, m).

    Even rows of the cosines are symmetric, odd ones antisymmetric, so half of the products suffice.
    """
    (k, n), m = matrix.shape, rows.shape[1]
    out, half = np.zeros((n if back else k, m), np.float32), (n + 1) // 2
    folded, sums = np.zeros((2 * half, _COLUMNS), np.float32), np.zeros((2, _COLUMNS), np.float32)
    weight = np.zeros((k, 2 * half), np.float32)
    for i in range(half):
        weight[::2, 2 * i], weight[1::2, 2 * i + 1] = matrix[::2, i], matrix[1::2, i]
        if 2 * i == n - 1 and not back:
            weight[:, 2 * i] /= 2
    for low in range(0, m, _COLUMNS):
        stop = min(low + _COLUMNS, m)
        width = stop - low
        if not back:
            for i in range(half):
                first, last, both, less = (
                    rows[i, low:stop],
                    rows[n - 1 - i, low:stop],
                    folded[2 * i],
                    folded[2 * i + 1],
                )
                for j in range(width):
                    both[j], less[j] = first[j] + last[j], first[j] - last[j]
            for i in range(k):
                add_rows(weight[i], folded, 0, i % 2, out[i, low:stop])
        else:
            for i in range(half):
                both, less = sums[0, :width], sums[1, :width]
                both[:] = 0
                less[:] = 0
                column = matrix[:, i].copy()
                add_rows(column, rows, low, 0, both)
                add_rows(column, rows, low, 1, less)
                first, last = out[i, low:stop], out[n - 1 - i, low:stop]
                for j in range(width):
                    last[j] = both[j] - less[j]
                for j in range(width):
                    first[j] = both[j] + less[j]
    return out
