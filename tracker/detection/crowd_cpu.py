"""CPU kernel of crowds: by how much the residual about a spot is longer in a direction than its profile."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from .joint_cpu import AMPLITUDE, LEVEL, STEP, WINDOW, X, Y, Z, box, chord


@njit(nogil=True, cache=True, error_model="numpy")
def moments(frame, noise, optics, spots, rows):  # pragma: no cover
    """(n, 10) f8: weighted second moments (3, 3) of the residual under the profile, and the information.

    frame: image and model (Z, Y, X) f4, with all spots in the model; rows (n,) i8: spots. Distances are in
    widths; the information is the sum of squared profiles over variances.
    """
    image, model = frame
    out, profile, d = np.zeros((len(rows), 10)), optics.profile, np.zeros(3)
    for k in range(len(rows)):
        s = spots[rows[k]]
        (nz, ny, nx), (z0, z1, y0, y1) = box(s, optics, image.shape, math.sqrt(WINDOW))
        for z in range(z0, z1):
            d[0] = (z - s[Z]) * nz
            for y in range(y0, y1):
                d[1] = (y - s[Y]) * ny
                away = d[0] * d[0] + d[1] * d[1]
                x0, x1 = chord(s, away, WINDOW, nx, image.shape[2])
                for x in range(x0, x1):
                    seen, mean = image[z, y, x], model[z, y, x]
                    r = seen - mean
                    if not math.isfinite(r) or (seen >= noise.top and r < 0):
                        continue
                    d[2] = (x - s[X]) * nx
                    q = (away + d[2] * d[2]) / STEP
                    i = int(q)
                    p = profile[i] + (profile[i + 1] - profile[i]) * (q - i)
                    light = optics.blur * max(mean - s[LEVEL], s[AMPLITUDE] * p)
                    w = p / (max(noise.base + noise.slope * mean, noise.least) + light * light)
                    for a in range(3):
                        for b in range(3):
                            out[k, 3 * a + b] += w * r * d[a] * d[b]
                    out[k, 9] += w * p
    return out
