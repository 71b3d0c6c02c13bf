"""From the paths of particles to a movie: borders, lives, misses, clutter, noise; and the truth of it.

The unit of length is density^(-1/d), so a kappa is the standard deviation of a step along one axis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from outbid import Detections, Tracks

_DECIMALS = 6
"""Decimals of a position: what a table holds, and what differs between two machines is behind them."""


@dataclass(frozen=True, eq=False)
class Cast:
    """The particles of a movie before they move.

    `start` (M, d) says where each is in frame 0, uniform in a box from 0 to `side` along each axis;
    `alive` (T, M) says in which frames it lives. At any time some `count` of them are alive.
    """

    rng: np.random.Generator
    start: NDArray[np.float64]
    alive: NDArray[np.bool_]
    side: float

    @property
    def frames(self) -> int:
        return len(self.alive)

    @property
    def shape(self) -> tuple[int, int]:
        """Particles and axes."""
        return self.start.shape  # type: ignore[return-value]


@dataclass(frozen=True)
class View:
    """What is seen of the particles: noise along each axis, and probabilities of misses and clutter."""

    noise: tuple[float, ...] = (0.02,)
    miss: float = 0.05
    clutter: float = 0.05


PERFECT = View((0.0,), 0.0, 0.0)


def cast(
    seed: list[int], *, count: int = 400, frames: int = 25, turnover: float = 0.02, axes: int = 3
) -> Cast:
    """Particles at density 1, a share `turnover` of which dies and is born in each frame."""
    rng = np.random.default_rng(seed)
    side = count ** (1 / axes)
    births = rng.poisson(turnover * count, frames - 1)
    first = np.concatenate([np.zeros(count, int), np.repeat(np.arange(1, frames), births)])
    life = rng.geometric(turnover, len(first)) if turnover else np.full(len(first), frames)
    now = np.arange(frames)[:, None]
    return Cast(rng, rng.random((len(first), axes)) * side, (first <= now) & (now < first + life), side)


def scaled(path: NDArray[np.float64], kappa: float) -> NDArray[np.float64]:
    """A path (T, M, d) that begins at 0, with steps of standard deviation kappa along an axis."""
    path = path - path[0]
    return path * (kappa / np.sqrt(np.mean(np.square(np.diff(path, axis=0)))))


def folded(path: NDArray[np.float64], side: float) -> NDArray[np.float64]:
    """The path between walls at 0 and `side` that reflect it."""
    return side - np.abs(np.mod(path, 2 * side) - side)


def reflected(the: Cast, path: NDArray[np.float64], view: View = View()) -> Tracks:
    """A movie whose box has walls that reflect."""
    return filmed(the, folded(path, the.side), view)


def bordered(
    the: Cast, path: NDArray[np.float64], view: View = View(), axes: tuple[int, ...] = (0, 1, 2)
) -> Tracks:
    """A movie with open borders across `axes`: what leaves is lost, and others come in at the same rate.

    What comes back over the border that it left by is the same particle. Walls reflect along the other axes.
    """
    inside, cell = folded(path, the.side), np.zeros(path.shape[:2], int)
    for axis in axes:
        if axis < path.shape[2]:
            inside[..., axis] = np.mod(path[..., axis], the.side)
            cell += np.floor(path[..., axis] / the.side).astype(int) * 1000**axis
    who = np.stack([np.broadcast_to(np.arange(path.shape[1]), cell.shape), cell], axis=-1).reshape(-1, 2)
    label = np.unique(who, axis=0, return_inverse=True)[1].reshape(cell.shape)
    return filmed(the, inside, view, label)


def filmed(
    the: Cast,
    path: NDArray[np.float64],
    view: View = View(),
    label: NDArray[np.int64] | None = None,
    seen: NDArray[np.bool_] | None = None,
) -> Tracks:
    """The true tracks of the detections of a path (T, M, d).

    `label` (T, M) names the track of each particle in each frame, by default its number; `seen` (T, M) says
    which particles can be seen at all.
    """
    rng, (frames, count, axes) = the.rng, path.shape
    shown = the.alive & (rng.random((frames, count)) >= view.miss)
    if seen is not None:
        shown &= seen
    if label is None:
        label = np.broadcast_to(np.arange(count), (frames, count))
    path = path + rng.normal(size=path.shape) * view.noise
    low, high = path[the.alive].min(axis=0), path[the.alive].max(axis=0)
    strays = rng.poisson(view.clutter * the.alive.sum(axis=1))
    if seen is not None:
        strays = strays * seen.any(axis=1)
    frame = np.concatenate([np.nonzero(shown)[0], np.repeat(np.arange(frames), strays)])
    points = np.concatenate([path[shown], low + rng.random((strays.sum(), axes)) * (high - low)])
    return truth(rng, frame, points, np.concatenate([label[shown], np.full(strays.sum(), -1)]))


def truth(
    rng: np.random.Generator,
    frame: NDArray[np.int64],
    points: NDArray[np.float64],
    label: NDArray[np.int64],
    parent: NDArray[np.int64] | None = None,
) -> Tracks:
    """Tracks of detections in a random order within their frames, so that no order gives links away."""
    order = rng.permutation(len(frame))
    order = order[np.argsort(frame[order], kind="stable")]
    detections = Detections.from_table(frame[order], np.round(points[order], _DECIMALS))
    return Tracks.from_track_ids(detections, label[order], None if parent is None else parent[order])


def moved(film: Tracks, position: NDArray[np.float64]) -> Tracks:
    """The same tracks with other positions (N, 3)."""
    return Tracks(replace(film.detections, position=np.round(position, _DECIMALS)), film.links)
