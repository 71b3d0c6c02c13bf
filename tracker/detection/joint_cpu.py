"""CPU kernels of the joint fit: add the light of spots to a model, and update one spot by a scoring step.

Serial and without the GIL. The spots of a frame are updated in a fixed order, so no result depends on
threads. Voxels that are not finite are ignored. Each row of `spots` has the columns that are named here.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

AMPLITUDE, Z, Y, X, LOG_SIZE, ERROR, MISFIT, REACH, LEVEL = range(9)
"""Columns of spots: grey values, voxels, ln of the size, error of the amplitude, share of the light that the
profile does not explain (squared), how far the light is painted (in widths), background."""
COLUMNS = 9
STEP = 0.1
"""Of the profile's table, in squared widths."""
ENTRIES = 491  # squared distances 0 .. 49: seven widths
WINDOW = 6.75
"""Squared widths within which a spot is fitted."""
_PLACE_PRIOR = 4.0  # a step of half a voxel costs 1/2: it damps steps, not estimates
_BEYOND = 0.5  # voxels that a spot may be beyond the centre of the last one
_DIM = 8.0  # standard errors below which the size of a spot is not its own
_DIM_SIZE = 0.02


class Noise(NamedTuple):
    """Noise: the variance of a voxel is base + slope x mean, at least `least`; values from `top` are cut.

    Parameters
    ----------
    base, slope, least : float
        Squared grey values; grey values; squared grey values.
    top : float
        Grey value at which the camera saturates; the true value may be larger.
    """

    base: float
    slope: float
    least: float
    top: float


class Optics(NamedTuple):
    """Widths and profile of a spot.

    Parameters
    ----------
    sigma : (3,) float64 array
        Widths along z, y, x in voxels; z counts for nothing in a flat image.
    profile : (491,) float64 array
        Light at squared distances 0, 0.1, … (in widths), 1 at the centre.
    blur : float
        Deviation of a voxel from the profile, as a share of the light of the spot.
    sizes : float
        Standard deviation of the logarithm of a spot's size.
    flat : bool
    """

    sigma: np.ndarray
    profile: np.ndarray
    blur: float
    sizes: float
    flat: bool


@njit(nogil=True, cache=True)
def span(centre, reach, size):  # pragma: no cover
    """First voxel within reach, and last one plus 1."""
    return max(0, math.ceil(centre - reach)), min(size, math.floor(centre + reach) + 1)


@njit(nogil=True, cache=True, error_model="numpy")
def paint(model, spots, j, optics, share, inner):  # pragma: no cover
    """Add `share` of the light of a spot, beyond `inner` squared widths, to model (Z, Y, X) f4."""
    s = spots[j]
    if s[AMPLITUDE] == 0 or share == 0:
        return
    size = math.exp(s[LOG_SIZE])
    sz, sy, sx = optics.sigma[0] * size, optics.sigma[1] * size, optics.sigma[2] * size
    z0, z1 = 0, 1
    if not optics.flat:
        z0, z1 = span(s[Z], s[REACH] * sz, model.shape[0])
    y0, y1 = span(s[Y], s[REACH] * sy, model.shape[1])
    x0, x1 = span(s[X], s[REACH] * sx, model.shape[2])
    light = share * s[AMPLITUDE]
    profile = optics.profile
    for z in range(z0, z1):
        away_z = 0.0 if optics.flat else ((z - s[Z]) / sz) ** 2
        for y in range(y0, y1):
            away_y = away_z + ((y - s[Y]) / sy) ** 2
            for x in range(x0, x1):
                q = (away_y + ((x - s[X]) / sx) ** 2) / STEP
                i = int(q)
                if i < ENTRIES - 1 and q * STEP >= inner:
                    t = q - i
                    model[z, y, x] += light * (profile[i] * (1 - t) + profile[i + 1] * t)


@njit(nogil=True, cache=True, error_model="numpy")
def paint_all(model, spots, optics, share, inner):  # pragma: no cover
    """Add the light of all spots to the model; share (n,) f8."""
    for j in range(len(spots)):
        paint(model, spots, j, optics, share[j], inner)


