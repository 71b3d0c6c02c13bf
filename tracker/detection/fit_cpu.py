"""CPU kernel of the last fit: positions, amplitudes, levels and sizes of spots in grey values, one by one.

Each spot is A exp(-Σ (x - c)² / 2 e^{2s} σ²) + level, with one s for the plane and one for z, on a given
background besides the light of all others; Gauss-Newton steps with the variance base + slope · model as
weights (Fisher scoring for Poisson light). Serial and without the GIL.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import inner_kernel, kernel

PARAMETERS = 7
Z, Y, X, AMPLITUDE, LEVEL, SIZE, DEPTH = range(PARAMETERS)
"""Columns of a spot: voxels, grey values, logarithms of its widths over the common ones."""
ERROR_SIZE, ERROR_DEPTH, MISFIT = range(X + 1, X + 4)
"""Columns of errors after those of z, y, x: standard errors, and the reduced chi-square."""
BASE, SLOPE, LEAST, SATURATION = range(4)
"""Entries of the camera's noise."""
TERMS = np.array([
    [Z, 1, 0, 0], [Y, 0, 1, 0], [X, 0, 0, 1], [AMPLITUDE, 0, 0, 0],
    [SIZE, 0, 2, 0], [SIZE, 0, 0, 2], [DEPTH, 2, 0, 0],
])  # fmt: skip
"""Derivatives of a spot by its parameters: powers of the distances along z, y, x."""
REACH = 3.5
"""Guard: widths about a spot in which it is drawn and fitted."""
_STILL = 0.01
"""Guard: step of a spot, in largest ones, below which it moves no more: .003 of a width."""
_REORDERED = frozenset({"reassoc", "contract", "arcp", "nsz"})
"""What lets a sum along a row use the vector registers; not-a-number stays what it is."""


@inner_kernel
def grown(spot, sigma):  # pragma: no cover
    """Widths (3,) of a spot."""
    plane = math.exp(spot[SIZE])
    return sigma * np.array([math.exp(spot[DEPTH]), plane, plane])


@inner_kernel
def profile(centre, wide, far, size):  # pragma: no cover
    """First voxel within a distance along an axis; from there distances in widths, and a Gaussian."""
    low = max(0, math.ceil(centre - far - 0.5))
    n = max(min(size, math.floor(centre + far + 0.5) + 1) - low, 0)
    away, gauss = np.zeros(n, np.float32), np.ones(n, np.float32)
    if wide > 0:
        for i in range(n):
            away[i] = (low + i - centre) / wide
            gauss[i] = math.exp(-0.5 * away[i] * away[i])
    return low, away, gauss


@inner_kernel
def add(model, spot, sigma, reach, sign):  # pragma: no cover
    """Add the light of a spot to a model, or take it away."""
    wide = grown(spot, sigma)
    z, _, gz = profile(spot[Z], wide[0], reach * wide[0], model.shape[0])
    y, _, gy = profile(spot[Y], wide[1], reach * wide[1], model.shape[1])
    x, _, gx = profile(spot[X], wide[2], reach * wide[2], model.shape[2])
    for i in range(len(gz)):
        for j in range(len(gy)):
            high, row = (
                np.float32(sign * spot[AMPLITUDE] * gz[i] * gy[j]),
                model[z + i, y + j, x : x + len(gx)],
            )
            for k in range(len(gx)):
                row[k] += high * gx[k]


@kernel
def render(shape, spots, sigma, reach):  # pragma: no cover
    """The light of spots (n, 7) in a frame (Z, Y, X) f4."""
    out = np.zeros(shape, np.float32)
    for i in range(len(spots)):
        add(out, spots[i], sigma, reach, 1.0)
    return out


@inner_kernel
def eliminate(matrix, right, n, columns):  # pragma: no cover
    """Solve n equations for the first columns of `right`, in place: LAPACK's threads wait for each other."""
    for i in range(n):
        pivot = i
        for r in range(i + 1, n):
            if abs(matrix[r, i]) > abs(matrix[pivot, i]):
                pivot = r
        if pivot != i:
            for c in range(n):
                matrix[i, c], matrix[pivot, c] = matrix[pivot, c], matrix[i, c]
            for c in range(columns):
                right[i, c], right[pivot, c] = right[pivot, c], right[i, c]
        for r in range(i + 1, n):
            factor = matrix[r, i] / matrix[i, i]
            if factor != 0.0:
                for c in range(i, n):
                    matrix[r, c] -= factor * matrix[i, c]
                for c in range(columns):
                    right[r, c] -= factor * right[i, c]
    for c in range(columns):
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                right[i, c] -= matrix[i, k] * right[k, c]
            right[i, c] /= matrix[i, i]


