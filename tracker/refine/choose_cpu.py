"""CPU kernels of the final choice of links: fractional belief propagation.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_FREE = np.float32(0.02)  # how free a column is, to begin with: few are, and rounds that began at 1 were slow


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"nnan", "ninf", "nsz", "arcp", "contract"})
def fractional_probabilities(indptr, indices, columns, odds, rounds, still, probability):  # pragma: no cover
    """Fractional belief propagation over all matchings, weighted by the product of their odds.

    Like pair_probabilities (weigh_cpu), but with fractional messages.
    In single precision, which halves the time.
    indptr (R+1,) u8, indices (P,) u4 pairs, columns their number; odds (P,) f4; at most so many rounds, fewer
    once the probabilities of rows to have no link change by less than the share still, in the mean.
    Written: probability (P,) f8 that each pair is in the matching; those of a row are at most 1 together.
    """
    pairs, one = len(indices), np.float32(1.0)
    to_col, to_row = np.empty(pairs, np.float32), np.full(pairs, _FREE)
    total, before = np.empty(columns, np.float32), np.ones(len(indptr) - 1, np.float32)
    for _ in range(rounds):
        change, rows = 0.0, 0
        for i in range(len(indptr) - 1):
            if indptr[i] == indptr[i + 1]:
                continue
            whole = one
            for e in range(indptr[i], indptr[i + 1]):
                whole += odds[e] * to_row[e]
            change += abs(whole - before[i]) / max(whole, before[i])
            before[i] = whole
            rows += 1
            for e in range(indptr[i], indptr[i + 1]):
                rest = max(whole - odds[e] * to_row[e], one)
                # rest^(3/4) whole^(1/4): without the second this is belief propagation.
                to_col[e] = odds[e] / math.sqrt(rest * math.sqrt(rest * whole))
        total[:] = one
        for e in range(pairs):
            total[indices[e]] += to_col[e]
        for e in range(pairs):
            whole = total[indices[e]]
            rest = max(whole - to_col[e], one)
            to_row[e] = one / math.sqrt(rest * math.sqrt(rest * whole))
        if change <= still * rows:
            break
    for i in range(len(indptr) - 1):
        whole = one
        for e in range(indptr[i], indptr[i + 1]):
            whole += odds[e] * to_row[e]
        for e in range(indptr[i], indptr[i + 1]):
            probability[e] = odds[e] * to_row[e] / whole
