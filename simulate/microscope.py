"""Microscope: detections of true tracks, with localisation noise, missed detections and clutter.

The simulated microscope accepts any true tracks, simulated or annotated, and shares no code with the
linking methods of the tracker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outbid.errors import InputError
from outbid.particles.detections import Detections
from outbid.particles.tracks import Tracks

from .ranges import Axes, require, require_axes
from .streams import Purpose, stream


@dataclass(frozen=True)
class Microscope:
    """Errors that a microscope adds to the truth.

    Parameters
    ----------
    noise : tuple of 3 float
        Standard deviation of the localisation error along z, y, x, in units; Gaussian, independent.
    miss : float
        Probability that a particle is not detected in a frame.
    clutter : float
        Expected false detections in a frame for each true particle. Their number is Poisson-distributed,
        their positions are uniform in the box.

    Raises
    ------
    SettingsError
        If a value is negative or not finite, `miss` above 1 or `clutter` above 1000.

    Examples
    --------
    >>> Microscope(noise=(0.3, 0.1, 0.1), miss=0.05).clutter
    0.0
    """

    noise: Axes = (0.0, 0.0, 0.0)
    miss: float = 0.0
    clutter: float = 0.0

    def __post_init__(self) -> None:
        require_axes("noise", self.noise, 0)
        require("miss", self.miss, 0, 1)
        require("clutter", self.clutter, 0, 1000)


def observe(truth: Tracks, microscope: Microscope, *, box: Axes, seed: int = 0) -> Tracks:
    """Detections that a microscope makes of true tracks, with the true links between them.

    Parameters
    ----------
    truth : Tracks
        True positions z, y, x in units, and their links; divisions may be among them, merges not.
    microscope : Microscope
        Its errors.
    box : tuple of 3 float
        Lengths of the field of view along z, y, x, from the origin on, in units; clutter lies in it.
    seed : int
        Determines all random numbers of each frame: some of the frames give that part of the result.

    Returns
    -------
    Tracks
        ``detections`` is the input of a tracker, in random order within each frame. The links are the
        true ones between these detections: a link spans the frames in which a particle was missed,
        and clutter has no links.

    Raises
    ------
    InputError
        If two true tracks merge.
    SettingsError
        If a length of the box is not above 0.

    Examples
    --------
    >>> from outbid.simulate.motions import BrownianWalk
    >>> from outbid.simulate.walks import WalkSettings, walk
    >>> truth = walk(WalkSettings(BrownianWalk(0.5), particles=100, frames=9, box=(9, 9, 9)))
    >>> seen = observe(truth, Microscope(miss=0.2, clutter=0.1), box=(9, 9, 9), seed=1)
    >>> frame = seen.detections.frame
    >>> sorted({int(frame[target] - frame[source]) for source, target in seen.links})
    [1, 2, 3]
    """
    require_axes("box", box, 1e-30)
    if (truth.predecessors > 1).any():
        row = int(np.argmax(truth.predecessors > 1))
        raise InputError(
            f"Two tracks merge at detection {row} (frame {truth.detections.frame[row]}). "
            "Remove one of its links: a simulated microscope does not handle merges."
        )
    frames = np.unique(truth.detections.frame)
    views = [_view(truth.detections, int(frame), microscope, box, seed) for frame in frames]
    position = np.concatenate([np.empty((0, 3)), *(place for place, _ in views)])
    true_row = np.concatenate([np.empty(0, dtype=np.int64), *(row for _, row in views)])
    seen_frame = np.repeat(frames, [len(place) for place, _ in views])
    seen = Detections(seen_frame, position, truth.detections.calibration)
    return Tracks(seen, _links_seen(truth, true_row))


def _view(
    truth: Detections, frame: int, microscope: Microscope, box: Axes, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Detections of one frame: (n, 3) positions, and (n,) their rows in the truth, -1 for clutter."""
    row = np.arange(len(truth))[truth.rows_of(frame)]
    shift = stream(seed, Purpose.NOISE, frame).normal(0.0, microscope.noise, (len(row), 3))
    seen = stream(seed, Purpose.MISS, frame).random(len(row)) >= microscope.miss
    rng = stream(seed, Purpose.CLUTTER, frame)
    clutter = rng.random((rng.poisson(microscope.clutter * len(row)), 3)) * box
    position = np.concatenate([(truth.position[row] + shift)[seen], clutter])
    # Rows in the order of the truth would give the links away to a tracker.
    order = stream(seed, Purpose.ORDER, frame).permutation(len(position))
    return position[order], np.concatenate([row[seen], np.full(len(clutter), -1)])[order]


def _links_seen(truth: Tracks, row: NDArray[np.int64]) -> NDArray[np.int64]:
    """True links between the detections, given their rows in the truth."""
    place = np.full(len(truth.detections), -1, dtype=np.int64)
    place[row[row >= 0]] = np.nonzero(row >= 0)[0]
    before = np.full(len(place), -1, dtype=np.int64)
    before[truth.links[:, 1]] = truth.links[:, 0]
    while (missed := (before >= 0) & (place[before] < 0)).any():
        before[missed] = before[before[missed]]
    target = np.nonzero((before >= 0) & (place >= 0))[0]
    links = np.column_stack([place[before[target]], place[target]])
    return links[np.lexsort((links[:, 1], links[:, 0]))]
