"""CPU kernels of the Anscombe transform and its inverse, on flat arrays.

Serial and without the GIL. `line`: intercept, slope and least value of the variance of camera noise.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import inner_kernel, kernel


@inner_kernel
def transformed(value, line):  # pragma: no cover
    """A grey value in units of the noise; not-a-number stays what it is, and no branch slows a row."""
    base, slope, least = np.float32(line[0]), np.float32(line[1]), np.float32(line[2])
    variance = base + slope * value
    below = variance < least
    bright, dark = least if below else variance, variance - least if below else np.float32(0)
    return (np.float32(2) * math.sqrt(bright) + dark / math.sqrt(least)) / slope


@kernel
def to_noise(values, out, line):  # pragma: no cover
    """Grey values in units of the noise."""
    base, slope, least = line
    if slope == 0:
        for i in range(len(values)):
            out[i] = values[i] / math.sqrt(max(base, least))
    else:
        for i in range(len(values)):
            out[i] = transformed(values[i], line)


@kernel
def to_grey(values, out, line):  # pragma: no cover
    """The inverse of `to_noise`."""
    base, slope, least = line
    root, unit = math.sqrt(least), math.sqrt(max(base, least))
    for i in range(len(values)):
        if slope == 0:
            out[i] = values[i] * unit
            continue
        bright = values[i] * slope / 2
        variance = bright * bright if bright >= root else least + 2 * (bright - root) * root
        out[i] = (variance - base) / slope


@inner_kernel
def stand_out(light, dark, values, line):  # pragma: no cover
    """Turn light on a background into what it adds in units of the noise.

    dark, values: the background in grey values and in units of the noise.
    """
    base, slope, least = line
    unit, zero = np.float32(math.sqrt(max(base, least))), np.float32(0)
    for i in range(len(light)):
        value = dark[i] + light[i]
        high = (value / unit if slope == 0 else transformed(value, line)) - values[i]
        light[i] = high if light[i] != 0 else zero
