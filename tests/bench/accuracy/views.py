"""Kinds of movies that differ in where the particles are and in how they are seen."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from outbid import Tracks

from .film import View, bordered, cast, filmed, folded, moved, reflected, scaled
from .walkers import diffusing, held, switching, swum


def on_a_sphere(seed: int, kappa: float) -> Tracks:
    """Cells on a sphere that swim along its surface; the unit is the spacing on the surface."""
    the = cast([31, seed], axes=2)
    rng, many = the.rng, the.shape[0]
    radius = np.sqrt(400 / (4 * np.pi))
    place, heading = rng.normal(size=(2, many, 3))
    path = np.empty((the.frames, many, 3))
    for t in range(the.frames):
        place /= np.linalg.norm(place, axis=1, keepdims=True)
        heading = heading + 0.4 * rng.normal(size=heading.shape)
        heading -= place * (heading * place).sum(axis=1, keepdims=True)
        heading /= np.linalg.norm(heading, axis=1, keepdims=True)
        path[t] = radius * place
        place = place + heading * kappa * np.sqrt(2) / radius
    return filmed(the, path, View((0.03,)))


def on_sheets(seed: int, kappa: float) -> Tracks:
    """Two wavy layers of diffusing cells, one upon the other."""
    the = cast([32, seed], axes=2)
    flat = folded(the.start + diffusing(the, kappa), the.side)
    upper = the.rng.random(the.shape[0]) < 0.5
    wave = 1.5 * np.sin(2 * np.pi * flat[..., 0] / the.side) * np.cos(2 * np.pi * flat[..., 1] / the.side)
    return filmed(the, np.concatenate([(wave + 0.8 * upper)[..., None], flat], axis=2), View((0.03,)))


def single_slice(seed: int, kappa: float) -> Tracks:
    """One focal plane of a deep movie: swimmers enter and leave it, and their depth is not known."""
    the = cast([33, seed], count=1200, turnover=0)
    side = np.array([the.side / 3, the.side * np.sqrt(3), the.side * np.sqrt(3)])
    path = np.mod(the.start / the.side * side + swum(the, kappa) - the.start, side)
    seen = path[..., 0] < 1
    gone = np.zeros(seen.shape, int)
    jumped = (np.abs(np.diff(path, axis=0)) > side / 2).any(axis=2) | ~seen[1:]
    gone[1:] = np.cumsum(jumped, axis=0)
    label = np.arange(the.shape[0]) * the.frames + gone
    return filmed(the, path[..., 1:], View((0.02,)), label, seen)


def blinking(seed: int, kappa: float) -> Tracks:
    """Diffusing emitters, dark for two frames and a half in the mean after seven bright ones."""
    the = cast([34, seed], turnover=0.01)
    drawn = the.rng.random((the.frames, the.shape[0]))
    bright = switching(drawn[0] < 7 / 9.5, drawn, 1 / 7, 1 / 2.5)
    path = folded(the.start + diffusing(the, kappa), the.side)
    return filmed(the, path, View((kappa / 5,), 0, 0.05), seen=bright)


def misses_and_clutter(seed: int, kappa: float) -> Tracks:
    """Swimmers, a fifth of which is missed, among clutter of another fifth."""
    the = cast([35, seed])
    return bordered(the, swum(the, kappa), View((0.02,), 0.2, 0.2))


def noisy_depth(seed: int, kappa: float) -> Tracks:
    """Swimmers whose depth is seen with three times the noise, that of a step."""
    the = cast([36, seed])
    return bordered(the, swum(the, kappa), View((kappa, kappa / 3, kappa / 3)))


def noisy(seed: int, kappa: float) -> Tracks:
    """Slow swimmers seen with noise as large as their steps."""
    the = cast([37, seed])
    return bordered(the, swum(the, 0.7 * kappa, 0.1), View((0.7 * kappa,)))


def unlike_axes(seed: int, kappa: float) -> Tracks:
    """Positions in voxels, of which the depth is four times as large; particles move most along x."""
    the = cast([38, seed])
    stretch = np.array([0.5, 1.0, 1.5])
    path = the.start + scaled(diffusing(the, 1) * stretch, kappa)
    film = reflected(the, path)
    return moved(film, film.detections.position * [0.25 / 0.2, 1 / 0.2, 1 / 0.2])


def flat_box(seed: int, kappa: float) -> Tracks:
    """A shallow volume, two spacings deep, of swimmers between walls."""
    the = cast([39, seed])
    path = the.start + swum(the, kappa) - the.start
    size = np.array([2.0, np.sqrt(200), np.sqrt(200)])
    place = the.start / the.side * size + path - the.start
    return filmed(the, np.stack([folded(place[..., k], size[k]) for k in range(3)], axis=2))


def lost_frames(seed: int, kappa: float) -> Tracks:
    """Swimmers in a movie of which four frames, two of them together, hold no detection."""
    the = cast([40, seed], frames=27)
    lost = the.rng.choice(np.arange(3, 22, 3), 3, replace=False)
    seen = np.ones((the.frames, the.shape[0]), bool)
    seen[[*lost, lost[0] + 1]] = False
    path = folded(swum(the, kappa), the.side)
    return filmed(the, path, seen=seen)


def uneven_frames(seed: int, kappa: float) -> Tracks:
    """Diffusion recorded at uneven times, which nothing states: from a half to three of the usual."""
    the = cast([41, seed])
    pause = the.rng.choice([0.5, 1.0, 1.0, 1.0, 2.0, 3.0], the.frames)[:, None, None]
    path = np.cumsum(np.sqrt(pause) * the.rng.normal(size=(the.frames, *the.shape)), axis=0)
    return reflected(the, the.start + scaled(path, kappa))


def few(seed: int, kappa: float) -> Tracks:
    """From 20 to 60 swimmers in forty frames."""
    count = int(np.random.default_rng([142, seed]).integers(20, 61))
    the = cast([42, seed], count=count, frames=40)
    return bordered(the, swum(the, kappa))


def few_and_still(seed: int, kappa: float) -> Tracks:
    """From 20 to 60 particles that diffuse between walls, hardly missed, without clutter."""
    count = int(np.random.default_rng([143, seed]).integers(20, 61))
    the = cast([43, seed], count=count, frames=40, turnover=0.005)
    return reflected(the, the.start + diffusing(the, kappa), View((0.02,), 0.02, 0))


def short_lives(seed: int, kappa: float) -> Tracks:
    """Swimmers of which one in eight is born and dies in each frame."""
    the = cast([44, seed], turnover=0.125)
    return bordered(the, swum(the, kappa))


def clumps(seed: int, kappa: float) -> Tracks:
    """Diffusing particles in clumps, within which they are seven times as dense as in the mean."""
    the = cast([45, seed])
    centre = the.rng.random((25, 3)) * the.side
    place = centre[the.rng.integers(25, size=the.shape[0])] + 0.8 * the.rng.normal(size=the.shape)
    return filmed(the, place + diffusing(the, 0.7 * kappa))


def bleaching(seed: int, kappa: float) -> Tracks:
    """Diffusing particles that fade: a third is left at the end, and clutter grows meanwhile."""
    the = cast([46, seed], turnover=0)
    life = the.rng.exponential(the.frames / np.log(3), the.shape[0])
    the.alive[:] &= np.arange(the.frames)[:, None] < life
    return reflected(the, the.start + diffusing(the, kappa), View((0.02,), 0.08, 0.1))


def stuck_and_free(seed: int, kappa: float) -> Tracks:
    """Diffusing particles that bind, and then stay where they are for eight frames in the mean."""
    the = cast([47, seed])
    turns = the.rng.random((the.frames, the.shape[0])) < 1 / 8
    free = held(the.rng.random((the.frames, the.shape[0])) < 0.5, turns)
    steps = the.rng.normal(size=(the.frames, *the.shape)) * np.where(free, 1, 0.05)[..., None]
    return reflected(the, the.start + scaled(np.cumsum(steps, axis=0), kappa))


def merging_spots(seed: int, kappa: float) -> Tracks:
    """Swimmers that are seen as one spot while they are nearer than two fifths of the spacing."""
    the = cast([48, seed])
    path = folded(swum(the, kappa), the.side)
    seen = np.ones(path.shape[:2], bool)
    for frame, here in enumerate(path):
        alive = np.flatnonzero(the.alive[frame])
        for one, other in cKDTree(here[alive]).query_pairs(0.4, output_type="ndarray"):
            both = alive[[one, other]]
            if seen[frame, both].all():
                path[frame, both] = here[both].mean(axis=0)
                seen[frame, both[1]] = False
    return filmed(the, path, View((0.02,), 0.02, 0.02), seen=seen)
