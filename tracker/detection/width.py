"""Width of the spots of a movie: the one whose filter has maxima that stand out most, over its minima.

Uneven light and noise have minima as deep as their maxima are high; spots have maxima alone. The score of a
width is Σ (z/s - u₁)₊ over the maxima less the same over the minima, where s is the spread of the response
and u₁ the height above which one maximum of noise is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .joint import spread_of
from .response import local_maxima
from .spectrum import Filter, Modes, Transform, spectrum

NARROWEST, NEXT, TRIED = 0.7, 1.25, 16  # voxels; ratio of a width to the next; how many
_STRETCHES = (0.5, 1.0)  # widths along z over those in the plane that are tried first, in voxels' units
_STEPS = (1.41, 1.12, 1.06)  # ratios by which both are then improved
_TURNS = 3  # at each ratio
_ROOM = 10  # widths that the plane has at least
_DEEP = 3  # the same along z
_THIN = 0.5  # voxels along z below which a Gaussian at voxels is not one


@dataclass
class Search:
    """Parts of frames in which widths are tried.

    Parameters
    ----------
    frames : sequence of (Z, Y, X) float32 array
        In units of the camera's noise.
    how : Transform
    scale : (3,) float64 array
        Voxels along each axis of a length that is one voxel in the plane; 0 along a flat z axis.
    """

    frames: Sequence[NDArray[np.float32]]
    how: Transform
    scale: NDArray[np.float64]
    scores: dict[tuple[float, float], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.modes = [Modes(frame.shape) for frame in self.frames]
        self.transforms = [self.how.forward(frame - frame.mean()) for frame in self.frames]
        self.plain = [spectrum(m, f) for m, f in zip(self.modes, self.transforms, strict=True)]

    def score(self, wide: float, stretch: float) -> float:
        """How far spots of this width stand out."""
        key = (round(wide, 3), round(stretch, 3))
        if key not in self.scores:
            shape = self.frames[0].shape
            deep = wide * stretch
            fits = wide <= min(shape[1:]) / _ROOM and (shape[0] == 1 or _THIN <= deep <= shape[0] / _DEEP)
            sigma = np.array([deep, wide, wide])
            numbers = range(len(self.frames))
            self.scores[key] = sum(self._excess(sigma, number) for number in numbers) if fits else -np.inf
        return self.scores[key]

    def _excess(self, sigma: NDArray[np.float64], number: int) -> float:
        filter_ = Filter(self.modes[number], sigma, self.plain[number])
        z = filter_.respond(self.transforms[number], self.how) / filter_.wall
        spread, least = spread_of(z, filter_), filter_.least()
        sums = [
            float(np.maximum(side[tuple(local_maxima(side, least * spread).T)] / spread - least, 0).sum())
            for side in (z, -z)
        ]
        return sums[0] - sums[1]


def widths(
    search: Search, wide: float | None = None, deep: float | None = None
) -> NDArray[np.float64] | None:
    """(3,) widths of a spot in voxels.

    Parameters
    ----------
    search : Search
    wide : float, optional
        The width in the plane, if it is given.
    deep : float, optional
        That along z.

    Returns
    -------
    array or None
        None if nothing stands out at any width.
    """
    flat = search.frames[0].shape[0] == 1
    ladder = [wide] if wide else (NARROWEST * NEXT ** np.arange(TRIED)).tolist()
    stretches: tuple[float, ...] = (0.0,) if flat else _STRETCHES
    if wide and deep:
        stretches = (deep / wide,)
    w, r = max(((w, r) for w in ladder for r in stretches), key=lambda pair: search.score(*pair))
    for step in _STEPS:
        for _ in range(_TURNS):
            before = (w, r)
            if not (flat or deep):
                r = max((r / step, r, r * step), key=lambda each: search.score(w, each))
            if wide is None and step < NEXT:
                w = max((w / step, w, w * step), key=lambda each: search.score(each, r))
            if (w, r) == before:
                break
    if search.score(w, r) <= 0 and wide is None:
        return None
    return np.array([w * r, w, w])
