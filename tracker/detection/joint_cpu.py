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
NEAREST = 2.6
"""Widths to which any spot is painted: at least those within which it is fitted."""
_PLACE_PRIOR = 4.0  # a step of half a voxel costs 1/2: it damps steps, not estimates
_BEYOND = 0.5  # voxels that a spot may be beyond the centre of the last one
_DIM = 8.0  # standard errors below which the size of a spot is not its own
_DIM_SIZE = 0.02
_NOTHING = 0.05  # of the gain at which a spot rests, below which it does not even move


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


@njit(nogil=True, cache=True, inline="always")
def box(spot, optics, shape, reach):  # pragma: no cover
    """Inverse widths of a spot along z, y, x, and the planes and rows within reach (in widths)."""
    size = math.exp(spot[LOG_SIZE])
    sz, sy, sx = optics.sigma[0] * size, optics.sigma[1] * size, optics.sigma[2] * size
    z0, z1 = 0, 1
    if not optics.flat:
        z0, z1 = span(spot[Z], reach * sz, shape[0])
    y0, y1 = span(spot[Y], reach * sy, shape[1])
    return (0.0 if optics.flat else 1 / sz, 1 / sy, 1 / sx), (z0, z1, y0, y1)


@njit(nogil=True, cache=True, inline="always")
def chord(spot, away, within, narrow, size):  # pragma: no cover
    """Voxels along x, from first to last plus 1, less than `within` squared widths away.

    away: squared widths that their row is away; narrow: 1 over the width.
    """
    if away >= within:
        return 0, 0
    return span(spot[X], math.sqrt(within - away) / narrow, size)


@njit(nogil=True, cache=True, error_model="numpy")
def paint(model, spots, j, optics, share, inner):  # pragma: no cover
    """Add `share` of the light of a spot, beyond `inner` squared widths, to model (Z, Y, X) f4."""
    s = spots[j]
    light, profile = share * s[AMPLITUDE], optics.profile
    if light == 0:
        return
    within = min(s[REACH] ** 2, STEP * (ENTRIES - 1.001))
    (nz, ny, nx), (z0, z1, y0, y1) = box(s, optics, model.shape, s[REACH])
    for z in range(z0, z1):
        away_z = ((z - s[Z]) * nz) ** 2
        for y in range(y0, y1):
            away_y = away_z + ((y - s[Y]) * ny) ** 2
            x0, x1 = chord(s, away_y, within, nx, model.shape[2])
            for x in range(x0, x1):
                q = (away_y + ((x - s[X]) * nx) ** 2) / STEP
                i = min(int(q), ENTRIES - 2)
                if q * STEP >= inner:
                    model[z, y, x] += light * (profile[i] + (profile[i + 1] - profile[i]) * (q - i))


@njit(nogil=True, cache=True, error_model="numpy")
def paint_all(model, spots, optics, share, inner):  # pragma: no cover
    """Add the light of all spots to the model; share (n,) f8."""
    for j in range(len(spots)):
        paint(model, spots, j, optics, share[j], inner)


@njit(nogil=True, cache=True, error_model="numpy")
def shade(total, frame, noise, optics, spots, share, blocks):  # pragma: no cover
    """Subtract a share (n,) f8 of the light of spots from sums over blocks (Z, b, c) f4.

    frame: image and model; blocks: the block of each row (Y,) i8 and column (X,) i8. Voxels that are not
    measured or saturated are in no sum.
    """
    image, rows, columns, profile = frame[0], blocks[0], blocks[1], optics.profile
    for j in range(len(spots)):
        s = spots[j]
        light = share[j] * s[AMPLITUDE]
        if light == 0:
            continue
        within = min(s[REACH] ** 2, STEP * (ENTRIES - 1.001))
        (nz, ny, nx), (z0, z1, y0, y1) = box(s, optics, image.shape, s[REACH])
        for z in range(z0, z1):
            away_z = ((z - s[Z]) * nz) ** 2
            for y in range(y0, y1):
                away_y = away_z + ((y - s[Y]) * ny) ** 2
                x0, x1 = chord(s, away_y, within, nx, image.shape[2])
                for x in range(x0, x1):
                    if image[z, y, x] < noise.top:
                        q = (away_y + ((x - s[X]) * nx) ** 2) / STEP
                        i = min(int(q), ENTRIES - 2)
                        p = profile[i] + (profile[i + 1] - profile[i]) * (q - i)
                        total[z, rows[y], columns[x]] -= light * p


