"""CPU kernel of `greedy`; it is serial, so its result does not depend on threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from ...compute.kernels import kernel


@kernel
def take_free_pairs(order, pair_row, pair_col, col_of_row, col_taken):  # pragma: no cover
    """Take each pair whose row and column are both free.

    order (K,) i8: pairs, best first; pair_row (P,) i8; pair_col (P,) i4. Written: col_of_row (R,) i4,
    initially -1; col_taken (C,) bool.
    """
    for p in order:
        i, j = pair_row[p], pair_col[p]
        if col_of_row[i] < 0 and not col_taken[j]:
            col_of_row[i] = j
            col_taken[j] = True
