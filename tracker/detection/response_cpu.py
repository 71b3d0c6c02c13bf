"""CPU kernels of the filters: correlation along an axis, with zeros beyond the borders.

Serial and without the GIL; each call writes a separate array.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit

_QUICK = {"contract", "reassoc", "nsz"}  # sums in any order; values that are not finite stay so


@njit(nogil=True, cache=True, fastmath=_QUICK)
def along(values, taps, out, first):  # pragma: no cover
    """Correlate along the middle axis: values (k, n, m), out (k, n', m) from row `first` on, taps (2r+1,)."""
    reach, size = len(taps) // 2, values.shape[1]
    for k in range(values.shape[0]):
        for i in range(first, first + out.shape[1]):
            row = out[k, i - first]
            row[:] = 0
            t, last = max(0, i - reach), min(size, i + reach + 1)
            while t + 4 <= last:  # four at once: each sum is read and written a quarter as often
                u = t - i + reach
                a, b, c, d = taps[u], taps[u + 1], taps[u + 2], taps[u + 3]
                p, q, r, s = values[k, t], values[k, t + 1], values[k, t + 2], values[k, t + 3]
                for x in range(len(row)):
                    row[x] += a * p[x] + b * q[x] + c * r[x] + d * s[x]
                t += 4
            while t < last:
                a, p = taps[t - i + reach], values[k, t]
                for x in range(len(row)):
                    row[x] += a * p[x]
                t += 1


@njit(nogil=True, cache=True, fastmath=_QUICK)
def along_rows(values, taps, out):  # pragma: no cover
    """Correlate along the last axis: values, out (k, m) and taps (2r+1,), f4 or f8."""
    reach, size = len(taps) // 2, values.shape[1]
    padded = np.zeros(size + 2 * reach, values.dtype)
    for k in range(values.shape[0]):
        padded[reach : reach + size] = values[k]
        row = out[k]
        row[:] = 0
        for t in range(2 * reach + 1):
            weight = taps[t]
            for x in range(size):
                row[x] += weight * padded[x + t]
