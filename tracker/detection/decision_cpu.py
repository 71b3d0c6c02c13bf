"""CPU kernels of the mixture of noise and spots: its posterior, and the fit of its parameters.

Serial and without the GIL. `noise`: rows of heights, which are evenly spaced, of the expected maxima of
noise above each, of the logarithm of their density, and of its slope. theta: see `decision.Mixture`.
"""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

import math

import numpy as np

from ..compute.kernels import inner_kernel, kernel

_ROUNDS = 200
"""Guard: steps of the fit."""
_HALVINGS = 30
"""Guard: shorter steps that are tried."""
_SUFFICIENT = 1e-4
"""Guard: least fall of the loss, relative to what the slope promises (Armijo)."""
_SHORTER = 0.4
"""Guard: ratio of a step to the one tried before."""
_CLOSE = 1e-10
"""Guard: relative fall of the loss that ends the fit."""
_FLAT = 1e-5
"""Guard: slope that ends the fit."""
_LOG_ROOT = 0.5 * math.log(2 * math.pi)


@inner_kernel
def looked_up(noise, row, height):  # pragma: no cover
    """A value of the table, linear between its heights; beyond them that at the ends."""
    step = (noise[0, -1] - noise[0, 0]) / (noise.shape[1] - 1)
    at = min(max((height - noise[0, 0]) / step, 0.0), noise.shape[1] - 1.0)
    low = min(int(at), noise.shape[1] - 2)
    return noise[row, low] + (at - low) * (noise[row, low + 1] - noise[row, low])


@inner_kernel
def loss_of(theta, u, low, noise, unequal, by, gradient):  # pragma: no cover
    """Negative logarithm of the posterior of significances u above `low`; its gradient (5,) in place."""
    wide, share, number, mean, log_sd = theta
    sd, tail = math.exp(log_sd), math.exp(wide)
    edge, total = (mean - math.log(low)) / sd, 0.0
    gradient[:] = 0.0
    for value in u:
        t, h = (math.log(value) - mean) / sd, value / tail
        dark = share - wide + looked_up(noise, 2, h)
        spot = number - t * t / 2 - math.log(value) - log_sd - _LOG_ROOT
        both = max(dark, spot) + math.log1p(math.exp(-abs(dark - spot)))
        p = math.exp(spot - both)
        total += both
        gradient[0] += (1 - p) * (1 + h * looked_up(noise, 3, h))
        gradient[1] -= 1 - p
        gradient[2] -= p
        gradient[3] -= p * t / sd
        gradient[4] -= p * (t * t - 1)
    false = math.exp(share) * looked_up(noise, 1, low / tail)
    spots, at_edge = (
        math.exp(number) * 0.5 * math.erfc(-edge / math.sqrt(2.0)),
        math.exp(number - edge**2 / 2),
    )
    at_edge /= math.sqrt(2 * math.pi)
    away = (log_sd - math.log(unequal)) / by
    gradient[0] += math.exp(share + looked_up(noise, 2, low / tail)) * low / tail
    gradient[1] += false
    gradient[2] += spots
    gradient[3] += at_edge / sd
    gradient[4] += away / by - at_edge * edge
    return false + spots - total + away * away / 2


@kernel
def fitted_mixture(start, bounds, u, low, noise, unequal, by):  # pragma: no cover
    """Parameters (5,) within bounds (2, 5) of the least loss, and the loss: projected BFGS steps."""
    n, x = len(start), np.minimum(np.maximum(start, bounds[0]), bounds[1])
    slope, there = np.zeros(n), np.zeros(n)
    inverse = np.eye(n) / (1 + len(u))
    loss = loss_of(x, u, low, noise, unequal, by, slope)
    for _ in range(_ROUNDS):
        held = ((x <= bounds[0]) & (slope > 0)) | ((x >= bounds[1]) & (slope < 0))
        free = np.where(held, 0.0, slope)
        if np.abs(free).max() < _FLAT:
            break
        step = np.zeros(n)
        for i in range(n):
            for j in range(n):
                step[i] -= 0.0 if held[i] else inverse[i, j] * free[j]
        if np.sum(step * free) >= 0:
            inverse, step = np.eye(n) / (1 + len(u)), -free / (1 + len(u))
        length, ahead, fallen = 1.0, x, loss
        for _ in range(_HALVINGS):
            ahead = np.minimum(np.maximum(x + length * step, bounds[0]), bounds[1])
            fallen = loss_of(ahead, u, low, noise, unequal, by, there)
            if fallen <= loss + _SUFFICIENT * np.sum(slope * (ahead - x)):
                break
            length *= _SHORTER
        if not fallen < loss:
            break
        moved, bent = ahead - x, there - slope
        curved = np.sum(moved * bent)
        if curved > 0:
            row = np.zeros(n)
            for i in range(n):
                row[i] = np.sum(inverse[i] * bent)
            square = (1 + np.sum(bent * row) / curved) / curved
            for i in range(n):
                for j in range(n):
                    both = row[i] * moved[j] + moved[i] * row[j]
                    inverse[i, j] += square * moved[i] * moved[j] - both / curved
        done = loss - fallen < _CLOSE * max(abs(loss), 1.0)
        x, loss = ahead, fallen
        slope[:] = there
        if done:
            break
    return x, loss
