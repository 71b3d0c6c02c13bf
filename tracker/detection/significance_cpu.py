"""CPU kernels of significance: the null error of an amplitude, and the overlap of spots.

Serial and without the GIL; each spot writes a separate row.
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
    ENTRIES,
    HALO,
    LEVEL,
    LIGHT,
    LOG_SIZE,
    MEAN,
    QUICK,
    REACH,
    STEP,
    WEIGHT,
    WINDOW,
    X,
    Y,
    Z,
    look,
    room_for,
)
from .scoring_cpu import invert


@njit(nogil=True, cache=True, error_model="numpy", fastmath=QUICK)
def absent(frame, noise, optics, spots, rows, wide, trust):  # pragma: no cover
    """(n, 2) f8: standard error of an amplitude if the spot does not exist, and skewness of its estimate.

    rows (n,) i8: the spots; wide (m,) i8: those that shine beyond their core, sorted along y; trust: relative
    errors of the light of other spots and of their halos.
    """
    out, room, reach = np.zeros((len(rows), 2)), room_for(frame[0].shape, optics), 0.0
    cells, table = room
    p, weight = cells[LIGHT], cells[WEIGHT]
    y, x = np.empty(len(wide)), np.empty(len(wide))
    for k in range(len(wide)):
        s = spots[wide[k]]
        y[k], x[k] = s[Y], s[X]
        reach = max(reach, s[REACH] * math.exp(s[LOG_SIZE]))
    for k in range(len(rows)):
        s = spots[rows[k]]
        n = look(frame, np.inf, optics, s, room)
        base, slope, least = np.float32(noise.base), np.float32(noise.slope), np.float32(noise.least)
        amplitude, level, blur = np.float32(s[AMPLITUDE]), np.float32(s[LEVEL]), np.float32(optics.blur)
        total = cubed = squared = others = halos = np.float32(0)
        for i in range(n):
            mean = cells[MEAN, i] - amplitude * p[i]
            light = max(mean - level, np.float32(0))
            v = max(base + slope * mean, least)
            weight[i] = w = p[i] / (v + (blur * light) ** 2)
            total += p[i] * w
            others += light * w
            cubed += w * w * w * slope * v
            squared += w * w * v
        far = (reach + math.sqrt(WINDOW) * math.exp(s[LOG_SIZE])) * optics.sigma
        for i in range(np.searchsorted(y, s[Y] - far[1]), np.searchsorted(y, s[Y] + far[1])):
            if abs(x[i] - s[X]) < far[2]:
                halos += _halo(s, spots[wide[i]], optics, cells, table, n)
        total = max(total, np.float32(1e-12))
        wrong = (trust[0] * others / total) ** 2 + (trust[1] * halos / total) ** 2
        out[k, 0] = math.sqrt(1 / total + wrong)
        out[k, 1] = cubed / max(squared, np.float32(1e-12)) ** 1.5
    return out


@njit(nogil=True, cache=True, error_model="numpy", fastmath=QUICK)
def _halo(spot, other, optics, cells, table, n):  # pragma: no cover
    """The light of another spot beyond its core, summed over the n cells of a spot with their weights."""
    size, its = math.exp(spot[LOG_SIZE]), math.exp(other[LOG_SIZE])
    z = 0.0 if optics.flat else (spot[Z] - other[Z]) / optics.sigma[0] / its
    y, x = (spot[Y] - other[Y]) / optics.sigma[1] / its, (spot[X] - other[X]) / optics.sigma[2] / its
    if math.sqrt(z * z + y * y + x * x) > other[REACH] + math.sqrt(WINDOW) * size / its:
        return np.float32(0)
    away, ratio, most = (
        (np.float32(z), np.float32(y), np.float32(x)),
        np.float32(size / its),
        other[REACH] ** 2,
    )
    inner, outer = np.float32(HALO / STEP), np.float32(min(most, STEP * (ENTRIES - 1.001)) / STEP)
    light = np.float32(0)
    for i in range(n):
        dz, dy = away[0] + ratio * cells[DZ, i], away[1] + ratio * cells[DY, i]
        dx = away[2] + ratio * cells[DX, i]
        q = (dz * dz + dy * dy + dx * dx) * np.float32(1 / STEP)
        k = np.int32(min(q, outer))
        p = table[k, 0] + table[k, 1] * (q - np.float32(k))
        light += cells[WEIGHT, i] * p if inner <= q < outer else np.float32(0)
    return np.float32(other[AMPLITUDE]) * light


@njit(nogil=True, cache=True)
def negative(response, spread, light):  # pragma: no cover
    """(3,) f8: sums for the model's error where the residual is negative in bright light, and their number.

    response, spread, light (Z, y, X) f4: the residual after the filter, its variance, and the light of spots.
    """
    sums = np.zeros(3)
    for z in range(response.shape[0]):
        for y in range(response.shape[1]):
            for x in range(response.shape[2]):
                r, d, g = response[z, y, x], spread[z, y, x], light[z, y, x] ** 2
                if r < 0 and g > 4 * d:
                    w = 1 / (d + 0.01 * g) ** 2
                    sums[0] += w * (r * r - 0.9 * d) * g
                    sums[1] += w * g * g
                    sums[2] += 1
    return sums


@njit(nogil=True, cache=True, error_model="numpy")
def overlap(place, rows, start, near):  # pragma: no cover
    """(n,) f8: factor by which the overlap with neighbours increases the variance of an amplitude.

    place (m, d) f8 in widths; rows (n,): the spots; start (n+1,), near: the neighbours of each. The factor is
    1 / (1 - c' G⁻¹ c), where G contains the overlaps of unit Gaussians and of their derivatives along each
    axis: the amplitudes and positions of neighbours are free parameters.
    """
    d = place.shape[1]
    out = np.ones(len(rows))
    for j in range(len(rows)):
        m = start[j + 1] - start[j]
        if m == 0:
            continue
        n = m * (1 + d)
        gram, c, away = np.zeros((n, n)), np.zeros(n), np.zeros(d)
        for u in range(m):
            one = near[start[j] + u]
            q = 0.0
            for a in range(d):
                away[a] = place[one, a] - place[rows[j], a]
                q += away[a] ** 2
            c[u] = math.exp(-q / 4)
            for a in range(d):
                c[m + a * m + u] = -away[a] / 2 * c[u]
        for u in range(m):
            for k in range(m):
                q = 0.0
                for a in range(d):
                    away[a] = place[near[start[j] + u], a] - place[near[start[j] + k], a]
                    q += away[a] ** 2
                e = math.exp(-q / 4)
                gram[u, k] = e
                for a in range(d):
                    gram[u, m + a * m + k] = gram[m + a * m + k, u] = away[a] / 2 * e
                    for b in range(d):
                        gram[m + a * m + u, m + b * m + k] = ((a == b) / 2 - away[a] * away[b] / 4) * e
        for u in range(n):
            gram[u, u] += 1e-3
        invert(gram)
        explained = 0.0
        for u in range(n):
            for k in range(n):
                explained += c[u] * gram[u, k] * c[k]
        out[j] = 1 / max(1 - explained, 1e-3)
    return out
