"""CPU kernels of the joint fit of amplitudes in the response.

Serial and without the GIL.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import kernel


@kernel
def between(values, position):  # pragma: no cover
    """Values (n,) f8 at positions (n, 3) in voxels: Lagrange polynomials through six voxels along an axis.

    Beyond the boundaries the image is mirrored, as a cosine transform has it.
    """
    out = np.zeros(len(position))
    weight, index = np.zeros((3, 6)), np.zeros((3, 6), np.int64)
    for i in range(len(position)):
        for axis in range(3):
            size = values.shape[axis]
            low = math.floor(position[i, axis]) - 2
            for a in range(6):
                w = 1.0 if size > 1 else (1.0 if a == 2 else 0.0)
                for b in range(6):
                    if b != a and size > 1:
                        w *= (position[i, axis] - low - b) / (a - b)
                k = (low + a) % (2 * size)
                weight[axis, a], index[axis, a] = w, k if k < size else 2 * size - 1 - k
        for a in range(6):
            for b in range(6):
                both = weight[0, a] * weight[1, b]
                if both != 0.0:
                    for c in range(6):
                        out[i] += both * weight[2, c] * values[index[0, a], index[1, b], index[2, c]]
    return out


@kernel
def sweep(indptr, indices, data, response, amplitude, most, sweeps):  # pragma: no cover
    """Amplitudes from 0 to `most` whose responses add up to the measured one, by Gauss-Seidel."""
    for _ in range(sweeps):
        for i in range(len(amplitude)):
            residual = response[i]
            for q in range(indptr[i], indptr[i + 1]):
                j = indices[q]
                if j != i:
                    residual -= data[q] * amplitude[j]
            amplitude[i] = min(max(residual, 0.0), most)


@kernel
def widening(indptr, indices, data, most, least, ridge):  # pragma: no cover
    """(n,): by how much the overlap with neighbours widens the error of each amplitude.

    1 / (1 - bᵀ B⁻¹ b), B the overlaps of the `most` nearest neighbours with each other and b with the spot.
    """
    n = len(indptr) - 1
    out = np.ones(n)
    near, own = np.empty(most, np.int64), np.empty(most)
    for i in range(n):
        m = 0
        for q in range(indptr[i], indptr[i + 1]):
            if indices[q] == i or abs(data[q]) < least:
                continue
            if m < most:
                near[m], own[m] = indices[q], data[q]
                m += 1
                continue
            w = np.argmin(np.abs(own))
            if abs(data[q]) > abs(own[w]):
                near[w], own[w] = indices[q], data[q]
        if m == 0:
            continue
        block = np.zeros((m, m))
        for r in range(m):
            block[r, r] = 1 + ridge
            for q in range(indptr[near[r]], indptr[near[r] + 1]):
                for c in range(m):
                    if c != r and near[c] == indices[q]:
                        block[r, c] = data[q]
        explained = np.sum(np.linalg.solve(block, own[:m]) * own[:m])
        out[i] = 1 / max(1 - explained, ridge)
    return np.sqrt(out)


@kernel
def mean_depths(values, size):  # pragma: no cover
    """Means of max(-value, 0) in blocks; those at the end may be smaller."""
    shape = values.shape
    out = np.zeros((-(-shape[0] // size[0]), -(-shape[1] // size[1]), -(-shape[2] // size[2])))
    count = np.zeros(out.shape)
    for z in range(shape[0]):
        for y in range(shape[1]):
            row, i, j = values[z, y], z // size[0], y // size[1]
            for k in range(out.shape[2]):
                low, top = k * size[2], min((k + 1) * size[2], shape[2])
                for x in range(low, top):
                    out[i, j, k] -= min(row[x], 0.0)
                count[i, j, k] += top - low
    return out / count
