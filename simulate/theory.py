"""Theory: linking accuracy of a simulated movie, computed without simulating it.

Lengths are in units of density^(-1/3): the density is 1, and kappa, the standard deviation of a step along
one axis times density^(1/3), is that standard deviation itself.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from .scenes import Scene

_DRAWS = 20_000
_INSIDE = 256

OPTIMAL = {0.05: 0.9996, 0.10: 0.991, 0.15: 0.973, 0.20: 0.931, 0.30: 0.766, 0.40: 0.465}
"""Share of right links of the optimal assignment of frame pairs without births, by kappa; simulated."""

PREDICTED = {0.0: 0.75, 1.0: 0.80, 3.0: 0.92, 10.0: 0.97}
"""The same at kappa .3 with a one-step velocity prediction, by persistence in frames."""


def nearest(kappa: float) -> float:
    r"""Share of Brownian particles whose nearest neighbour in the next frame is their own successor.

    The formula holds without walls, for Gaussian steps with standard deviation kappa along each of three
    axes:

    .. math:: E[\exp(-\tfrac43 \pi \kappa^3 R^3)], \quad R \sim \chi_3

    Examples
    --------
    >>> [round(nearest(kappa), 3) for kappa in (0.05, 0.1, 0.2, 0.4)]
    [0.997, 0.974, 0.831, 0.415]
    """

    def integrand(r: float) -> float:
        return sqrt(2 / pi) * r * r * np.exp(-r * r / 2 - 4 / 3 * pi * (kappa * r) ** 3)

    return float(quad(integrand, 0, np.inf)[0])


def swapped(kappa: float) -> float:
    r"""Share of wrong links of an optimal assignment, when few are wrong: swaps of two particles that pass.

    An optimal assignment swaps the successors of two particles if the swapped links have the smaller sum
    of squared distances. The probability of such a swap is :math:`\tfrac{16}{3} \sqrt{\pi} \kappa^3` for
    each particle; longer cycles add terms of order kappa to the sixth.

    Examples
    --------
    >>> round(swapped(0.1), 4)
    0.0095
    """
    return 16 / 3 * sqrt(pi) * kappa**3


def nearest_precision(scene: Scene) -> float:
    """Share of right links of a Brownian movie if each detection is followed by the nearest one after it.

    In contrast to `nearest`, this function includes everything in a scene: reflecting walls with no
    particles beyond them, localisation noise, births and deaths, misses and clutter. The mean over steps
    and positions is taken over 20,000 draws, always the same ones, so its own error is up to .003.

    Examples
    --------
    >>> free = Scene(kappa=0.2, noise=0.0, turnover=0.0, particles=1_000_000)
    >>> abs(nearest_precision(free) - nearest(0.2)) < 0.005
    True
    """
    rng = np.random.default_rng(0)
    side = scene.particles ** (1 / 3)
    start = rng.uniform(0, side, (_DRAWS, 3))
    end = np.mod(start + rng.normal(0, scene.kappa, start.shape), 2 * side)
    end = np.minimum(end, 2 * side - end)  # walls reflect it
    start += rng.normal(0, scene.noise, start.shape)
    end += rng.normal(0, scene.noise, start.shape)
    radius = np.linalg.norm(end - start, axis=1)
    others = 1 - scene.miss + scene.clutter
    alone = np.exp(-others * 4 / 3 * pi * radius**3 * _inside(start, radius, side)).mean()
    # The detection is of a true particle, which survives and is detected again.
    seen = (1 - scene.miss) / others * (1 - scene.turnover) * (1 - scene.miss)
    return float(seen * alone)


def _inside(centre: NDArray[np.float64], radius: NDArray[np.float64], side: float) -> NDArray[np.float64]:
    """Share of the volume of each ball that lies within the box."""
    rng = np.random.default_rng(1)
    direction = rng.normal(size=(_INSIDE, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    # Points evenly spread over the volume: the radius from its quantiles.
    offset = direction * (((np.arange(_INSIDE) + 0.5) / _INSIDE) ** (1 / 3))[:, None]
    share = np.zeros(len(centre))
    for one in offset:
        point = centre + radius[:, None] * one
        share += ((point >= 0) & (point <= side)).all(axis=1)
    return share / _INSIDE
