"""Walks: particles that move, are born, divide and die in a box; the truth that a tracker is tested against.

Any `Motion` can move them; walls, births and deaths are the same for all motions. The unit of time is
the frame. This module is independent of how the tracker predicts and links: a simulator that shared
the model of the tracker could not test it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outbid.errors import SettingsError
from outbid.particles.calibration import Calibration
from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks

from .divisions import Rows, divided, first_divisions
from .motions import Motion, Vectors
from .ranges import Axes, require, require_axes
from .streams import Purpose, stream


@dataclass(frozen=True)
class WalkSettings:
    """What is simulated: particles, their motion, the box and the number of frames.

    Parameters
    ----------
    motion : Motion
        How the particles move.
    particles : int
        Particles in frame 0, uniform in the box.
    frames : int
        Frames, numbered from 0.
    box : tuple of 3 float
        Lengths of the box along z, y, x, in units; it begins at the origin.
    boundary : str
        ``"reflect"``: walls reflect particles. ``"periodic"``: a particle that leaves on one side enters
        on the other, and its true track ends there. ``"open"``: no walls; particles leave the box and
        are still detected. ``"absorb"``: a particle that leaves disappears, and another is born
        anywhere in the box, so that the density stays the same.
    birth_rate : float
        Expected births in a frame, as a fraction of `particles`. Their number is Poisson-distributed,
        their positions are uniform in the box. With equal rates of births and deaths the expected
        number of particles is constant.
    death_rate : float
        Probability that a particle dies before the next frame.
    seed : int
        Determines all random numbers.
    unit : str
        Unit of the box and of all positions.
    division_rate : float
        Divisions of a particle per frame: one over its mean cycle time.
    cycle_spread : float
        Standard deviation of cycle times relative to their mean; they have a gamma distribution.
    daughter_distance : float
        Distance of two daughters in their first frame, in units.

    Raises
    ------
    SettingsError
        If a value is out of its range, or the boundary unknown.

    Examples
    --------
    >>> from outbid.simulate.motions import BrownianWalk
    >>> settings = WalkSettings(BrownianWalk(0.5), particles=20, frames=3, box=(9, 9, 9))
    >>> walk(settings).track_count
    20
    """

    motion: Motion
    particles: int
    frames: int
    box: Axes
    boundary: str = "reflect"
    birth_rate: float = 0.0
    death_rate: float = 0.0
    seed: int = 0
    unit: str = "pixel"
    division_rate: float = 0.0
    cycle_spread: float = 0.3
    daughter_distance: float = 1.0

    def __post_init__(self) -> None:
        require("particles", self.particles, 0, 2**31 - 1)
        require("frames", self.frames, 1, 2**31 - 1)
        require("birth_rate", self.birth_rate, 0, 1000)
        require("death_rate", self.death_rate, 0, 1)
        require("seed", self.seed, 0)
        require("division_rate", self.division_rate, 0, 1)
        require("cycle_spread", self.cycle_spread, 0.01, 10)
        require("daughter_distance", self.daughter_distance, 0)
        require_axes("box", self.box, 1e-30)
        if self.boundary not in BOUNDARIES:
            raise SettingsError(
                f"There is no boundary {self.boundary!r}; choose one of {', '.join(BOUNDARIES)}."
            )


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a walk: everything that its next frame depends on.

    Parameters
    ----------
    frame : int
        Frame number.
    position : (N, 3) float64 array
        z, y, x in units. Surviving particles are in the same order as in the previous frame, with
        replacements of absorbed particles in their rows; other new particles come after them.
    velocity : (N, 3) float64 array
        State of the motion, in units per frame.
    track : (N,) int64 array
        Number of each particle's track in the truth.
    tracks_so_far : int
        How many tracks have begun up to this frame; the next track gets this number.
    mother : (N,) int64 array
        Number of the track from which each divided; -1 for none.
    divides : (N,) float64 array
        Time of the next division of each in frames; inf for none.
    """

    frame: int
    position: Vectors
    velocity: Vectors
    track: NDArray[np.int64]
    tracks_so_far: int
    mother: NDArray[np.int64]
    divides: NDArray[np.float64]


def walk(settings: WalkSettings) -> Tracks:
    """Simulate a movie: positions in every frame, and the links of the true tracks.

    Parameters
    ----------
    settings : WalkSettings
        What is simulated.

    Returns
    -------
    Tracks
        Positions z, y, x in the unit of the box; one link for every particle that is in two
        consecutive frames, unless a periodic boundary lies between, and from a mother to its daughters.

    Examples
    --------
    >>> from outbid.simulate.motions import PersistentWalk
    >>> truth = walk(WalkSettings(PersistentWalk(1.0, 0.8), particles=5, frames=4, box=(9, 9, 9)))
    >>> len(truth.detections), len(truth.links)
    (20, 15)
    """
    every = ((now.position, now.track, now.mother) for now in snapshots(settings))
    position, track, mother = zip(*every, strict=True)
    frame = np.repeat(np.arange(len(track), dtype=np.int32), [len(numbers) for numbers in track])
    detections = Detections(frame, np.concatenate(position), Calibration(settings.unit))
    parent = np.concatenate(mother) if settings.division_rate else None
    return Tracks.from_track_ids(detections, np.concatenate(track), parent)


