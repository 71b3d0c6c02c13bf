"""CPU kernels of significance: the null error of an amplitude, and the overlap of spots.

Serial and without the GIL; each spot writes a separate row.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .joint_cpu import AMPLITUDE, LEVEL, STEP, WINDOW, X, Y, Z, box, chord, invert


@njit(nogil=True, cache=True, error_model="numpy")
def absent(frame, noise, optics, spots, rows, halo, trust):  # pragma: no cover
    """(n, 2) f8: standard error of an amplitude if the spot does not exist, and skewness of its estimate.

    rows (n,) i8: the spots; halo: light beyond the cores, (Z, y, X) f4, and its first row; trust: relative
    errors of the light of other spots and of their halos.
    """
    image, model = frame
    light_of_halos, first = halo
    out = np.zeros((len(rows), 2))
    for k in range(len(rows)):
        s = spots[rows[k]]
        (nz, ny, nx), (z0, z1, y0, y1) = box(s, optics, image.shape, math.sqrt(WINDOW))
        total = cubed = squared = others = halos = 0.0
        for z in range(z0, z1):
            dz = ((z - s[Z]) * nz) ** 2
            for y in range(y0, y1):
                dy = dz + ((y - s[Y]) * ny) ** 2
                x0, x1 = chord(s, dy, WINDOW, nx, image.shape[2])
                for x in range(x0, x1):
                    if not math.isfinite(image[z, y, x]):
                        continue
                    q = (dy + ((x - s[X]) * nx) ** 2) / STEP
                    i = int(q)
                    p = optics.profile[i] + (optics.profile[i + 1] - optics.profile[i]) * (q - i)
                    mean = model[z, y, x] - s[AMPLITUDE] * p
                    light = max(mean - s[LEVEL], 0.0)
                    v = max(noise.base + noise.slope * mean, noise.least)
                    w = p / (v + (optics.blur * light) ** 2)
                    total += p * w
                    others += light * w
                    row = y - first
                    if 0 <= row < light_of_halos.shape[1]:
                        halos += light_of_halos[z, row, x] * w
                    cubed += w * w * w * noise.slope * v
                    squared += w * w * v
        total = max(total, 1e-12)
        wrong = (trust[0] * others / total) ** 2 + (trust[1] * halos / total) ** 2
        out[k, 0] = math.sqrt(1 / total + wrong)
        out[k, 1] = cubed / max(squared, 1e-12) ** 1.5
    return out


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
