"""Compile the kernels that tracking, detection and scoring use, before their first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._compiling import compilation_reported, kernels_counted
from .detections import Detections
from .movies.detecting import detect
from .scoring import score
from .tracking import TrackingRun, track

_FRAMES = 12
_PARTICLES = 60  # a frame; enough for the sample of learning
_STEP = 0.15  # of a step along one axis, in mean spacings
_MISSED = 0.05  # share of missed detections
_SPOTS = 12  # of an image


@dataclass(frozen=True)
class Stage:
    """What is compiled together, and how many kernels that are, by which the time left is estimated."""

    name: str
    work: Callable[[], object]
    kernels: int


def warm_up(progress: Callable[[str, int, int], None] | None = None) -> int:
    """Compile the kernels of `track`, `detect`, `score` and the report, by running each on a small movie.

    Compiled kernels are kept beside the package (or in ``NUMBA_CACHE_DIR``), so this is done once on a
    machine and after each installation.

    Parameters
    ----------
    progress : callable, optional
        Called with (name of the stage, kernels compiled, kernels in all) at the start of each stage and of
        each compilation.

    Returns
    -------
    int
        Number of kernels that were compiled: 0 if all were there already.

    Examples
    --------
    >>> warm_up() >= 0
    True
    """
    total, before, compiled = sum(stage.kernels for stage in STAGES), 0, 0

    def step(count: int) -> None:
        nonlocal compiled
        compiled += 1
        if progress is not None:
            progress(stage.name, min(before + count, before + stage.kernels), total)

    for stage in STAGES:
        if progress is not None:
            progress(stage.name, before, total)
        with compilation_reported(_say_nothing), kernels_counted(step):
            stage.work()
        before += stage.kernels
    return compiled


def _say_nothing() -> None:
    """The bar shows the compilation."""


def _gated() -> TrackingRun:
    return track(_walks(), max_distance=0.6, max_gap=2)


def _learned() -> TrackingRun:
    return track(_walks())


def _scored() -> None:
    found = _gated().tracks
    score(found, found)


def _detected() -> None:
    for shape in ((1, 96, 96), (24, 64, 64)):
        detect([_image(shape, seed) for seed in range(2)])


def _walks() -> Detections:
    """Random walks at density 1, some detections missed, in a box with particles that come and go."""
    rng = np.random.default_rng(0)
    side = _PARTICLES ** (1 / 3)
    steps = rng.normal(0, _STEP, (_FRAMES, _PARTICLES, 3))
    position = rng.uniform(0, side, (1, _PARTICLES, 3)) + np.cumsum(steps, axis=0)
    seen = (rng.random((_FRAMES, _PARTICLES)) > _MISSED) & ((position > 0) & (position < side)).all(axis=2)
    return Detections.from_table(np.nonzero(seen)[0], position[seen])


def _image(shape: tuple[int, int, int], seed: int) -> NDArray:
    """Spots on an even background with the noise of a camera."""
    rng = np.random.default_rng(seed)
    light = np.full(shape, 100.0)
    for centre in rng.uniform(4, np.maximum(np.subtract(shape, 4), 5), (_SPOTS, 3)):
        axes = [np.exp(-0.5 * ((np.arange(n) - at) / 1.8) ** 2) for n, at in zip(shape, centre, strict=True)]
        if shape[0] == 1:
            axes[0] = np.ones(1)
        light += 150.0 * np.einsum("i,j,k->ijk", *axes)
    return rng.poisson(light).astype(np.uint16)


STAGES = (
    Stage("gated linking", _gated, 37),
    Stage("scoring", _scored, 36),
    Stage("detection", _detected, 199),
    Stage("learned linking", _learned, 25),
)
"""In the order in which they are compiled, each with the number of kernels from an empty cache."""
