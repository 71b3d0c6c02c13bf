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


@inner_kernel
def grown(spot, sigma):  # pragma: no cover
    """Widths (3,) of a spot."""
    plane = math.exp(spot[SIZE])
    return sigma * np.array([math.exp(spot[DEPTH]), plane, plane])


@inner_kernel
def profile(centre, wide, far, size):  # pragma: no cover
    """First voxel within a distance along an axis; from there distances in widths, and a Gaussian."""
    low = max(0, math.ceil(centre - far - 0.5))
    away = np.zeros(max(min(size, math.floor(centre + far + 0.5) + 1) - low, 0))
    if wide > 0:
        away += (np.arange(low, low + len(away)) - centre) / wide
    return low, away, np.exp(-0.5 * away * away)


@inner_kernel
def add(model, spot, sigma, reach, sign):  # pragma: no cover
    """Add the light of a spot to a model, or take it away."""
    wide = grown(spot, sigma)
    z, _, gz = profile(spot[Z], wide[0], reach * wide[0], model.shape[0])
    y, _, gy = profile(spot[Y], wide[1], reach * wide[1], model.shape[1])
    x, _, gx = profile(spot[X], wide[2], reach * wide[2], model.shape[2])
    for i in range(len(gz)):
        for j in range(len(gy)):
            high, row = sign * spot[AMPLITUDE] * gz[i] * gy[j], model[z + i, y + j]
            for k in range(len(gx)):
                row[x + k] += high * gx[k]


@kernel
def render(shape, spots, sigma, reach):  # pragma: no cover
    """The light of spots (n, 7) in a frame (Z, Y, X) f4."""
    out = np.zeros(shape, np.float32)
    for i in range(len(spots)):
        add(out, spots[i], sigma, reach, 1.0)
    return out


@inner_kernel
def normal_equations(image, model, spot, sigma, noise, reach, prior):  # pragma: no cover
    """Information (7, 7), gradient (7,), sum of weighted squares and number of voxels about a spot.

    noise: (4,) base, slope, least variance, saturation. prior: (7,) information of each parameter about 0;
    that of the position is about where it is.
    """
    information, gradient, d = np.zeros((PARAMETERS, PARAMETERS)), np.zeros(PARAMETERS), np.empty(PARAMETERS)
    square, count, wide = 0.0, 0, grown(spot, sigma)
    z, far_z, gz = profile(spot[Z], wide[0], reach * sigma[0], image.shape[0])
    y, far_y, gy = profile(spot[Y], wide[1], reach * sigma[1], image.shape[1])
    x, far_x, gx = profile(spot[X], wide[2], reach * sigma[2], image.shape[2])
    d[LEVEL] = 1.0
    for i in range(len(gz)):
        for j in range(len(gy)):
            away = far_z[i] ** 2 + far_y[j] ** 2
            image_row, model_row = image[z + i, y + j], model[z + i, y + j]
            for k in range(len(gx)):
                value, expected = image_row[x + k], model_row[x + k] + spot[LEVEL]
                if away + far_x[k] ** 2 > reach * reach or not math.isfinite(value):
                    continue
                if value >= noise[SATURATION] and expected >= value:
                    continue  # what is cut off lacks no light
                d[AMPLITUDE] = gz[i] * gy[j] * gx[k]
                light = spot[AMPLITUDE] * d[AMPLITUDE]
                d[Z] = 0.0 if sigma[0] == 0 else light * far_z[i] / wide[0]
                d[Y] = light * far_y[j] / wide[1]
                d[X] = light * far_x[k] / wide[2]
                d[SIZE] = light * (far_y[j] ** 2 + far_x[k] ** 2)
                d[DEPTH] = light * far_z[i] ** 2
                w = 1 / max(noise[BASE] + noise[SLOPE] * expected, noise[LEAST])
                residual = value - expected
                square += w * residual * residual
                count += 1
                for p in range(PARAMETERS):
                    gradient[p] += w * d[p] * residual
                    for q in range(p + 1):
                        information[p, q] += w * d[p] * d[q]
    for p in range(PARAMETERS):
        for q in range(p):
            information[q, p] = information[p, q]
        information[p, p] += prior[p]
    for p in (LEVEL, SIZE, DEPTH):
        gradient[p] -= prior[p] * spot[p]
    return information, gradient, square, count


@kernel
def fit_spots(image, model, spots, start, sigma, noise, reach, prior, most, far, turns):  # pragma: no cover
    """Fit all spots (n, 7) in place, in turn; they are added to `model` (Z, Y, X) f4, the background.

    start: (n, 3) positions, from which they move by `far` widths at most. most: (7,) largest step of each
    parameter.
    """
    for i in range(len(spots)):
        add(model, spots[i], sigma, reach, 1.0)
    for _ in range(turns):
        for i in range(len(spots)):
            information, gradient, _, _ = normal_equations(image, model, spots[i], sigma, noise, reach, prior)
            step = np.linalg.solve(information, gradient)
            add(model, spots[i], sigma, reach, -1.0)
            for j in range(PARAMETERS):
                limit = most[j] if j != AMPLITUDE else most[j] * max(spots[i, AMPLITUDE], 1e-30)
                if j != LEVEL:
                    step[j] = min(max(step[j], -limit), limit)
                spots[i, j] += step[j]
            for axis in range(3):
                away = far * sigma[axis]
                spots[i, axis] = min(max(spots[i, axis], start[i, axis] - away), start[i, axis] + away)
                spots[i, axis] = min(max(spots[i, axis], -0.5), image.shape[axis] - 0.5)
            if sigma[0] == 0:
                spots[i, Z] = start[i, Z]
            add(model, spots[i], sigma, reach, 1.0)


@kernel
def errors_of(image, model, spots, sigma, noise, reach, prior):  # pragma: no cover
    """(n, 6): standard errors of z, y, x and of both sizes, and the reduced chi-square."""
    out = np.zeros((len(spots), MISFIT + 1))
    for i in range(len(spots)):
        information, _, square, count = normal_equations(image, model, spots[i], sigma, noise, reach, prior)
        inverse = np.linalg.inv(information)
        for axis in range(3):
            out[i, axis] = math.sqrt(max(inverse[axis, axis], 0.0)) if sigma[axis] > 0 else 0.0
        out[i, ERROR_SIZE] = math.sqrt(max(inverse[SIZE, SIZE], 0.0))
        out[i, ERROR_DEPTH] = math.sqrt(max(inverse[DEPTH, DEPTH], 0.0))
        out[i, MISFIT] = square / max(count - PARAMETERS, 1)
    return out