@njit(nogil=True, cache=True)
def reach_of(amplitude, noise, profile):  # pragma: no cover
    """Radius, in widths, within which the light of a spot is at least a tenth of its noise."""
    for i in range(ENTRIES - 1, 67, -1):
        if amplitude * profile[i] > 0.1 * noise:
            return math.sqrt(i * STEP)
    return NEAREST


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

    The model contains all spots. sums: squared residuals, variances, squared light, voxels, weighted squared
    residuals.
    """
    image, model = frame
    information[:] = 0.0
    score[:] = 0.0
    sums[:] = 0.0
    amplitude, profile = spot[AMPLITUDE], optics.profile
    (nz, ny, nx), (z0, z1, y0, y1) = box(spot, optics, image.shape, math.sqrt(WINDOW))
    for z in range(z0, z1):
        dz = (z - spot[Z]) * nz
        for y in range(y0, y1):
            dy = (y - spot[Y]) * ny
            x0, x1 = chord(spot, dz * dz + dy * dy, WINDOW, nx, image.shape[2])
            # Sums over a row: p and k are the profile and its slope, numbers are powers of the distance.
            pp = pk = pk1 = pk2 = kk = kk1 = kk2 = kk3 = kk4 = pr = kr = kr1 = kr2 = 0.0
            for x in range(x0, x1):
                seen, mean = image[z, y, x], model[z, y, x]
                r = seen - mean
                if not math.isfinite(r) or (seen >= noise.top and r < 0):  # cut off: it says nothing
                    continue
                dx = (x - spot[X]) * nx
                q = (dz * dz + dy * dy + dx * dx) / STEP
                i = int(q)
                steep = profile[i + 1] - profile[i]
                p = profile[i] + steep * (q - i)
                own = amplitude * p
                light = optics.blur * (own + max(mean - own - spot[LEVEL], 0.0))
                v = max(noise.base + noise.slope * mean, noise.least)
                w = 1 / (v + light * light)
                wk = -2 * amplitude / STEP * steep * w
                wkk = -2 * amplitude / STEP * steep * wk
                wkp, wkr = wk * p, wk * r
                pp += w * p * p
                pr += w * p * r
                pk, pk1, pk2 = pk + wkp, pk1 + wkp * dx, pk2 + wkp * dx * dx
                kr, kr1, kr2 = kr + wkr, kr1 + wkr * dx, kr2 + wkr * dx * dx
                kk, kk1, kk2 = kk + wkk, kk1 + wkk * dx, kk2 + wkk * dx * dx
                kk3, kk4 = kk3 + wkk * dx * dx * dx, kk4 + wkk * dx * dx * dx * dx
                sums[0] += r * r
                sums[1] += v
                sums[2] += own * own
                sums[3] += 1
                sums[4] += w * r * r
            pz, py, e, f = dz * nz, dy * ny, dy * dy, dz * dz
            score[0] += pr
            score[1] += pz * kr
            score[2] += py * kr
            score[3] += nx * kr1
            score[4] += e * kr + kr2
            score[5] += f * kr
            information[0, 0] += pp
            information[1, 0] += pz * pk
            information[2, 0] += py * pk
            information[3, 0] += nx * pk1
            information[4, 0] += e * pk + pk2
            information[5, 0] += f * pk
            information[1, 1] += pz * pz * kk
            information[2, 1] += pz * py * kk
            information[3, 1] += pz * nx * kk1
            information[4, 1] += pz * (e * kk + kk2)
            information[5, 1] += pz * f * kk
            information[2, 2] += py * py * kk
            information[3, 2] += py * nx * kk1
            information[4, 2] += py * (e * kk + kk2)
            information[5, 2] += py * f * kk
            information[3, 3] += nx * nx * kk2
            information[4, 3] += nx * (e * kk1 + kk3)
            information[5, 3] += nx * f * kk1
            information[4, 4] += e * e * kk + 2 * e * kk2 + kk4
            information[5, 4] += f * (e * kk + kk2)
            information[5, 5] += f * f * kk
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
def visit(frame, noise, optics, spots, j, limits, bright, curvature):  # pragma: no cover
    """One Fisher scoring step for spot j, with the others fixed; the model is updated.

    frame: image and model (Z, Y, X) f4; limits: largest move of a spot, in widths, and whether it ever rests;
    bright: normal prior of the amplitude, its mean and weight; curvature (2, 3) f8: information and score on
    the shared ln widths, to which those of a spot that never rests are added. Returns by how much the step
    was expected to lessen the squared deviations.
    """
    s = spots[j]
    information, score, sums = np.empty((6, 6)), np.empty(6), np.empty(5)
    _weigh(frame, noise, optics, s, information, score, sums)
    before, gain = spots[j : j + 1].copy(), 0.0
    if sums[3] < 4 or not information[0, 0] > 1e-12 or not math.isfinite(score[0]):
        s[AMPLITUDE], s[ERROR] = 0.0, 1e9
        paint(frame[1], before, 0, optics, -1.0, 0.0)
        return 0.0
    amplitude, alone, variance = s[AMPLITUDE], information[0, 0], 1 / information[0, 0]
    if amplitude == 0:
        s[AMPLITUDE] = max(score[0] / alone, 0.0)
        gain = s[AMPLITUDE] * score[0]
    else:
        prior = min(optics.sizes, _DIM_SIZE) if amplitude < _DIM * s[ERROR] else optics.sizes
        own, pull = _own(information, score, optics, prior, s[LOG_SIZE])
        own[0, 0], pull[0] = own[0, 0] + bright[1], pull[0] + bright[1] * (bright[0] - amplitude)
        for u in range(5):
            own[u, u] = own[u, u] * (1 + 1e-6) + 1e-12 + _PLACE_PRIOR * (0 < u < 4)
        _hold_at_walls(own, pull, s, frame[0].shape)
        invert(own)
        move = own @ pull
        if math.isfinite(move[0] + move[1] + move[2] + move[3] + move[4]) and own[0, 0] > 0:
            variance = own[0, 0]
            gain = move @ pull
            if gain < _NOTHING * limits[1]:
                return gain
            most = 5 * amplitude + 5 / math.sqrt(alone)
            s[AMPLITUDE] = min(max(amplitude + move[0], 0.2 * amplitude), most)
            size = math.exp(s[LOG_SIZE])
            for axis in range(1 if optics.flat else 0, 3):
                most = limits[0] * max(optics.sigma[axis] * size, 0.5)
                place = s[1 + axis] + min(max(move[1 + axis], -most), most)
                s[1 + axis] = min(max(place, -_BEYOND), frame[0].shape[axis] - 1 + _BEYOND)
            s[LOG_SIZE] = min(max(s[LOG_SIZE] + min(max(move[4], -0.15), 0.15), -0.7), 0.9)
        if limits[1] == 0:
            _shared(information, score, curvature)
    s[ERROR] = math.sqrt(variance)
    s[MISFIT] = (sums[0] - sums[1]) / max(sums[2], 1e-9)
    voxels = max(alone * sums[1] / sums[3], 1.0)  # that a spot is seen on
    s[REACH] = reach_of(s[AMPLITUDE], math.sqrt(max(sums[1] / sums[3], 1e-12) / voxels), optics.profile)
    paint(frame[1], before, 0, optics, -1.0, 0.0)
    paint(frame[1], spots, j, optics, 1.0, 0.0)
    return gain


@njit(nogil=True, cache=True)
def sweep(frame, noise, optics, spots, which, limits, bright, curvature):  # pragma: no cover
    """Update the active spots once; curvature (2, 3) f8 is added to.

    which: order (n,) of visits, active (n,) bool, and the neighbours of spot j, near[start[j]:start[j + 1]],
    which a spot wakes when its step is expected to lessen the squared deviations by limits[1]; limits and
    bright as for `visit`, the latter for spots that have neighbours.
    """
    order, active, start, near = which
    for j in order:
        if not active[j]:
            continue
        prior = bright if start[j] < start[j + 1] else (0.0, 0.0)
        active[j] = visit(frame, noise, optics, spots, j, limits, prior, curvature) >= limits[1]
        if active[j]:
            for k in range(start[j], start[j + 1]):
                active[near[k]] = True


@njit(nogil=True, cache=True, error_model="numpy")
def errors(frame, noise, optics, spots):  # pragma: no cover
    """(n, 5) f8: standard errors of z, y, x and ln size given the other spots, and reduced chi-square."""
    out = np.zeros((len(spots), 5))
    information, score, sums = np.empty((6, 6)), np.empty(6), np.empty(5)
    for j in range(len(spots)):
        _weigh(frame, noise, optics, spots[j], information, score, sums)
        own, _ = _own(information, score, optics, optics.sizes, 0.0)
        for u in range(5):
            own[u, u] = own[u, u] * (1 + 1e-6) + 1e-12
        invert(own)
        for u in range(4):
            out[j, u] = math.sqrt(max(own[1 + u, 1 + u], 0.0))
        out[j, 4] = sums[4] / max(sums[3] - 4, 1.0)
    return out
