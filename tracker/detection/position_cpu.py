"""CPU kernel of the last fit: places, amplitudes, levels and sizes of spots in grey values, one by one.

Each spot is A exp(-Σ (x - c)² / 2 e^{2s} σ²) + level, with one s for the plane and one for z, on a given
background beside the light of all others;
Gauss-Newton steps with the variance base + slope · model as weights (Fisher scoring for Poisson light).
Serial and without the GIL.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

Z, Y, X, AMPLITUDE, LEVEL, SIZE, DEPTH = range(7)
"""Columns of a spot: voxels, grey values, logarithms of its widths over the common ones."""


@njit(nogil=True, cache=True)
def window(spot, sigma, reach, shape):  # pragma: no cover
    """First and last voxel (3, 2) within `reach` widths."""
    out = np.empty((3, 2), np.int64)
    for axis in range(3):
        far = reach * sigma[axis] + 0.5
        out[axis, 0] = max(0, math.ceil(spot[axis] - far))
        out[axis, 1] = min(shape[axis], math.floor(spot[axis] + far) + 1)
    return out


@njit(nogil=True, cache=True)
def grown(spot, sigma):  # pragma: no cover
    """Widths (3,) of a spot."""
    plane = math.exp(spot[SIZE])
    return sigma * np.array([math.exp(spot[DEPTH]), plane, plane])


@njit(nogil=True, cache=True)
def add(model, spot, sigma, reach, sign):  # pragma: no cover
    """Add the light of a spot to a model, or take it away."""
    wide = grown(spot, sigma)
    box = window(spot, wide, reach, model.shape)
    for z in range(box[0, 0], box[0, 1]):
        dz = 0.0 if sigma[0] == 0 else ((z - spot[Z]) / wide[0]) ** 2
        for y in range(box[1, 0], box[1, 1]):
            dy = dz + ((y - spot[Y]) / wide[1]) ** 2
            for x in range(box[2, 0], box[2, 1]):
                q = dy + ((x - spot[X]) / wide[2]) ** 2
                model[z, y, x] += sign * spot[AMPLITUDE] * math.exp(-0.5 * q)


@njit(nogil=True, cache=True)
def render(shape, spots, sigma, reach):  # pragma: no cover
    """The light of spots (n, 7) in a frame (Z, Y, X) f4."""
    out = np.zeros(shape, np.float32)
    for i in range(len(spots)):
        add(out, spots[i], sigma, reach, 1.0)
    return out


@njit(nogil=True, cache=True)
def normal_equations(image, model, spot, sigma, noise, reach, prior):  # pragma: no cover
    """Information (7, 7), gradient (7,), sum of weighted squares and number of voxels about a spot.

    noise: (4,) base, slope, least variance, saturation. prior: (7,) information of each parameter about 0;
    that of the place is about where it is.
    """
    information, gradient = np.zeros((7, 7)), np.zeros(7)
    d = np.empty(7)
    square, count = 0.0, 0
    wide = grown(spot, sigma)
    box = window(spot, sigma, reach, image.shape)
    for z in range(box[0, 0], box[0, 1]):
        az = 0.0 if sigma[0] == 0 else (z - spot[Z]) / wide[0]
        for y in range(box[1, 0], box[1, 1]):
            ay = (y - spot[Y]) / wide[1]
            for x in range(box[2, 0], box[2, 1]):
                ax = (x - spot[X]) / wide[2]
                q = az * az + ay * ay + ax * ax
                if q > reach * reach or not math.isfinite(image[z, y, x]):
                    continue
                seen, expected = image[z, y, x], model[z, y, x] + spot[LEVEL]
                if seen >= noise[3] and expected >= seen:
                    continue  # what is cut off lacks no light
                g = math.exp(-0.5 * q)
                light = spot[AMPLITUDE] * g
                d[Z] = 0.0 if sigma[0] == 0 else light * az / wide[0]
                d[Y] = light * ay / wide[1]
                d[X] = light * ax / wide[2]
                d[AMPLITUDE] = g
                d[LEVEL] = 1.0
                d[SIZE] = light * (ay * ay + ax * ax)
                d[DEPTH] = light * az * az
                w = 1 / max(noise[0] + noise[1] * expected, noise[2])
                left = seen - expected
                square += w * left * left
                count += 1
                for i in range(7):
                    gradient[i] += w * d[i] * left
                    for j in range(i + 1):
                        information[i, j] += w * d[i] * d[j]
    for i in range(7):
        for j in range(i):
            information[j, i] = information[i, j]
        information[i, i] += prior[i]
    gradient[LEVEL] -= prior[LEVEL] * spot[LEVEL]
    gradient[SIZE] -= prior[SIZE] * spot[SIZE]
    gradient[DEPTH] -= prior[DEPTH] * spot[DEPTH]
    return information, gradient, square, count


@njit(nogil=True, cache=True)
def fit_spots(image, model, spots, sigma, noise, reach, prior, most, turns):  # pragma: no cover
    """Fit all spots (n, 7) in place, in turn; `model` (Z, Y, X) f4 is the background without them.

    most: (7,) largest step of each parameter. Returns (n, 7): standard errors of z, y, x, of
    the amplitude and both sizes, and the reduced chi-square.
    """
    n = len(spots)
    out = np.zeros((n, 7))
    for i in range(n):
        add(model, spots[i], sigma, reach, 1.0)
    start = spots.copy()
    for turn in range(turns + 1):
        for i in range(n):
            information, gradient, square, count = normal_equations(
                image, model, spots[i], sigma, noise, reach, prior
            )
            if turn < turns:
                step = np.linalg.solve(information, gradient)
                add(model, spots[i], sigma, reach, -1.0)
                for j in range(7):
                    limit = most[j] if j != AMPLITUDE else most[j] * max(spots[i, AMPLITUDE], 1e-30)
                    if j != LEVEL:
                        step[j] = min(max(step[j], -limit), limit)
                    spots[i, j] += step[j]
                for axis in range(3):  # no farther than a width and a half from where it was found
                    far = 1.5 * sigma[axis]
                    spots[i, axis] = min(max(spots[i, axis], start[i, axis] - far), start[i, axis] + far)
                    spots[i, axis] = min(max(spots[i, axis], -0.5), image.shape[axis] - 0.5)
                if sigma[0] == 0:
                    spots[i, Z] = start[i, Z]
                add(model, spots[i], sigma, reach, 1.0)
            else:
                inverse = np.linalg.inv(information)
                for axis in range(3):
                    out[i, axis] = math.sqrt(max(inverse[axis, axis], 0.0)) if sigma[axis] > 0 else 0.0
                out[i, 3] = math.sqrt(max(inverse[AMPLITUDE, AMPLITUDE], 0.0))
                out[i, 4] = math.sqrt(max(inverse[SIZE, SIZE], 0.0))
                out[i, 5] = math.sqrt(max(inverse[DEPTH, DEPTH], 0.0))
                out[i, 6] = square / max(count - 7, 1)
    return out
