"""CPU kernel of the profile of spots. Serial and without the GIL."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .joint_cpu import AMPLITUDE, ENTRIES, LEVEL, REACH, STEP, X, Y, Z, box, chord


@njit(nogil=True, cache=True, error_model="numpy")
def stack(frame, noise, optics, spots, rows):  # pragma: no cover
    """Mean profile of the spots in `rows`: weighted light, and weights, by distance (56 bins of 1/8)."""
    image, model = frame
    light, weight = np.zeros(56), np.zeros(56)
    for j in rows:
        s = spots[j]
        (nz, ny, nx), (z0, z1, y0, y1) = box(s, optics, image.shape, 7.0)
        amplitude = s[AMPLITUDE]
        for z in range(z0, z1):
            dz = ((z - s[Z]) * nz) ** 2
            for y in range(y0, y1):
                dy = dz + ((y - s[Y]) * ny) ** 2
                x0, x1 = chord(s, dy, 49.0, nx, image.shape[2])
                for x in range(x0, x1):
                    q = dy + ((x - s[X]) * nx) ** 2
                    i = int(q / STEP)
                    seen = image[z, y, x]
                    if i >= ENTRIES - 1 or not seen < noise.top:
                        continue
                    p = 0.0
                    if q < s[REACH] ** 2:
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