@inner_kernel(fastmath=_REORDERED, error_model="numpy")
def row_moments(image, model, z, y, x, low, stop, level, noise, far, gauss, out):  # pragma: no cover
    """Sums along a row, from `low` to `stop` of the voxels at x: those of `normal_equations`.

    Σ w g² f⁰⁻⁴, Σ w g f⁰⁻², Σ w r g f⁰⁻², Σ w, Σ w r, Σ w r², and the voxels used, with w the weight of a
    voxel, r what it has more than the model, g the Gaussian at a distance f in widths.
    """
    base, slope = np.float32(noise[BASE]), np.float32(noise[SLOPE])
    least, cut = np.float32(noise[LEAST]), np.float32(noise[SATURATION])
    one, zero = np.float32(1), np.float32(0)
    q0 = q1 = q2 = q3 = q4 = l0 = l1 = l2 = e0 = e1 = e2 = w0 = r0 = square = count = zero
    for k in range(low, stop):
        value, expected, f, g = image[z, y, x + k], model[z, y, x + k] + level, far[k], gauss[k]
        # What is cut off lacks no light.
        used = value == value and not (value >= cut and expected >= value)
        variance = base + slope * expected
        w = one / (max(least, variance)) if used else zero
        r = value - expected if used else zero
        wg, wr = w * g, w * r
        wgg, wrg = wg * g, wr * g
        wggff, wgf, wrgf = wgg * f * f, wg * f, wrg * f
        q0 += wgg
        q1 += wgg * f
        q2 += wggff
        q3 += wggff * f
        q4 += wggff * f * f
        l0 += wg
        l1 += wgf
        l2 += wgf * f
        e0 += wrg
        e1 += wrgf
        e2 += wrgf * f
        w0 += w
        r0 += wr
        square += wr * r
        count += one if used else zero
    out[0], out[1], out[2], out[3], out[4] = q0, q1, q2, q3, q4
    out[5], out[6], out[7], out[8], out[9], out[10] = l0, l1, l2, e0, e1, e2
    out[11], out[12], out[13], out[14] = w0, r0, square, count


@inner_kernel
def normal_equations(
    image, model, spot, sigma, noise, reach, prior, information, gradient
):  # pragma: no cover
    """Information (7, 7) and gradient (7, 1) of a spot; returns the sum of weighted squares and voxels used.

    Derivatives are a Gaussian times powers of the distances from the centre, so sums of these suffice.
    noise: (4,) base, slope, least variance, saturation. prior: (7,) information of each parameter about 0;
    that of the position is about where it is.
    """
    wide, level = grown(spot, sigma), np.float32(spot[LEVEL])
    z, far_z, gz = profile(spot[Z], wide[0], reach * sigma[0], image.shape[0])
    y, far_y, gy = profile(spot[Y], wide[1], reach * sigma[1], image.shape[1])
    x, far_x, gx = profile(spot[X], wide[2], reach * sigma[2], image.shape[2])
    squares, flat, left = np.zeros((5, 5, 5)), np.zeros((3, 3, 3)), np.zeros((3, 3, 3))
    row, sums, in_plane = np.zeros(15), np.zeros(4), np.zeros((5, 11))
    for i in range(len(gz)):
        in_plane[:] = 0.0
        for j in range(len(gy)):
            rest = reach * reach - far_z[i] ** 2 - far_y[j] ** 2
            if rest < 0:
                continue
            half = math.sqrt(rest) * wide[2]
            low = max(math.ceil(spot[X] - half) - x, 0)
            stop = min(math.floor(spot[X] + half) + 1 - x, len(gx))
            row_moments(image, model, z + i, y + j, x, low, stop, level, noise, far_x, gx, row)
            power, g = 1.0, float(gy[j])
            for p in range(5):
                for q in range(5):
                    in_plane[p, q] += power * g * g * row[q]
                for q in range(5, 11):
                    in_plane[p, q] += power * g * row[q]
                power *= far_y[j]
            for q in range(4):
                sums[q] += row[11 + q]
        power, g = 1.0, float(gz[i])
        for p in range(5):
            for q in range(5):
                for r in range(5):
                    squares[p, q, r] += power * g * g * in_plane[q, r]
            for q in range(3 if p < 3 else 0):
                for r in range(3):
                    flat[p, q, r] += power * g * in_plane[q, 5 + r]
                    left[p, q, r] += power * g * in_plane[q, 8 + r]
            power *= far_z[i]
    a = spot[AMPLITUDE]
    scale = (a / wide[0] if sigma[0] > 0 else 0.0, a / wide[1], a / wide[2], 1.0, 0.0, a, a)
    information[:] = 0.0
    gradient[:] = 0.0
    for s in range(len(TERMS)):
        p, i, j, k = TERMS[s]
        for t in range(len(TERMS)):
            q, u, v, w = TERMS[t]
            information[p, q] += scale[p] * scale[q] * squares[i + u, j + v, k + w]
        information[p, LEVEL] += scale[p] * flat[i, j, k]
        information[LEVEL, p] += scale[p] * flat[i, j, k]
        gradient[p, 0] += scale[p] * left[i, j, k]
    information[LEVEL, LEVEL], gradient[LEVEL, 0] = sums[0], sums[1]
    for p in range(PARAMETERS):
        information[p, p] += prior[p]
    for p in (LEVEL, SIZE, DEPTH):
        gradient[p, 0] -= prior[p] * spot[p]
    return sums[2], sums[3]


