"""Tissues whose cells divide: the mother ends, and two daughters begin in the next frame."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid import Tracks

from .film import truth
from .walkers import directions


@dataclass(frozen=True)
class Tissue:
    """How cells live: frames between divisions with their spread, death a frame, and how they are seen."""

    cells: int
    frames: int
    cycle: float
    spread: float
    death: float = 0.003
    axes: int = 3
    apart: float = 0.45
    noise: float = 0.03
    miss: float = 0.02
    clutter: float = 0.02


@dataclass(eq=False)
class _Cells:
    """The cells that live now: places, how daughters part, when they divide, numbers."""

    place: NDArray[np.float64]
    parting: NDArray[np.float64]
    due: NDArray[np.float64]
    number: NDArray[np.int64]
    mother: dict[int, int] = field(default_factory=dict)
    born: int = 0


def grown(seed: list[int], kappa: float, tissue: Tissue) -> Tracks:
    """The movie of a tissue: cells diffuse, push each other away, divide and die."""
    rng = np.random.default_rng(seed)
    side = tissue.cells ** (1 / tissue.axes)
    due = rng.random(tissue.cells) * tissue.cycle
    place = rng.random((tissue.cells, tissue.axes)) * side
    now = _Cells(place, 0 * place, due, np.arange(tissue.cells), born=tissue.cells)
    seen = []
    for frame in range(tissue.frames):
        seen.append((np.full(len(now.place), frame), now.place.copy(), now.number.copy()))
        _divided(now, rng, tissue, frame)
        now.place += kappa * rng.normal(size=now.place.shape) + _pushes(now.place) + now.parting
        now.parting *= 0.4
    frames, places, numbers = (np.concatenate(part) for part in zip(*seen, strict=True))
    return _shown(rng, tissue, (frames, places, numbers), now.mother)


def _divided(now: _Cells, rng: np.random.Generator, tissue: Tissue, frame: int) -> None:
    """Cells that are due divide, some die; daughters part from where their mother was."""
    lives = rng.random(len(now.place)) >= tissue.death
    divides = lives & (now.due <= frame)
    stays = lives & ~divides
    pairs = 2 * int(divides.sum())
    number = now.born + np.arange(pairs)
    now.mother.update(zip(number.tolist(), np.repeat(now.number[divides], 2).tolist(), strict=True))
    away = directions(rng, pairs // 2, tissue.axes)
    away = tissue.apart * np.stack([away, -away], axis=1).reshape(pairs, tissue.axes)
    place = np.repeat(now.place[divides], 2, axis=0)
    due = frame + np.maximum(rng.normal(tissue.cycle, tissue.spread, pairs), 4)
    now.place = np.concatenate([now.place[stays], place + 0.4 * away])
    now.parting = np.concatenate([now.parting[stays], 0.35 * away])
    now.due = np.concatenate([now.due[stays], due])
    now.number = np.concatenate([now.number[stays], number])
    now.born += pairs


def _pushes(place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Soft spheres of diameter .8 push each other apart."""
    pairs = cKDTree(place).query_pairs(0.8, output_type="ndarray")
    between = place[pairs[:, 0]] - place[pairs[:, 1]]
    distance = np.linalg.norm(between, axis=1, keepdims=True) + 1e-9
    push = 0.15 * (0.8 - distance) * between / distance
    found = np.zeros_like(place)
    np.add.at(found, pairs[:, 0], push)
    np.add.at(found, pairs[:, 1], -push)
    return found


def _shown(
    rng: np.random.Generator, tissue: Tissue, cells: tuple[NDArray, NDArray, NDArray], mother: dict[int, int]
) -> Tracks:
    """What is seen of the cells of all frames, with clutter; a track whose mother is never seen has none."""
    frame, place, number = cells
    kept = rng.random(len(frame)) >= tissue.miss
    strays = rng.poisson(tissue.clutter * len(frame))
    low, high = place.min(axis=0), place.max(axis=0)
    points = place[kept] + tissue.noise * rng.normal(size=place[kept].shape)
    seen = set(number[kept].tolist())
    parent = np.array([mother.get(n, -1) if mother.get(n, -1) in seen else -1 for n in number[kept].tolist()])
    return truth(
        rng,
        np.concatenate([frame[kept], rng.integers(tissue.frames, size=strays)]),
        np.concatenate([points, low + rng.random((strays, tissue.axes)) * (high - low)]),
        np.concatenate([number[kept], np.full(strays, -1)]),
        np.concatenate([parent, np.full(strays, -1)]),
    )


def dividing(seed: int, kappa: float) -> Tracks:
    """An embryo of 120 cells that divide every sixteen frames or so."""
    return grown([51, seed], kappa, Tissue(120, 30, 16, 3))


def dividing_in_a_layer(seed: int, kappa: float) -> Tracks:
    """A layer of 150 cells that divide every 25 frames, at any time."""
    return grown([52, seed], kappa, Tissue(150, 30, 25, 8, axes=2, apart=0.6))


def dividing_few(seed: int, kappa: float) -> Tracks:
    """From 20 cells at the beginning to some hundred, in forty frames."""
    return grown([53, seed], kappa, Tissue(20, 40, 15, 2, miss=0.01, clutter=0))


def dividing_and_dying(seed: int, kappa: float) -> Tracks:
    """Cells that divide every twelve frames, of which one in twenty dies in a frame; a tenth is missed."""
    return grown([54, seed], kappa, Tissue(250, 25, 14, 5, death=0.05, miss=0.1, clutter=0.1))
