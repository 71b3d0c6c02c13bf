"""CPU kernels of the joint fit: update one spot by a scoring step, with the others fixed.

Serial and without the GIL. The spots of a frame are updated in a fixed order, so no result depends on
threads. Voxels that are not finite are ignored.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .joint_cpu import (
    AMPLITUDE,
    DX,
    DY,
    DZ,
    ERROR,
    FAR,
    HALO,
    LARGEST,
    LEFT,
    LEVEL,
    LIGHT,
    LOG_SIZE,
    MEAN,
    MISFIT,
    NEAREST,
    QUICK,
    REACH,
    SQUARE,
    STEEP,
    STEP,
    WEIGHT,
    Z,
    box,
    core_edge,
    look,
    paint,
    paint_as_seen,
    reach_of,
    room_for,
)

_F4 = np.float32
_PLACE_PRIOR = 4.0  # a step of half a voxel costs 1/2: it damps steps, not estimates
_BEYOND = 0.5  # voxels that a spot may be beyond the centre of the last one
_DIM = 8.0  # standard errors below which the size of a spot is not its own
_DIM_SIZE = 0.02
_STALE = 0.02  # of a spot's noise: a change of its far light that is not painted; .1 costs .01 of JSC
_NOTHING = 0.05  # of the gain at which a spot rests, below which it does not even move


@njit(nogil=True, cache=True, error_model="numpy")
def _repaint(model, before, spot, optics, table, noise):  # pragma: no cover
    """Replace the light of a spot: its core, and what is far if it has changed."""
    edge, far = core_edge(optics.profile), spot[FAR:]
    moved = 0.0
    for u in range(1 if optics.flat else 0, 3):
        moved += ((spot[Z + u] - far[Z + u]) / optics.sigma[u]) ** 2
    change = NEAREST * math.sqrt(moved) + HALO * abs(spot[LOG_SIZE] - far[LOG_SIZE])
    if edge * (abs(spot[AMPLITUDE] - far[AMPLITUDE]) + far[AMPLITUDE] * change) > _STALE * noise:
        paint_as_seen(model, before, optics, table, -1.0)
        spot[REACH] = reach_of(spot[AMPLITUDE], noise, optics.profile)
        far[:] = spot[: LOG_SIZE + 1]
        if spot[REACH] <= NEAREST:
            far[AMPLITUDE] = 0.0
        paint_as_seen(model, spot, optics, table, 1.0)
    else:
        less = edge if far[AMPLITUDE] > 0 else 0.0
        paint(model, before, -before[AMPLITUDE], optics, table, (0.0, HALO, 0.0, less))
        paint(model, spot, spot[AMPLITUDE], optics, table, (0.0, HALO, 0.0, less))


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


@njit(nogil=True, cache=True, error_model="numpy", fastmath=QUICK)
def _weigh(frame, noise, optics, spot, room, out):  # pragma: no cover
    """Fisher information (6, 6) and score (6,) of amplitude, z, y, x, ln widths in plane and along z.

    The model contains all spots. out: information, score, and sums (5,): squared residuals, variances,
    squared light, voxels, weighted squared residuals.
    """
    cells, (information, score, sums) = room[0], out
    n = look(frame, noise.top, optics, spot, room)
    amplitude, level, blur = _F4(spot[AMPLITUDE]), _F4(spot[LEVEL]), _F4(optics.blur)
    base, slope, least = _F4(noise.base), _F4(noise.slope), _F4(noise.least)
    dz, dy, dx, left, mean = cells[DZ], cells[DY], cells[DX], cells[LEFT], cells[MEAN]
    p, plane, along, weight = cells[LIGHT], cells[STEEP], cells[SQUARE], cells[WEIGHT]
    squares = variances = lights = weighted = _F4(0)
    for k in range(n):
        own = amplitude * p[k]
        light = blur * (own + max(mean[k] - own - level, _F4(0)))
        v = max(base + slope * mean[k], least)
        weight[k] = _F4(1) / (v + light * light)
        squares += left[k] * left[k]
        variances += v
        lights += own * own
        weighted += weight[k] * left[k] * left[k]
    sums[0], sums[1], sums[2], sums[3], sums[4] = squares, variances, lights, n, weighted
    for k in range(n):  # the derivatives of light take the place of offsets, table and square
        steep, z, y, x = _F4(-2 / STEP) * amplitude * plane[k], dz[k], dy[k], dx[k]
        dz[k], dy[k], dx[k] = steep * z, steep * y, steep * x
        plane[k], along[k] = steep * (y * y + x * x), steep * z * z
    (nz, ny, nx), _ = box(spot, optics, frame[0].shape, 1.0)
    for u, (row, unit) in enumerate(
        ((LIGHT, 1.0), (DZ, nz), (DY, ny), (DX, nx), (STEEP, 1.0), (SQUARE, 1.0))
    ):
        a = b = c = d = e = f = g = _F4(0)
        for k in range(n):
            h = weight[k] * cells[row, k]
            a, b, c, d = a + h * p[k], b + h * dz[k], c + h * dy[k], d + h * dx[k]
            e, f, g = e + h * plane[k], f + h * along[k], g + h * left[k]
        information[u] = (unit * a, unit * nz * b, unit * ny * c, unit * nx * d, unit * e, unit * f)
        score[u] = unit * g


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
def visit(frame, noise, optics, s, limits, bright, curvature, room):  # pragma: no cover
    """One Fisher scoring step for a spot, with the others fixed; the model is updated.

    frame: image and model (Z, Y, X) f4; limits: largest move of a spot, in widths, and whether it ever rests;
    bright: normal prior of the amplitude, its mean and weight; curvature (2, 3) f8: information and score on
    the shared ln widths, to which those of a spot that never rests are added; room: as `room_for` makes it.
    Returns by how much the step was expected to lessen the squared deviations.
    """
    information, score, sums = np.empty((6, 6)), np.empty(6), np.empty(5)
    _weigh(frame, noise, optics, s, room, (information, score, sums))
    before, gain = s.copy(), 0.0
    if sums[3] < 4 or not information[0, 0] > 1e-12 or not math.isfinite(score[0]):
        s[AMPLITUDE], s[ERROR] = 0.0, 1e9
        _repaint(frame[1], before, s, optics, room[1], 0.0)
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
            s[LOG_SIZE] = min(max(s[LOG_SIZE] + min(max(move[4], -0.15), 0.15), -0.7), LARGEST)
        if limits[1] == 0:
            _shared(information, score, curvature)
    s[ERROR] = math.sqrt(variance)
    s[MISFIT] = (sums[0] - sums[1]) / max(sums[2], 1e-9)
    voxels = max(alone * sums[1] / sums[3], 1.0)  # that a spot is seen on
    _repaint(frame[1], before, s, optics, room[1], math.sqrt(max(sums[1] / sums[3], 1e-12) / voxels))
    return gain


@njit(nogil=True, cache=True)
def sweep(frame, noise, optics, spots, which, limits, bright, curvature):  # pragma: no cover
    """Update the active spots once; curvature (2, 3) f8 is added to.

    which: order (n,) of visits, active (n,) bool, and the neighbours of spot j, near[start[j]:start[j + 1]],
    which a spot wakes when its step is expected to lessen the squared deviations by limits[1]; limits and
    bright as for `visit`, the latter for spots that have neighbours.
    """
    (order, active, start, near), room = which, room_for(frame[0].shape, optics)
    for j in order:
        if not active[j]:
            continue
        prior = bright if start[j] < start[j + 1] else (0.0, 0.0)
        active[j] = visit(frame, noise, optics, spots[j], limits, prior, curvature, room) >= limits[1]
        if active[j]:
            for k in range(start[j], start[j + 1]):
                active[near[k]] = True


@njit(nogil=True, cache=True, error_model="numpy")
def errors(frame, noise, optics, spots):  # pragma: no cover
    """(n, 5) f8: standard errors of z, y, x and ln size given the other spots, and reduced chi-square."""
    out, room = np.zeros((len(spots), 5)), room_for(frame[0].shape, optics)
    information, score, sums = np.empty((6, 6)), np.empty(6), np.empty(5)
    for j in range(len(spots)):
        _weigh(frame, noise, optics, spots[j], room, (information, score, sums))
        own, _ = _own(information, score, optics, optics.sizes, 0.0)
        for u in range(5):
            own[u, u] = own[u, u] * (1 + 1e-6) + 1e-12
        invert(own)
        for u in range(4):
            out[j, u] = math.sqrt(max(own[1 + u, 1 + u], 0.0))
        out[j, 4] = sums[4] / max(sums[3] - 4, 1.0)
    return out
