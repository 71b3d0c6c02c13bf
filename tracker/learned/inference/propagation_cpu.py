"""CPU kernel of belief propagation: weights of the competitors of a link in its row or column.

Each segment writes only the values of its own links, and reads values that the other side wrote in the
previous half round; so no result depends on the order of threads. Segments in which nothing moved stay.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ...compute.kernels import kernel
from ...compute.tolerances import NEGLIGIBLE
from .powers_cpu import exp2, log2


@kernel(error_model="numpy")
def by_head(head, start, link):  # pragma: no cover
    """Write the links of each head in their order: start (N + 1,) i8, link (E,) i4; head (E,) i4."""
    start[:] = 0
    for f in range(len(head)):
        start[head[f] + 1] += 1
    for j in range(len(start) - 1):
        start[j + 1] += start[j]
    for f in range(len(head)):
        link[start[head[f]]] = f
        start[head[f]] += 1
    for j in range(len(start) - 1, 0, -1):
        start[j] = start[j - 1]
    start[0] = 0


@kernel(error_model="numpy")
def begin(start, link, n, R, moved):  # pragma: no cover
    """Write the competitors of links that are alone in their segment; returns the other segments (S,) i4.

    start (N + 1,) i8 and link (E,) i4 are the segments; n (N,) f8 the weight of no link to the power
    1 / omega. Written: R (E,) f8, and moved (E,) u1, 0 of those alone.
    """
    contested = 0
    for i in range(len(n)):
        contested += start[i + 1] - start[i] > 1
    some, k = np.empty(contested, np.int32), 0
    for i in range(len(n)):
        if start[i + 1] - start[i] == 1:
            R[link[start[i]]], moved[link[start[i]]] = n[i], 0
        elif start[i + 1] - start[i] > 1:
            some[k] = i
            k += 1
    return some


@kernel(error_model="numpy")
def compete(first, last, some, start, link, G, n, R, C, omega, moved, seen):  # pragma: no cover
    """One half round over segments some[first:last]; returns how many links moved.

    some (S,) i4, start (N + 1,) i8 and link (E,) i4 are the segments; G (E,) f8 the likelihood ratios; n
    (N,) f8 the weight of no link to the power 1 / omega; C (E,) f8 what competes in the segments of the other
    side; seen (E,) u1 whether C moved in the last half round. Written: R (E,), and moved (E,) u1 likewise.
    """
    moves, most = 0, 0
    for k in range(first, last):
        most = max(most, start[some[k] + 1] - start[some[k]])
    pull = np.empty(most)
    for k in range(first, last):
        i = some[k]
        total, begin, end = n[i], start[i], start[i + 1]
        still = True
        for p in range(begin, end):
            still = still and not (moved[link[p]] or seen[link[p]])
        if still:
            continue
        for p in range(begin, end):
            f = link[p]
            pull[p - begin] = G[f] / C[f] * exp2((1 - omega) * log2(R[f] * C[f]))
            total += pull[p - begin]
        for p in range(begin, end):
            f = link[p]
            new = max(total - pull[p - begin], n[i])
            moved[f] = pull[p - begin] > NEGLIGIBLE * total and abs(new - R[f]) > NEGLIGIBLE * new
            moves += moved[f]
            R[f] = new
    return moves