def snapshots(settings: WalkSettings) -> Iterator[Snapshot]:
    """The frames of a walk one by one, for movies that do not fit into memory.

    Examples
    --------
    >>> from outbid.simulate.motions import BrownianWalk
    >>> settings = WalkSettings(BrownianWalk(0.5), particles=7, frames=3, box=(9, 9, 9))
    >>> [(snapshot.frame, len(snapshot.track)) for snapshot in snapshots(settings)]
    [(0, 7), (1, 7), (2, 7)]
    """
    # In frame 0, particles are uniform in the box, with the velocities of the steady state.
    count = settings.particles
    first = _newborn(settings, count, stream(settings.seed, Purpose.PLACE, 0))
    none, divides = np.full(count, -1), first_divisions(settings, count, 0)
    snapshot = Snapshot(0, *first, np.arange(count), count, none, divides)
    yield snapshot
    for _ in range(settings.frames - 1):
        snapshot = next_snapshot(settings, snapshot)
        yield snapshot


def next_snapshot(settings: WalkSettings, now: Snapshot) -> Snapshot:
    """The frame after `now`, which may have been computed elsewhere.

    Examples
    --------
    >>> from outbid.simulate.motions import BrownianWalk
    >>> settings = WalkSettings(BrownianWalk(0.5), particles=7, frames=2, box=(9, 9, 9))
    >>> first, second = snapshots(settings)
    >>> bool((next_snapshot(settings, first).position == second.position).all())
    True
    """
    frame, seed = now.frame + 1, settings.seed
    displacement, velocity = settings.motion.move(now.velocity, stream(seed, Purpose.STEP, frame))
    position, velocity, begins = _WALLS[settings.boundary](
        now.position + displacement, velocity, settings, stream(seed, Purpose.WALL, frame)
    )
    lives = stream(seed, Purpose.DEATH, frame).random(len(position)) >= settings.death_rate
    births = stream(seed, Purpose.BIRTH, frame)
    born = int(births.poisson(settings.birth_rate * settings.particles))
    newborn = _newborn(settings, born, births)
    begins = np.concatenate([begins[lives], np.ones(born, dtype=bool)])
    track, mother = (np.concatenate([each[lives], np.full(born, -1)]) for each in (now.track, now.mother))
    tracks_so_far = now.tracks_so_far + int(begins.sum())
    track[begins], mother[begins] = np.arange(now.tracks_so_far, tracks_so_far), -1
    position, velocity = map(np.concatenate, zip((position[lives], velocity[lives]), newborn, strict=True))
    divides = np.concatenate([now.divides[lives], first_divisions(settings, born, frame)])
    divides[begins] = np.maximum(divides[begins], frame + 1.0)
    rows = divided(settings, Rows(position, velocity, track, mother, divides), frame, tracks_so_far)
    begun = tracks_so_far + 2 * (len(rows.track) - len(track))
    return Snapshot(frame, rows.position, rows.velocity, rows.track, begun, rows.mother, rows.divides)


_Moved = tuple[Vectors, Vectors, NDArray[np.bool_]]
"""Positions and velocities after the walls have acted, and which rows begin a new track."""


def _reflect(position: Vectors, velocity: Vectors, settings: WalkSettings, _: np.random.Generator) -> _Moved:
    # Motions are mirror-symmetric: folding the free walk is exact for displacements of any length.
    length = np.asarray(settings.box, dtype=np.float64)
    unfolded = np.mod(position, 2 * length)
    mirrored = unfolded > length
    position = np.where(mirrored, 2 * length - unfolded, unfolded)
    return position, np.where(mirrored, -velocity, velocity), np.zeros(len(position), dtype=bool)


def _periodic(position: Vectors, velocity: Vectors, settings: WalkSettings, _: np.random.Generator) -> _Moved:
    return np.mod(position, settings.box), velocity, _outside(position, settings)


def _open(position: Vectors, velocity: Vectors, _: WalkSettings, __: np.random.Generator) -> _Moved:
    return position, velocity, np.zeros(len(position), dtype=bool)


def _absorb(position: Vectors, velocity: Vectors, settings: WalkSettings, rng: np.random.Generator) -> _Moved:
    gone = _outside(position, settings)
    position, velocity = position.copy(), velocity.copy()
    position[gone], velocity[gone] = _newborn(settings, int(gone.sum()), rng)
    return position, velocity, gone


_WALLS: dict[str, Callable[[Vectors, Vectors, WalkSettings, np.random.Generator], _Moved]] = {
    "reflect": _reflect,
    "periodic": _periodic,
    "open": _open,
    "absorb": _absorb,
}

BOUNDARIES = tuple(_WALLS)
"""Names of the boundaries that `WalkSettings` accepts."""


def _outside(position: Vectors, settings: WalkSettings) -> NDArray[np.bool_]:
    outside = (position < 0) | (position >= np.asarray(settings.box))
    return np.asarray(outside.any(axis=1))


def _newborn(settings: WalkSettings, count: int, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
    """Positions, uniform in the box, and velocities of new particles."""
    return rng.random((count, 3)) * settings.box, settings.motion.start(count, rng)
