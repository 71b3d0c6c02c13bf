"""CPU kernels of drift: histograms of the displacements of pairs, and medians.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def count_votes(indptr, indices, row, col, axes, fine, votes):  # pragma: no cover
    """Make a histogram of the displacements of pairs.

    indptr (R+1,) i8, indices (P,) i4: pairs; row (3, R), col (3, C) f8: positions, with the varying axes
    first; axes i8: number of these; fine f8: bins per unit. Added to votes (bins^A,) f8, with the first axis
    slowest; zero displacement is in the middle.
    """
    bins = round(len(votes) ** (1 / axes))
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            place = 0
            for k in range(axes):
                way = np.floor((col[k, indices[e]] - row[k, i]) * fine + bins / 2)
                place = place * bins + int(min(max(way, 0.0), bins - 1.0))
            votes[place] += 1


@njit(nogil=True, cache=True)
def medians(values, ends, median):  # pragma: no cover
    """Medians of runs of values (N,) f8; run k is values[ends[k] : ends[k + 1]]; ends (K+1,) i8.

    No run is empty. Written: median (K,) f8.
    """
    for k in range(len(ends) - 1):
        median[k] = np.median(values[ends[k] : ends[k + 1]])
