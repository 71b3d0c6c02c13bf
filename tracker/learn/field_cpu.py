"""CPU kernels of the field: predict a vector or a rate at a detection from its neighbours.

Each row is written independently, so no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def _solved_first(matrix, right):  # pragma: no cover
    """First row of the solution of matrix (A, A) times unknown = right (A, D), by elimination from below.

    Overwrites both; the matrix is symmetric and positive definite, and its lower half is read.
    """
    size, axes = right.shape
    for k in range(size - 1, 0, -1):
        pivot = 1 / matrix[k, k]
        for i in range(k):
            ratio = matrix[k, i] * pivot
            for j in range(i + 1):
                matrix[i, j] -= ratio * matrix[k, j]
            for d in range(axes):
                right[i, d] -= ratio * right[k, d]
    for d in range(axes):
        right[0, d] /= matrix[0, 0]


@njit(nogil=True, cache=True, error_model="numpy")
def surroundings(near, position, step, weight, inner, unit, predictor):  # pragma: no cover
    """Predict the vector at each row from those of its neighbours, by three predictors.

    near (N, M) i4, nearest first, -1 where there are no more; position (N, D), step (N, D), weight (N,) f8;
    unit, a tuple of D ones. Written: predictor (N, 3, D) f8: the mean of the `inner` nearest, the mean of
    all, and the value there of a linear function of the place that is fitted to all. A vector 0 of weight 1
    is added to each.
    """
    axes = len(unit)
    matrix, right = np.empty((axes + 1, axes + 1)), np.empty((axes + 1, axes))
    place = np.ones(axes + 1)
    for i in range(len(near)):
        many = 0
        while many < near.shape[1] and near[i, many] >= 0:
            many += 1
        right[:] = 0
        for a in range(axes + 1):
            for b in range(a + 1):
                matrix[a, b] = a == b
        for k in range(many):
            j = near[i, k]
            for d in range(axes):
                place[d + 1] = position[j, d] - position[i, d]
            for a in range(axes + 1):
                w = weight[j] * place[a]
                for b in range(a + 1):
                    matrix[a, b] += w * place[b]
                for d in range(axes):
                    right[a, d] += w * step[j, d]
            if k + 1 == min(inner, many):
                for d in range(axes):
                    predictor[i, 0, d] = right[0, d] / matrix[0, 0]
        for d in range(axes):
            predictor[i, 1, d] = right[0, d] / matrix[0, 0]
            predictor[i, 0, d] = predictor[i, 0, d] if many > 0 else 0.0
        _solved_first(matrix, right)
        for d in range(axes):
            predictor[i, 2, d] = right[0, d]


@njit(nogil=True, cache=True, error_model="numpy")
def pooled(near, weight, share, total, here):  # pragma: no cover
    """Write total (N,) f8, the sum of the weights of each row's neighbours, and here, weighted by share."""
    for i in range(len(near)):
        all_of_them, some = 0.0, 0.0
        for k in range(near.shape[1]):
            w = weight[near[i, k]]
            all_of_them += w
            some += w * share[near[i, k]]
        total[i], here[i] = all_of_them, some


@njit(nogil=True, cache=True, error_model="numpy")
def products_of(predictor, step, weight, products):  # pragma: no cover
    """Add to products (D, P + 1, P + 1) f8, of each axis, those of predictors (N, P, D) and steps (N, D)."""
    many = predictor.shape[1]
    row = np.empty(many + 1)
    for i in range(len(step)):
        if weight[i] > 0:
            for d in range(step.shape[1]):
                for a in range(many):
                    row[a] = predictor[i, a, d]
                row[many] = step[i, d]
                for a in range(many + 1):
                    for b in range(many + 1):
                        products[d, a, b] += weight[i] * row[a] * row[b]