@njit(nogil=True, cache=True)
def reach_of(amplitude, noise, profile):  # pragma: no cover
    """Radius, in widths, within which the light of a spot is at least a quarter of its noise."""
    for i in range(ENTRIES - 1, 62, -1):
        if amplitude * profile[i] > 0.25 * noise:
            return math.sqrt(i * STEP)
    return 2.5


@njit(nogil=True, cache=True)
def invert(matrix):  # pragma: no cover
    """Invert a positive definite matrix in place by Gauss-Jordan elimination."""
    n = len(matrix)
    for k in range(n):
        pivot = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for h in range(n):
            matrix[k, h] *= pivot
        for u in range(n):
            if u != k:
                factor = matrix[u, k]
                matrix[u, k] = 0.0
                for h in range(n):
                    matrix[u, h] -= factor * matrix[k, h]


@njit(nogil=True, cache=True, error_model="numpy")
def _weigh(frame, noise, optics, spot, information, score, sums):  # pragma: no cover
    """Fisher information (6, 6) and score (6,) of amplitude, z, y, x, ln widths in plane and along z.

    The model contains everything except this spot. sums: squared residuals, variances, squared light, voxels,
    weighted squared residuals.
    """
    image, model = frame
    information[:] = 0.0
    score[:] = 0.0
    sums[:] = 0.0
    size = math.exp(spot[LOG_SIZE])
    sz, sy, sx = optics.sigma[0] * size, optics.sigma[1] * size, optics.sigma[2] * size
    wide = math.sqrt(WINDOW)
    z0, z1 = 0, 1
    if not optics.flat:
        z0, z1 = span(spot[Z], wide * sz, image.shape[0])
    y0, y1 = span(spot[Y], wide * sy, image.shape[1])
    x0, x1 = span(spot[X], wide * sx, image.shape[2])
    slope = np.zeros(6)
    amplitude, profile = spot[AMPLITUDE], optics.profile
    for z in range(z0, z1):
        dz = 0.0 if optics.flat else (z - spot[Z]) / sz
        for y in range(y0, y1):
            dy = (y - spot[Y]) / sy
            for x in range(x0, x1):
                dx = (x - spot[X]) / sx
                q = dz * dz + dy * dy + dx * dx
                seen = image[z, y, x]
                if q >= WINDOW or not math.isfinite(seen):
                    continue
                q /= STEP
                i = int(q)
                t = q - i
                p = profile[i] * (1 - t) + profile[i + 1] * t
                mean = model[z, y, x] + amplitude * p
                r = seen - mean
                if seen >= noise.top and r < 0:  # cut off: it says nothing
                    continue
                light = amplitude * p + max(model[z, y, x] - spot[LEVEL], 0.0)
                v = max(noise.base + noise.slope * mean, noise.least)
                w = 1 / (v + (optics.blur * light) ** 2)
                k = -2 * amplitude * (profile[i + 1] - profile[i]) / STEP
                slope[0] = p
                slope[1] = 0.0 if optics.flat else k * dz / sz
                slope[2] = k * dy / sy
                slope[3] = k * dx / sx
                slope[4] = k * (dy * dy + dx * dx)
                slope[5] = k * dz * dz
                for u in range(6):
                    cw = w * slope[u]
                    score[u] += cw * r
                    for h in range(u + 1):
                        information[u, h] += cw * slope[h]
                sums[0] += r * r
                sums[1] += v
                sums[2] += (amplitude * p) ** 2
                sums[3] += 1
                sums[4] += w * r * r
    for u in range(6):
        for h in range(u):
            information[h, u] = information[u, h]


