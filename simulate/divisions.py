"""Divisions of simulated particles: cycle times, and where daughters appear."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .motions import Vectors
from .streams import Purpose, stream

if TYPE_CHECKING:
    from .walks import WalkSettings


class Rows(NamedTuple):
    """The particles of a frame; arrays of one row each.

    Parameters
    ----------
    position, velocity : (N, 3) float64 arrays
    track, mother : (N,) int64 arrays
        Number of the track, and of the one from which it divided; -1 for none.
    divides : (N,) float64 array
        Time of the next division in frames; inf for none.
    """

    position: Vectors
    velocity: Vectors
    track: NDArray[np.int64]
    mother: NDArray[np.int64]
    divides: NDArray[np.float64]


def cycles(settings: WalkSettings, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(count,) cycle times in frames, of a gamma distribution; inf without divisions."""
    if settings.division_rate == 0:
        return np.full(count, np.inf)
    shape = 1 / settings.cycle_spread**2
    return rng.gamma(shape, 1 / (settings.division_rate * shape), count)


def first_divisions(settings: WalkSettings, count: int, frame: int) -> NDArray[np.float64]:
    """(count,) times of the next division of particles that appear: each is anywhere in its cycle."""
    rng = stream(settings.seed, Purpose.CYCLE, frame)
    return frame + cycles(settings, count, rng) * rng.random(count)


def divided(settings: WalkSettings, rows: Rows, frame: int, tracks_so_far: int) -> Rows:
    """The particles after divisions: a daughter takes the row of its mother, the other one is appended.

    Daughters lie half their distance to either side of where the mother would be, in a random direction.
    """
    due = np.flatnonzero(rows.divides <= frame)
    if not len(due):
        return rows
    rng = stream(settings.seed, Purpose.DIVISION, frame)
    way = rng.normal(size=(len(due), 3))
    way *= settings.daughter_distance / 2 / np.linalg.norm(way, axis=1, keepdims=True)
    place, number = rows.position[due], tracks_so_far + np.arange(2 * len(due))
    one, other = place + way, place - way
    position, track, mother, divides = (
        each.copy() for each in (rows.position, rows.track, rows.mother, rows.divides)
    )
    position[due], track[due], mother[due] = one, number[: len(due)], rows.track[due]
    times = rows.divides[due] + cycles(settings, 2 * len(due), rng).reshape(2, -1)
    times = np.maximum(times, frame + 1.0)  # a track has a detection at least
    divides[due] = times[0]
    return Rows(
        np.concatenate([position, other]),
        np.concatenate([rows.velocity, rows.velocity[due]]),
        np.concatenate([track, number[len(due) :]]),
        np.concatenate([mother, rows.track[due]]),
        np.concatenate([divides, times[1]]),
    )
