"""CPU kernels of estimates: non-negative least squares with few unknowns, many at once; Gaussian balls.

Every kernel runs in one thread and releases the GIL; its result does not depend on threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

_SINGULAR = 1e-9  # share of the product of a matrix's diagonal below which its determinant is none
_SAME = 1e-12  # share of all squares by which none are fewer: of few lags several supports explain all


@njit(nogil=True, cache=True, error_model="numpy")
def least_squares(design, seen, best, least):  # pragma: no cover
    """Non-negative least squares: the unconstrained solutions on all supports are compared.

    Among equally good solutions, the first is taken.

    design (T, L, K), seen (L, A) f8. Written: best (T, K, A) f8 solutions, least (T, A) f8 their squares.
    """
    cases, lags, unknowns = design.shape
    gram, right = np.empty((unknowns, unknowns)), np.empty(unknowns)
    matrix, found, number = gram.copy(), right.copy(), np.empty(unknowns, np.int64)
    for t in range(cases):
        for m in range(unknowns):
            for n in range(unknowns):
                gram[m, n] = 0.0
                for lag in range(lags):
                    gram[m, n] += design[t, lag, m] * design[t, lag, n]
        for a in range(seen.shape[1]):
            best[t, :, a] = 0.0
            least[t, a] = 0.0
            for lag in range(lags):
                least[t, a] += seen[lag, a] ** 2
            same = _SAME * least[t, a]
            for m in range(unknowns):
                right[m] = 0.0
                for lag in range(lags):
                    right[m] += design[t, lag, m] * seen[lag, a]
            for support in range(1, 1 << unknowns):
                size = 0
                for m in range(unknowns):
                    if support >> m & 1:
                        number[size] = m
                        size += 1
                for m in range(size):
                    found[m] = right[number[m]]
                    for n in range(size):
                        matrix[m, n] = gram[number[m], number[n]]
                # Elimination without exchanges: the matrix is positive definite where it has a solution.
                scale, volume = 1.0, 1.0
                for m in range(size):
                    scale *= gram[number[m], number[m]]
                    volume *= matrix[m, m]
                    for n in range(m + 1, size):
                        share = matrix[n, m] / matrix[m, m]
                        found[n] -= share * found[m]
                        for k in range(m, size):
                            matrix[n, k] -= share * matrix[m, k]
                if not volume > _SINGULAR * scale:
                    continue
                positive = True
                for m in range(size - 1, -1, -1):
                    for n in range(m + 1, size):
                        found[m] -= matrix[m, n] * found[n]
                    found[m] /= matrix[m, m]
                    positive = positive and found[m] >= 0
                if not positive:
                    continue
                square = 0.0
                for lag in range(lags):
                    rest = seen[lag, a]
                    for m in range(size):
                        rest -= design[t, lag, number[m]] * found[m]
                    square += rest * rest
                if square < least[t, a] - same:
                    least[t, a] = square
                    best[t, :, a] = 0.0
                    for m in range(size):
                        best[t, number[m], a] = found[m]


@njit(nogil=True, cache=True)
def share_within(radius, axes, share):  # pragma: no cover
    """Probability that a Gaussian step is shorter than a radius.

    radius (M, N) f8 in standard deviations along one axis; axes i8: number of axes, 1 to 3.
    Written: share (M, N) f8.
    """
    for m in range(radius.shape[0]):
        for n in range(radius.shape[1]):
            r = radius[m, n]
            fallen = math.exp(-r * r / 2)
            if axes == 2:
                share[m, n] = 1 - fallen
            else:
                share[m, n] = math.erf(r / math.sqrt(2.0))
                if axes == 3:
                    share[m, n] -= math.sqrt(2 / math.pi) * r * fallen
