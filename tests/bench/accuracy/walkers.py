"""Kinds of motion in which each particle moves by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outbid import Tracks

from .film import PERFECT, Cast, View, bordered, cast, filmed, folded, reflected, scaled

_WITHIN = 4
"""Steps of a fine simulation in a frame."""

Paths = NDArray[np.float64]


def directions(rng: np.random.Generator, *shape: int) -> Paths:
    """Unit vectors of any direction."""
    drawn = rng.normal(size=shape)
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def held(fresh: NDArray, renewed: NDArray[np.bool_]) -> NDArray:
    """Values (T, M, …) that stay as they were until they are renewed."""
    last = np.maximum.accumulate(np.where(renewed, np.arange(len(fresh))[:, None], 0), axis=0)
    return fresh[last, np.arange(fresh.shape[1])]


def swimming(
    rng: np.random.Generator, steps: int, shape: tuple[int, int], spread: float, spin: float = 0.0
) -> Paths:
    """Directions (steps, M, d) that turn by a random angle of `spread` a step, and `spin` about an axis."""
    found = np.empty((steps, *shape))
    now, pole = directions(rng, *shape), directions(rng, *shape)
    for step in range(steps):
        found[step] = now
        turn = spread * rng.normal(size=shape)
        if spin:
            turn += spin * (np.cross(pole, now) if shape[1] == 3 else now[:, ::-1] * [1, -1])
        now = now + turn
        now /= np.linalg.norm(now, axis=1, keepdims=True)
    return found


def walked(the: Cast, steps: Paths, kappa: float) -> Paths:
    """Positions in each frame from velocities in `_WITHIN` parts of each."""
    path = np.cumsum(steps, axis=0)[:: len(steps) // the.frames]
    return the.start + scaled(path, kappa)


def swum(the: Cast, kappa: float, spread: float = 0.15, spin: float = 0.0) -> Paths:
    """Positions of active Brownian particles."""
    return walked(the, swimming(the.rng, _WITHIN * the.frames, the.shape, spread, spin), kappa)


def switching(first: NDArray[np.bool_], drawn: Paths, on: float, off: float) -> NDArray[np.bool_]:
    """States (T, M) from the first ones, left with probabilities `on` and `off` where the drawn are below."""
    found = np.empty(drawn.shape, bool)
    found[0] = first
    for t in range(1, len(found)):
        found[t] = found[t - 1] ^ (drawn[t] < np.where(found[t - 1], on, off))
    return found


def diffusing(the: Cast, kappa: float) -> Paths:
    """Brownian displacements (T, M, d) from the start."""
    steps = kappa * the.rng.normal(size=(the.frames, *the.shape))
    return np.cumsum(steps, axis=0) - steps[0]


def diffusion(seed: int, kappa: float) -> Tracks:
    """Brownian motion between walls, most of a step's noise from localisation (a fifth of kappa)."""
    the = cast([1, seed])
    return reflected(the, the.start + diffusing(the, kappa), View((kappa / 5,)))


def run_and_tumble(seed: int, kappa: float) -> Tracks:
    """Straight runs of exponential length, six frames in the mean, then any direction."""
    the = cast([2, seed])
    fine = _WITHIN * the.frames
    renewed = the.rng.random((fine, the.shape[0])) < 1 / (6 * _WITHIN)
    return bordered(the, walked(the, held(directions(the.rng, fine, *the.shape), renewed), kappa))


def swimmers(seed: int, kappa: float) -> Tracks:
    """Constant speed, a direction that diffuses (active Brownian particles)."""
    the = cast([3, seed])
    return bordered(the, swum(the, kappa, 0.18))


def swimmers_in_a_layer(seed: int, kappa: float) -> Tracks:
    """Active Brownian particles in two dimensions."""
    the = cast([4, seed], axes=2)
    return bordered(the, swum(the, kappa, 0.18))


def curved(seed: int, kappa: float) -> Tracks:
    """Swimmers on circles and helices, a turn in some eleven frames."""
    the = cast([5, seed])
    return bordered(the, swum(the, kappa, 0.06, spin=0.14))


def rest_and_run(seed: int, kappa: float) -> Tracks:
    """Particles that stand still for ten frames in the mean, then run straight for five."""
    the = cast([6, seed])
    fine, many = _WITHIN * the.frames, the.shape[0]
    drawn = the.rng.random((fine, many))
    running = switching(the.rng.random(many) < 1 / 3, drawn, 1 / 5 / _WITHIN, 1 / 10 / _WITHIN)
    begins = np.vstack([np.ones((1, many), bool), running[1:] & ~running[:-1]])
    steps = held(directions(the.rng, fine, *the.shape), begins) * running[..., None]
    return bordered(the, walked(the, steps + 0.1 * the.rng.normal(size=steps.shape), kappa))


def two_populations(seed: int, kappa: float) -> Tracks:
    """Seven of ten diffuse slowly, three swim seven times as far."""
    the = cast([7, seed])
    fine, many = _WITHIN * the.frames, the.shape[0]
    fast = (the.rng.random(many) < 0.3)[None, :, None]
    swim = swimming(the.rng, fine, the.shape, 0.12)
    return bordered(the, walked(the, np.where(fast, swim, 0.25 * the.rng.normal(size=swim.shape)), kappa))