@njit(nogil=True, cache=True, error_model="numpy")
def _own(information, score, optics, prior, log_size):  # pragma: no cover
    """Information and score of amplitude, z, y, x and one ln size, whose prior is that of `optics`."""
    own, pull = np.empty((5, 5)), np.empty(5)
    own[:4, :4] = information[:4, :4]
    for u in range(4):
        own[u, 4] = own[4, u] = information[u, 4] + information[u, 5]
        pull[u] = score[u]
    own[4, 4] = information[4, 4] + 2 * information[4, 5] + information[5, 5] + 1 / prior**2
    pull[4] = score[4] + score[5] - log_size / prior**2
    if optics.flat:
        own[1, 1] += 1.0
    return own, pull


@njit(nogil=True, cache=True)
def _hold_at_walls(own, pull, spot, shape):  # pragma: no cover
    """Keep a spot at the border that is pulled outwards; else its amplitude compensates for the move."""
    for axis in range(3):
        u = 1 + axis
        low, high = spot[u] <= -_BEYOND, spot[u] >= shape[axis] - 1 + _BEYOND
        if (low and pull[u] < 0) or (high and pull[u] > 0):
            own[u, :] = 0.0
            own[:, u] = 0.0
            own[u, u], pull[u] = 1.0, 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def _shared(information, score, curvature):  # pragma: no cover
    """Add the information of a spot on the shared widths: the Schur complement over its own parameters."""
    inner = information[:4, :4].copy()
    for u in range(4):
        inner[u, u] = inner[u, u] * (1 + 1e-6) + 1e-9 + _PLACE_PRIOR * (u > 0)
    invert(inner)
    for u in range(2):
        for h in range(4):
            for k in range(4):
                part = information[4 + u, h] * inner[h, k]
                curvature[u, 2] -= part * score[k]
                for other in range(2):
                    curvature[u, other] -= part * information[k, 4 + other]
        curvature[u, 2] += score[4 + u]
        for other in range(2):
            curvature[u, other] += information[4 + u, 4 + other]


@njit(nogil=True, cache=True, error_model="numpy")
def visit(frame, noise, optics, spots, j, step, curvature):  # pragma: no cover
    """One Fisher scoring step for spot j, with the others fixed; the model is updated.

    frame: image and model (Z, Y, X) f4, with all spots in the model; step: largest move of a spot, in widths;
    curvature (2, 3) f8: information and score on the shared ln widths, to which those of this spot are added.
    """
    s = spots[j]
    paint(frame[1], spots, j, optics, -1.0, 0.0)
    information, score, sums = np.empty((6, 6)), np.empty(6), np.empty(5)
    _weigh(frame, noise, optics, s, information, score, sums)
    if sums[3] < 4 or not information[0, 0] > 1e-12 or not math.isfinite(score[0]):
        s[AMPLITUDE], s[ERROR] = 0.0, 1e9
        return
    amplitude, alone = s[AMPLITUDE], information[0, 0]
    variance = 1 / alone
    if amplitude == 0:
        s[AMPLITUDE] = max(score[0] / alone, 0.0)
    else:
        prior = min(optics.sizes, _DIM_SIZE) if amplitude < _DIM * s[ERROR] else optics.sizes
        own, pull = _own(information, score, optics, prior, s[LOG_SIZE])
        for u in range(5):
            own[u, u] = own[u, u] * (1 + 1e-6) + 1e-12 + _PLACE_PRIOR * (0 < u < 4)
        _hold_at_walls(own, pull, s, frame[0].shape)
        invert(own)
        move = own @ pull
        if math.isfinite(move[0] + move[1] + move[2] + move[3] + move[4]) and own[0, 0] > 0:
            variance = own[0, 0]
            s[AMPLITUDE] = min(
                max(amplitude + move[0], 0.2 * amplitude), 5 * amplitude + 5 / math.sqrt(alone)
            )
            size = math.exp(s[LOG_SIZE])
            for axis in range(1 if optics.flat else 0, 3):
                most = step * max(optics.sigma[axis] * size, 0.5)
                place = s[1 + axis] + min(max(move[1 + axis], -most), most)
                s[1 + axis] = min(max(place, -_BEYOND), frame[0].shape[axis] - 1 + _BEYOND)
            s[LOG_SIZE] = min(max(s[LOG_SIZE] + min(max(move[4], -0.15), 0.15), -0.7), 0.9)
        _shared(information, score, curvature)
    s[ERROR] = math.sqrt(variance)
    s[MISFIT] = (sums[0] - sums[1]) / max(sums[2], 1e-9)
    voxels = max(alone * sums[1] / sums[3], 1.0)  # that a spot is seen on
    s[REACH] = reach_of(s[AMPLITUDE], math.sqrt(max(sums[1] / sums[3], 1e-12) / voxels), optics.profile)
    paint(frame[1], spots, j, optics, 1.0, 0.0)