@kernel
def fit_spots(
    image, model, spots, start, sigma, noise, reach, prior, most, far, turns, moving
):  # pragma: no cover
    """Fit the spots (n, 7) that move (n,) in place, in turn; all are added to `model` (Z, Y, X) f4.

    model: the background. start: (n, 3) positions, from which they move by `far` widths at most. most: (7,)
    largest step of each parameter. Those whose last step is below `_STILL` move no more.
    """
    information, step = np.zeros((PARAMETERS, PARAMETERS)), np.zeros((PARAMETERS, 1))
    for i in range(len(spots)):
        add(model, spots[i], sigma, reach, 1.0)
    for turn in range(turns):
        for i in np.flatnonzero(moving):
            before = spots[i].copy()
            normal_equations(image, model, spots[i], sigma, noise, reach, prior, information, step)
            eliminate(information, step, PARAMETERS, 1)
            add(model, spots[i], sigma, reach, -1.0)
            for j in range(PARAMETERS):
                limit = most[j] if j != AMPLITUDE else most[j] * max(spots[i, AMPLITUDE], 1e-30)
                spots[i, j] += step[j, 0] if j == LEVEL else min(max(step[j, 0], -limit), limit)
            for axis in range(3):
                away = far * sigma[axis]
                spots[i, axis] = min(max(spots[i, axis], start[i, axis] - away), start[i, axis] + away)
                spots[i, axis] = min(max(spots[i, axis], -0.5), image.shape[axis] - 0.5)
            if sigma[0] == 0:
                spots[i, Z] = start[i, Z]
            add(model, spots[i], sigma, reach, 1.0)
            if turn == turns - 1:
                shift = np.abs(spots[i] - before) / most
                shift[AMPLITUDE] /= max(spots[i, AMPLITUDE], 1e-30)
                moving[i] = shift.max() > _STILL


@kernel
def errors_of(image, model, spots, sigma, noise, reach, prior):  # pragma: no cover
    """(n, 6): standard errors of z, y, x and of both sizes, and the reduced chi-square."""
    out, inverse = np.zeros((len(spots), MISFIT + 1)), np.zeros((PARAMETERS, PARAMETERS))
    information, gradient = np.zeros((PARAMETERS, PARAMETERS)), np.zeros((PARAMETERS, 1))
    for i in range(len(spots)):
        square, count = normal_equations(
            image, model, spots[i], sigma, noise, reach, prior, information, gradient
        )
        inverse[:] = 0.0
        for p in range(PARAMETERS):
            inverse[p, p] = 1.0
        eliminate(information, inverse, PARAMETERS, PARAMETERS)
        for axis in range(3):
            out[i, axis] = math.sqrt(max(inverse[axis, axis], 0.0)) if sigma[axis] > 0 else 0.0
        out[i, ERROR_SIZE] = math.sqrt(max(inverse[SIZE, SIZE], 0.0))
        out[i, ERROR_DEPTH] = math.sqrt(max(inverse[DEPTH, DEPTH], 0.0))
        out[i, MISFIT] = square / max(count - PARAMETERS, 1)
    return out
