"""What answers of proofreading stand for, and what a step of it did, without widgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..lineage import columns_of
from ..proofreading import Question, Session
from .napari_layers import LayerTransform


def ready(session: Session, said: str = "") -> tuple[Session, dict[str, NDArray], str]:
    """What `show_result` needs."""
    return session, columns_of(session.tracks), said


def solved(session: Session, *, edited: bool, first: bool) -> str:
    """What a step did, in a sentence."""
    count = len(session.changed)
    if first:
        return "Opened. The question is about the least certain link; each answer is kept at once."
    if edited:
        return "Solved again with the other detections."
    return f"Solved again: {count:,} link{'s' * (count != 1)} changed."


def pins_of(asked: Question) -> dict[str, tuple[Any, ...]]:
    """What keys pin, as `proofreading.answer` takes it."""
    ways = [row for row, _ in asked.link.alternatives if row >= 0]
    pins: dict[str, tuple[Any, ...]] = {"0": ("end",), "C": ("no_particle",)}
    if asked.link.successors:
        pins["F"] = ("forbid", asked.link.successors[0])
    return pins | {str(k): ("link", row) for k, row in enumerate(ways[:4], 1)}


def ray(
    world: Sequence[float], direction: Sequence[float] | None, transform: LayerTransform
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Frame, position and direction of view of a click, in the unit of the voxels; along z in 2D."""
    own = np.asarray(world)[-len(transform.scale) :] - transform.translate
    at, along, axes = np.zeros(3), np.array([1.0, 0.0, 0.0]), len(own) - 1
    at[-axes:] = own[1:]
    if direction is not None:
        along[-axes:] = np.asarray(direction)[-axes:]
    return round(float(own[0]) / transform.scale[0]), at, along / np.linalg.norm(along)