@njit(nogil=True, cache=True)
def sweep(frame, noise, optics, spots, order, step, curvature):  # pragma: no cover
    """Update the spots once in the given order; curvature (2, 3) f8 is that of this sweep."""
    curvature[:] = 0.0
    for j in order:
        visit(frame, noise, optics, spots, j, step, curvature)


@njit(nogil=True, cache=True, error_model="numpy")
def errors(frame, noise, optics, spots):  # pragma: no cover
    """(n, 5) f8: standard errors of z, y, x and ln size given the other spots, and reduced chi-square."""
    out = np.zeros((len(spots), 5))
    information, score, sums = np.empty((6, 6)), np.empty(6), np.empty(5)
    for j in range(len(spots)):
        paint(frame[1], spots, j, optics, -1.0, 0.0)
        _weigh(frame, noise, optics, spots[j], information, score, sums)
        paint(frame[1], spots, j, optics, 1.0, 0.0)
        own, _ = _own(information, score, optics, optics.sizes, 0.0)
        for u in range(5):
            own[u, u] = own[u, u] * (1 + 1e-6) + 1e-12
        invert(own)
        for u in range(4):
            out[j, u] = math.sqrt(max(own[1 + u, 1 + u], 0.0))
        out[j, 4] = sums[4] / max(sums[3] - 4, 1.0)
    return out


@njit(nogil=True, cache=True, error_model="numpy")
def stack(frame, noise, optics, spots, rows):  # pragma: no cover
    """Mean profile of the spots in `rows`: weighted light, and weights, by distance (56 bins of 1/8)."""
    image, model = frame
    light, weight = np.zeros(56), np.zeros(56)
    for j in rows:
        s = spots[j]
        size = math.exp(s[LOG_SIZE])
        sz, sy, sx = optics.sigma[0] * size, optics.sigma[1] * size, optics.sigma[2] * size
        z0, z1 = 0, 1
        if not optics.flat:
            z0, z1 = span(s[Z], 7 * sz, image.shape[0])
        y0, y1 = span(s[Y], 7 * sy, image.shape[1])
        x0, x1 = span(s[X], 7 * sx, image.shape[2])
        amplitude = s[AMPLITUDE]
        for z in range(z0, z1):
            dz = 0.0 if optics.flat else ((z - s[Z]) / sz) ** 2
            for y in range(y0, y1):
                dy = dz + ((y - s[Y]) / sy) ** 2
                for x in range(x0, x1):
                    q = dy + ((x - s[X]) / sx) ** 2
                    i = int(q / STEP)
                    seen = image[z, y, x]
                    if i >= ENTRIES - 1 or not seen < noise.top:
                        continue
                    p = 0.0
                    if math.sqrt(q) <= s[REACH]:
                        p = optics.profile[i] + (optics.profile[i + 1] - optics.profile[i]) * (q / STEP - i)
                    other = model[z, y, x] - amplitude * p
                    v = max(noise.base + noise.slope * model[z, y, x], noise.least)
                    strange = (optics.blur * max(other - s[LEVEL], 0.0)) ** 2 + (0.02 * amplitude * p) ** 2
                    k = int(math.sqrt(q) / 0.125)
                    if k < 56:
                        w = amplitude / (v + strange)
                        light[k] += w * (seen - other)
                        weight[k] += w * amplitude
    return light, weight