def long_jumps(seed: int, kappa: float) -> Tracks:
    """Levy flights: step lengths with a Pareto tail of exponent 1.7, cut at eight times the shortest."""
    the = cast([8, seed])
    length = np.minimum(1 + the.rng.pareto(1.7, (the.frames, the.shape[0], 1)), 8)
    path = np.cumsum(directions(the.rng, the.frames, *the.shape) * length, axis=0)
    return reflected(the, the.start + scaled(path, kappa))


def in_wells(seed: int, kappa: float) -> Tracks:
    """Brownian motion in harmonic wells, which it crosses in two frames."""
    the = cast([9, seed])
    kept, path = np.exp(-1 / 2), the.rng.normal(size=(the.frames, *the.shape))
    for t in range(1, the.frames):
        path[t] = kept * path[t - 1] + np.sqrt(1 - kept**2) * path[t]
    return filmed(the, the.start + scaled(path, kappa))


def in_cages(seed: int, kappa: float) -> Tracks:
    """Diffusion in cages with hard walls; now and then a hop into the next cage."""
    the = cast([10, seed])
    fine = _WITHIN * the.frames
    inside = folded(np.cumsum(the.rng.normal(size=(fine, *the.shape)), axis=0) / 2, 2.5)[::_WITHIN]
    hops = the.rng.integers(-1, 2, size=inside.shape) * (the.rng.random((*inside.shape[:2], 1)) < 0.04)
    return filmed(the, the.start + scaled(inside + 2.5 * np.cumsum(hops, axis=0), kappa))


def hopping(seed: int, kappa: float) -> Tracks:
    """Waiting times with a power law (CTRW), a jitter while waiting, then a hop."""
    the = cast([11, seed])
    wait = np.ceil(0.5 * (1 + the.rng.pareto(1.2, (the.frames, the.shape[0])))).astype(int)
    when = np.cumsum(wait, axis=0)
    hops = np.zeros((the.frames, the.shape[0]), bool)
    for row in when:
        inside = row < the.frames
        hops[row[inside], np.nonzero(inside)[0]] = True
    path = np.cumsum(the.rng.normal(size=(the.frames, *the.shape)) * hops[..., None], axis=0)
    return reflected(the, the.start + scaled(path + 0.15 * the.rng.normal(size=path.shape), kappa))


def fractional(the: Cast, hurst: float) -> Paths:
    """Fractional Brownian motion (T, M, d): increments with long memory, from their covariance."""
    lag = np.abs(np.subtract.outer(np.arange(the.frames), np.arange(the.frames)))
    power = 2 * hurst
    covariance = ((lag + 1.0) ** power + np.abs(lag - 1.0) ** power - 2.0 * lag**power) / 2
    drawn = the.rng.normal(size=(the.frames, *the.shape))
    return np.cumsum(np.einsum("st,tmd->smd", np.linalg.cholesky(covariance), drawn), axis=0)


def subdiffusion(seed: int, kappa: float) -> Tracks:
    """Fractional Brownian motion with a Hurst exponent of .25, as in a crowded cell."""
    the = cast([12, seed])
    return filmed(the, the.start + scaled(fractional(the, 0.25), kappa))


def superdiffusion(seed: int, kappa: float) -> Tracks:
    """Fractional Brownian motion with a Hurst exponent of .8."""
    the = cast([13, seed])
    return bordered(the, the.start + scaled(fractional(the, 0.8), kappa))


def flights(seed: int, kappa: float) -> Tracks:
    """Straight flights between walls, without noise: Vasconcelos & Rosenhahn's Figure 5, persistence 1."""
    the = cast([14, seed], count=500, frames=20, turnover=0)
    velocity = kappa * the.rng.normal(size=the.shape)
    return reflected(the, the.start + np.arange(the.frames)[:, None, None] * velocity, PERFECT)


def falling(seed: int, kappa: float) -> Tracks:
    """Parabolas: each particle thrown with its own velocity, all of them accelerated along z."""
    the = cast([15, seed])
    time = np.arange(the.frames)[:, None, None]
    path = time * the.rng.normal(size=the.shape) + 0.5 * time**2 * np.array([0.1, 0, 0])
    return bordered(the, the.start + scaled(path, kappa))


def dimers(seed: int, kappa: float) -> Tracks:
    """Bound pairs a quarter of the spacing apart, which diffuse together and turn."""
    the = cast([16, seed], count=400)
    rng, (many, axes) = the.rng, the.shape
    partner = np.arange(many) // 2 * 2
    centre = (the.start[:, :] + diffusing(the, 0.8 * kappa))[:, partner]
    arm = swimming(rng, the.frames, (many, axes), 2.5 * kappa)[:, partner] * 0.125
    sign = np.where(np.arange(many) % 2, 1, -1)[None, :, None]
    return reflected(the, centre + sign * arm + diffusing(the, 0.2 * kappa), View((0.01,)))
