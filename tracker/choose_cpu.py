"""CPU kernels of the final choice. Serial, without the GIL; no result depends on the order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_MOST = 40.0  # log odds from which on all are alike, and squares of odds still are numbers
_FREE = np.float32(0.02)  # how free a column is, to begin with: few are, and rounds that began at 1 were slow


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"nnan", "ninf", "nsz", "arcp", "contract"})
def fractional_probabilities(indptr, indices, columns, gain, rounds, probability):  # pragma: no cover
    """Fractional belief propagation over all matchings, each as likely as the exp of its gains.

    As pair_probabilities (motion_cpu), but a quarter of each message is what the pair itself would hear.
    In single precision, which halves the time.
    indptr (R+1,) i8, indices (P,) i4 pairs, columns their number; gain (P,) f8; rounds.
    Written: probability (P,) f8 that each pair is in the matching; those of a row are at most 1 together.
    """
    pairs, one = len(indices), np.float32(1.0)
    odds, to_col = np.empty(pairs, np.float32), np.empty(pairs, np.float32)
    to_row, total = np.full(pairs, _FREE), np.empty(columns, np.float32)
    for e in range(pairs):
        odds[e] = math.exp(min(gain[e], _MOST))
    for _ in range(rounds):
        for i in range(len(indptr) - 1):
            whole = one
            for e in range(indptr[i], indptr[i + 1]):
                whole += odds[e] * to_row[e]
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
    for i in range(len(indptr) - 1):
        whole = one
        for e in range(indptr[i], indptr[i + 1]):
            whole += odds[e] * to_row[e]
        for e in range(indptr[i], indptr[i + 1]):
            probability[e] = odds[e] * to_row[e] / whole
