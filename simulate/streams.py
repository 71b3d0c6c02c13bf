"""Random streams: one for every purpose and frame, so that draws depend on nothing else."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """Purposes of random streams, such as steps. The numbers are part of the seeds and never change."""

    PLACE = 0
    STEP = 1
    DEATH = 2
    BIRTH = 3
    NOISE = 4
    MISS = 5
    CLUTTER = 6
    ORDER = 7
    WALL = 8
    PHOTONS = 9
    CYCLE = 10
    DIVISION = 11


def stream(seed: int, purpose: Purpose, frame: int) -> np.random.Generator:
    """The random numbers of one purpose in one frame.

    The random numbers depend only on seed, purpose and frame. A simulation in chunks of frames, or in
    parallel, therefore draws the same numbers as one without chunks, and switching on one effect, such as
    noise, does not change the numbers drawn for the others.

    Parameters
    ----------
    seed : int
        Seed of the simulation, not negative.
    purpose : Purpose
        What the numbers are used for.
    frame : int
        Frame number.

    Examples
    --------
    >>> once, again, next_frame = (stream(7, Purpose.STEP, frame).random() for frame in (3, 3, 4))
    >>> once == again, once == next_frame
    (True, False)
    """
    # A key holds no negative numbers, which real movies may have as frames: wrap them round.
    key = (int(purpose), int(frame) % 2**32)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
