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


@inner_kernel
def looked_up(noise, row, height):  # pragma: no cover
    """A value of the table, linear between its heights; beyond them that at the ends."""
    step = (noise[0, -1] - noise[0, 0]) / (noise.shape[1] - 1)
    at = min(max((height - noise[0, 0]) / step, 0.0), noise.shape[1] - 1.0)
    low = min(int(at), noise.shape[1] - 2)
    return noise[row, low] + (at - low) * (noise[row, low + 1] - noise[row, low])


@inner_kernel
def loss_of(theta, u, logs, low, noise, unequal, by, gradient):  # pragma: no cover
    """Negative logarithm of the posterior of significances u above `low`; its gradient (5,) in place."""
    wide, share, number, mean, log_sd = theta[0], theta[1], theta[2], theta[3], theta[4]
    sd, tail = math.exp(log_sd), math.exp(wide)
    edge, total, log_root = (mean - math.log(low)) / sd, 0.0, 0.5 * math.log(2 * math.pi)
    gradient[:] = 0.0
    for i in range(len(u)):
        t, h = (logs[i] - mean) / sd, u[i] / tail
        dark = share - wide + looked_up(noise, 2, h)
        spot = number - t * t / 2 - logs[i] - log_sd - log_root
        both = max(dark, spot) + math.log1p(math.exp(-abs(dark - spot)))
        p = math.exp(spot - both)
        total += both
        gradient[0] += (1 - p) * (1 + h * looked_up(noise, 3, h))
        gradient[1] -= 1 - p
        gradient[2] -= p
        gradient[3] -= p * t / sd
        gradient[4] -= p * (t * t - 1)
    false = math.exp(share) * looked_up(noise, 1, low / tail)
    spots = math.exp(number) * 0.5 * math.erfc(-edge / math.sqrt(2.0))
    at_edge = math.exp(number - edge**2 / 2) / math.sqrt(2 * math.pi)
    away = (log_sd - math.log(unequal)) / by
    gradient[0] += math.exp(share + looked_up(noise, 2, low / tail)) * low / tail
    gradient[1] += false
    gradient[2] += spots
    gradient[3] += at_edge / sd
    gradient[4] += away / by - at_edge * edge
    return false + spots - total + away * away / 2


@inner_kernel
def clipped(start, length, step, bounds, out):  # pragma: no cover
    """A step from a start, within the bounds, in place."""
    for i in range(len(start)):
        out[i] = min(max(start[i] + length * step[i], bounds[0, i]), bounds[1, i])


@inner_kernel
def downhill(inverse, x, slope, bounds, step):  # pragma: no cover
    """A quasi-Newton step of what no bound holds, in place; returns its product with the slope."""
    rise = 0.0
    for i in range(len(x)):
        step[i] = 0.0
        if not held(x, slope, bounds, i):
            for j in range(len(x)):
                step[i] -= 0.0 if held(x, slope, bounds, j) else inverse[i, j] * slope[j]
            rise += step[i] * slope[i]
    return rise


@inner_kernel
def held(x, slope, bounds, i):  # pragma: no cover
    """Whether a bound holds a parameter."""
    return (x[i] <= bounds[0, i] and slope[i] > 0) or (x[i] >= bounds[1, i] and slope[i] < 0)


@inner_kernel
def bend(inverse, moved, bent, row):  # pragma: no cover
    """Take the change of the slope `bent` by a step into the inverse curvature (BFGS), in place."""
    n, curved, square = len(moved), 0.0, 0.0
    for i in range(n):
        curved += moved[i] * bent[i]
        row[i] = 0.0
        for j in range(n):
            row[i] += inverse[i, j] * bent[j]
        square += bent[i] * row[i]
    if curved <= 0:
        return
    square = (1 + square / curved) / curved
    for i in range(n):
        for j in range(n):
            both = row[i] * moved[j] + moved[i] * row[j]
            inverse[i, j] += square * moved[i] * moved[j] - both / curved


@kernel
def fitted_mixture(start, bounds, u, low, noise, unequal, by):  # pragma: no cover
    """Parameters (5,) within bounds (2, 5) of the least loss, and the loss: projected BFGS steps."""
    n, unit = len(start), 1 / (1 + len(u))
    room, inverse, logs = np.zeros((7, n)), np.zeros((n, n)), np.log(u)
    x, slope, step, ahead, there, moved, row = room[0], room[1], room[2], room[3], room[4], room[5], room[6]
    clipped(start, 0.0, step, bounds, x)
    loss, curved = loss_of(x, u, logs, low, noise, unequal, by, slope), False
    for _ in range(_ROUNDS):
        steepest = 0.0
        for i in range(n):
            steepest = max(steepest, 0.0 if held(x, slope, bounds, i) else abs(slope[i]))
        if steepest < _FLAT:
            break
        if not curved or downhill(inverse, x, slope, bounds, step) >= 0:
            for i in range(n):
                for j in range(n):
                    inverse[i, j] = unit if i == j else 0.0
            downhill(inverse, x, slope, bounds, step)
        curved, length, fallen = True, 1.0, loss
        for _ in range(_HALVINGS):
            clipped(x, length, step, bounds, ahead)
            fallen, promised = loss_of(ahead, u, logs, low, noise, unequal, by, there), 0.0
            for i in range(n):
                promised += slope[i] * (ahead[i] - x[i])
            if fallen <= loss + _SUFFICIENT * promised:
                break
            length *= _SHORTER
        if not fallen < loss:
            break
        done = loss - fallen < _CLOSE * max(abs(loss), 1.0)
        for i in range(n):
            moved[i], step[i] = ahead[i] - x[i], there[i] - slope[i]
            x[i], slope[i] = ahead[i], there[i]
        bend(inverse, moved, step, row)
        loss = fallen
        if done:
            break
    return x.copy(), loss
