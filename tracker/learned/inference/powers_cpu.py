"""CPU kernels of exponentials and powers, by series: relative error below 1e-7, three times as quick as libm.

They are for weights of links, which are known far less well; normal numbers alone are asked for.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ...compute.kernels import inner_kernel, kernel

LOG2 = math.log(2)
HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2): series of logarithms are from there to sqrt(2)
BITS = np.finfo(np.float64).nmant  # of the fraction of a float64
BIAS = 1023  # what its exponent is counted from


@inner_kernel(error_model="numpy", forceinline=True)
def exp2(x):  # pragma: no cover
    """2^x, for |x| below 1000."""
    whole = np.floor(x + 0.5)
    f = (x - whole) * LOG2
    series = 1 + f * (1 + f * (1 / 2 + f * (1 / 6 + f * (1 / 24 + f * (1 / 120 + f * (1 / 720 + f / 5040))))))
    return series * np.int64((np.int64(whole) + BIAS) << BITS).view(np.float64)


@inner_kernel(error_model="numpy", forceinline=True)
def gauss(square):  # pragma: no cover
    """exp(-square / 2), for squares below 1300."""
    return exp2(-0.5 / LOG2 * square)


@inner_kernel(error_model="numpy", forceinline=True)
def log2(x):  # pragma: no cover
    """Logarithm of a normal number above 0."""
    bits = np.float64(x).view(np.int64)
    whole = (bits - HALF_ROOT) >> BITS
    fraction = np.int64(bits - (whole << BITS)).view(np.float64)
    t = (fraction - 1) / (fraction + 1)
    u = t * t
    series = 1 + u * (1 / 3 + u * (1 / 5 + u * (1 / 7 + u * (1 / 9 + u / 11))))
    return whole + 2 / LOG2 * t * series


@kernel(error_model="numpy")
def raised(values, exponent):  # pragma: no cover
    """Powers (N,) f8 of positive values (N,) f8."""
    powers = np.empty(len(values))
    for i in range(len(values)):
        powers[i] = exp2(exponent * log2(values[i]))
    return powers
