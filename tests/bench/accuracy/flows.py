"""Kinds of motion that particles share: flows, stages that move, tissues that expand or beat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from outbid import Tracks

from .film import Cast, View, bordered, cast, filmed, folded, moved, reflected
from .walkers import diffusing, swimming

Vectors = NDArray[np.float64]

_WITHIN = 5
"""Steps of Langevin's equation in a frame."""


def carried(the: Cast, flow: Callable[[Vectors], Vectors], friction: float, kick: float) -> Vectors:
    """Langevin particles (T, M, d): friction against a flow, and kicks of a thermal velocity `kick`."""
    place, path = the.start.copy(), np.empty((the.frames, *the.shape))
    speed = flow(place) + kick * the.rng.normal(size=the.shape)
    damped = np.exp(-friction / _WITHIN)
    for t in range(the.frames):
        path[t] = place
        for _ in range(_WITHIN):
            about = flow(place)
            noise = kick * np.sqrt(1 - damped**2) * the.rng.normal(size=the.shape)
            speed = about + damped * (speed - about) + noise
            place = place + speed / _WITHIN
    return path


def shear(seed: int, kappa: float) -> Tracks:
    """Inertial particles in a shear flow along x that grows along z; the borders along x are open."""
    the = cast([21, seed])
    middle = the.side / 2

    def flow(place: Vectors) -> Vectors:
        along = 3 * kappa * (folded(place[:, 0], the.side) - middle) / middle
        return np.column_stack([0 * along, 0 * along, along])

    return bordered(the, carried(the, flow, 0.7, 0.9 * kappa), axes=(2,))


def vortex(seed: int, kappa: float) -> Tracks:
    """Inertial particles in four vortices between walls."""
    the = cast([22, seed])
    wave = 2 * np.pi / the.side

    def flow(place: Vectors) -> Vectors:
        y, x = wave * place[:, 1], wave * place[:, 2]
        return 2.4 * kappa * np.column_stack([0 * y, np.sin(y) * np.cos(x), -np.cos(y) * np.sin(x)])

    return reflected(the, carried(the, flow, 1.0, 0.6 * kappa))


def pipe(seed: int, kappa: float) -> Tracks:
    """A parabolic flow of up to .9 spacings a frame with open ends, and diffusion."""
    the = cast([23, seed])
    radial = 2 * the.start[:, 1] / the.side - 1
    along = np.arange(the.frames)[:, None] * 0.9 * (1 - radial**2)
    path = the.start + diffusing(the, kappa)
    path[..., 2] += along
    return bordered(the, path, axes=(2,))


def two_streams(seed: int, kappa: float) -> Tracks:
    """Half of the particles drift to one side, half to the other, by twice the step."""
    the = cast([24, seed])
    way = np.where(the.rng.random(the.shape[0]) < 0.5, 2.0, -2.0) * kappa
    path = the.start + diffusing(the, 0.7 * kappa)
    path[..., 2] += np.arange(the.frames)[:, None] * way
    return bordered(the, path, axes=(2,))


def swarms(seed: int, kappa: float) -> Tracks:
    """Sixteen groups, each of which swims as one through the others."""
    the = cast([25, seed])
    rng, groups = the.rng, 16
    member = rng.integers(groups, size=the.shape[0])
    heading = swimming(rng, the.frames, (groups, 3), 0.35)
    centre = rng.random((groups, 3)) * the.side + np.cumsum(1.6 * kappa * heading, axis=0)
    place = 1.4 * rng.normal(size=the.shape)
    return bordered(the, centre[:, member] + place + diffusing(the, 0.4 * kappa))


def expanding(seed: int, kappa: float) -> Tracks:
    """A tissue that grows by 1.5 % a frame along each axis; its particles diffuse."""
    the = cast([26, seed])
    middle = the.side / 2
    growth = 1.015 ** np.arange(the.frames)[:, None, None]
    return filmed(the, middle + (the.start - middle) * growth + diffusing(the, kappa))


def beating(seed: int, kappa: float) -> Tracks:
    """A wave that passes through all particles with a period of seven frames; they diffuse beside it."""
    the = cast([27, seed])
    time = np.arange(the.frames)[:, None, None]
    phase = 2 * np.pi * (time / 7 - the.start[None, :, :1] / the.side / 2)
    path = the.start + np.array([0.25, 0.5, 0.2]) * np.sin(phase) + diffusing(the, 0.7 * kappa)
    return filmed(the, path)


def stage_jumps(seed: int, kappa: float) -> Tracks:
    """Diffusion on a stage that drifts, and jumps by one to three spacings three times."""
    the = cast([28, seed])
    film = reflected(the, the.start + diffusing(the, kappa))
    steps = np.tile([0.0, 0.1, -0.05], (the.frames, 1))
    when = the.rng.choice(np.arange(2, the.frames - 2), 3, replace=False)
    steps[when] += the.rng.uniform(1, 3, (3, 3)) * the.rng.choice([-1, 1], (3, 3))
    shift = np.cumsum(steps, axis=0)[film.detections.frame]
    return moved(film, film.detections.position + shift)


def shaking(seed: int, kappa: float) -> Tracks:
    """Diffusion seen by a camera that shakes: all move by a random half spacing in each frame."""
    the = cast([29, seed])
    film = reflected(the, the.start + diffusing(the, kappa), View((0.02,), 0.02, 0.02))
    shift = 0.35 * the.rng.normal(size=(the.frames, 3))[film.detections.frame]
    return moved(film, film.detections.position + shift)
