"""CPU kernels of the field: predict a vector or a rate at a detection from its neighbours.

Each row is written independently, so no result depends on the order of threads.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import numpy as np

from ...compute.kernels import inner_kernel, kernel


@inner_kernel(error_model="numpy", forceinline=True)
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


@inner_kernel(error_model="numpy", forceinline=True)
def _dot(one, a, other, b, count, total):  # pragma: no cover
    """The total with the products of the first `count` numbers of row a and row b."""
    for k in range(count):
        total += one[a, k] * other[b, k]
    return total


@kernel(error_model="numpy")
def surroundings(first, last, near, position, step, weight, inner, predictor):  # pragma: no cover
    """Predict the vector at rows first:last from those of their neighbours, by three predictors.

    near (N, M) i4, nearest first, -1 where there are no more; position (N, D), step (N, D), weight (N,) f8.
    Written: predictor (N, 3, D) f8: the mean of the `inner` nearest, the mean of all, and the value there of
    a linear function of the place that is fitted to all. A vector 0 of weight 1 is added to each.
    """
    axes, room = step.shape[1], near.shape[1]
    matrix, right = np.empty((axes + 1, axes + 1)), np.empty((axes + 1, axes))
    # Sums are of neighbours side by side in memory, each in a register.
    place, weighted, of = np.ones((axes + 1, room)), np.empty((axes + 1, room)), np.empty((axes, room))
    for i in range(first, last):
        many = 0
        while many < room and near[i, many] >= 0:
            j = near[i, many]
            for d in range(axes):
                place[d + 1, many], of[d, many] = position[j, d] - position[i, d], step[j, d]
            for a in range(axes + 1):
                weighted[a, many] = weight[j] * place[a, many]
            many += 1
        for a in range(axes + 1):
            for b in range(a + 1):
                matrix[a, b] = _dot(weighted, a, place, b, many, np.float64(a == b))
            for d in range(axes):
                right[a, d] = _dot(weighted, a, of, d, many, 0.0)
        few, total = min(inner, many), _dot(weighted, 0, place, 0, min(inner, many), 1.0)
        for d in range(axes):
            predictor[i, 0, d] = _dot(weighted, 0, of, d, few, 0.0) / total
            predictor[i, 1, d] = right[0, d] / matrix[0, 0]
        _solved_first(matrix, right)
        for d in range(axes):
            predictor[i, 2, d] = right[0, d]


@kernel(error_model="numpy")
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


@kernel(error_model="numpy")
def mean_steps(first, last, position, links, probability, least, step, weight):  # pragma: no cover
    """Of rows first:last write step (N, D) f8, the mean displacement to the next frame, and its probability.

    links is of head and lag (E,) i4 and row_start (N + 1,) i8; written is also weight (N,) f8, of which less
    than `least` counts as that.
    """
    head, lag, row_start = links
    for i in range(first, last):
        total = 0.0
        step[i] = 0
        for f in range(row_start[i], row_start[i + 1]):
            if lag[f] == 1:
                total += probability[f]
                for d in range(step.shape[1]):
                    step[i, d] += probability[f] * (position[head[f], d] - position[i, d])
        weight[i] = total
        for d in range(step.shape[1]):
            step[i, d] /= max(total, least)
