"""Null distribution of detection: the expected number of maxima of noise above a height.

The number is the expected Euler characteristic of the set where a smooth Gaussian field exceeds u, Σ_d L_d
ρ_d(u) (Worsley et al., J. Cereb. Blood Flow Metab. 12, 900, 1992). For white noise filtered with a Gaussian
of width σ, the roughness along an axis of n voxels is T = n / (σ√2); L_1, L_2, L_3 are the elementary
symmetric polynomials of T.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

_LEAST_FREE = 0.15  # of the volume that spots leave to noise


def expected_maxima(
    height: NDArray[np.float64], shape: tuple[int, ...], sigma: NDArray[np.float64], free: float = 1.0
) -> NDArray[np.float64]:
    """Expected number of maxima of noise above each height.

    Parameters
    ----------
    height : (n,) float64 array
        In standard deviations.
    shape : tuple of 3 int
        Shape of the frame; an axis of length 1 is not filtered.
    sigma : (3,) float64 array
        Width of the matched filter, in voxels.
    free : float
        Share of the volume without spots.

    Examples
    --------
    >>> expected_maxima(np.array([3.0, 4.0]), (1, 512, 512), np.array([0, 1.5, 1.5])).round(1)
    array([124.1,   5. ])
    """
    u = np.asarray(height, float)
    bell = np.exp(-u * u / 2)
    rough = [n / (s * np.sqrt(2)) for n, s in zip(shape, sigma, strict=True) if n > 1]
    rho = (
        bell / (2 * np.pi),
        u * bell / (2 * np.pi) ** 1.5,
        (u * u - 1) * bell / (2 * np.pi) ** 2,
    )
    first = sum(rough)
    second = (first**2 - sum(t * t for t in rough)) / 2
    third = float(np.prod(rough)) if len(rough) == 3 else 0.0
    return 0.5 * erfc(u / np.sqrt(2)) + free * (first * rho[0] + second * rho[1] + third * rho[2])


def free_share(count: int, shape: tuple[int, ...], sigma: NDArray[np.float64]) -> float:
    """Share of the volume outside `count` spots, each of which occupies a box of 4 widths."""
    deep = [s for s, n in zip(sigma, shape, strict=True) if n > 1]
    around = 4.0 * (4 if len(deep) < 3 else 5)
    return max(1 - count * around * float(np.prod(deep)) / float(np.prod(shape)), _LEAST_FREE)


def spread_below(response: NDArray[np.float32]) -> float:
    """Standard deviation of a response, from its negative values, relative to that of filtered noise."""
    return float(np.sqrt(2 * np.mean(np.minimum(response, 0.0, dtype=np.float64) ** 2)))
