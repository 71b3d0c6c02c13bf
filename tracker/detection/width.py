"""Width of the spots of a movie: the one whose filter has maxima that stand out most, over its minima.

Uneven light and noise have minima as deep as their maxima are high; spots have maxima alone. The score of a
width is Σ (z/s - u₁)₊ over the maxima less the same over the minima, where s is the standard deviation of the
response and u₁ the height above which one maximum of noise is expected. Spots that are then fitted say by how
much they are narrower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..settings.detection import DetectionSettings
from .candidates import find_candidates
from .decision import decide
from .fit import FittedSpots, fit_in_grey
from .joint import maxima_above, noise_scale
from .spectrum import Filter, Modes, spectrum
from .stabilise import Noise
from .transform import Band, CosineTransform

NARROWEST = 0.7
"""Prior: least width in voxels: below, a Gaussian at voxels is not one."""
NEXT = 1.25
"""Guard: ratio of a width to the next."""
TRIED = 16
"""Guard: number of widths that are tried."""
_STRETCHES = (0.5, 1.0)
"""Prior: widths along z over those in the plane that are tried first, in units of length."""
_STEPS = (1.41, 1.12, 1.06)
"""Guard: ratios by which both are then improved."""
_ROOM = 10
"""Guard: widths that the plane has at least."""
_DEEP = 3
"""Guard: the same along z."""
_REFINED = 2
"""Guard: times that widths are measured by the fit of the spots."""
_MOST = 0.3
"""Prior: largest change of the logarithms of widths by a fit, and difference from a given one."""
_ENOUGH = 0.03
"""Error level: change of the logarithms below which widths are not measured again."""


@dataclass
class Search:
    """Parts of frames in which widths are tried.

    Parameters
    ----------
    frames : sequence of (Z, Y, X) float32 array
        In units of the camera's noise.
    spacing : tuple of 3 float
        Size of a voxel along z, y, x.
    dct : CosineTransform
    """

    frames: Sequence[NDArray[np.float32]]
    spacing: tuple[float, float, float]
    dct: CosineTransform
    scores: dict[tuple[float, float], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.modes = [Modes(frame.shape) for frame in self.frames]
        self.transforms = [self.dct.forward(frame - frame.mean()) for frame in self.frames]
        self.power = [spectrum(m, f) for m, f in zip(self.modes, self.transforms, strict=True)]

    @property
    def scale(self) -> NDArray[np.float64]:
        """(3,): voxels along each axis of a length that is one voxel along x; 0 along a flat z axis."""
        z, y, x = self.spacing
        return np.array([0.0 if self.frames[0].shape[0] == 1 else x / z, x / y, 1.0])

    def score(self, wide: float, stretch: float) -> float:
        """How far spots of this width stand out."""
        key = (round(wide, 3), round(stretch, 3))
        if key not in self.scores:
            shape, deep = self.frames[0].shape, wide * stretch
            deepest = max(shape[0] / _DEEP, 1.0)  # a voxel, of two planes
            fits = wide <= min(shape[1:]) / _ROOM and (shape[0] == 1 or NARROWEST <= deep <= deepest)
            sigma = np.array([deep, wide, wide])
            numbers = range(len(self.frames))
            self.scores[key] = sum(self._excess(sigma, number) for number in numbers) if fits else -np.inf
        return self.scores[key]

    def _excess(self, sigma: NDArray[np.float64], number: int) -> float:
        """In the band of this width."""
        band = Band.of(self.frames[number].shape, sigma)
        cut = tuple(slice(n) for n in band.small)
        filter_ = Filter(Modes(band.small), sigma * band.scale, self.power[number][cut], self.dct)
        z = filter_.respond(self.transforms[number][cut]) / filter_.boundary_gain
        scale, least = noise_scale(z, filter_), filter_.threshold()
        sums = [
            float(np.maximum(maxima_above(z, least * scale, sign)[1] / scale - least, 0).sum())
            for sign in (1.0, -1.0)
        ]
        return sums[0] - sums[1]


def find_widths(
    search: Search, wide: float | None = None, deep: float | None = None
) -> NDArray[np.float64] | None:
    """(3,) widths of a spot in voxels.

    Parameters
    ----------
    search : Search
    wide : float, optional
        The width in the plane, if it is given: a start, unless that along z is given as well.
    deep : float, optional
        That along z.

    Returns
    -------
    array or None
        None if nothing stands out at any width.
    """
    flat = search.frames[0].shape[0] == 1
    fixed = wide is not None and deep is not None
    ladder = (wide * NEXT ** np.arange(-1, 2) if wide else NARROWEST * NEXT ** np.arange(TRIED)).tolist()
    ladder = [wide] if fixed else ladder
    low, high = (wide or 0) / np.exp(_MOST), (wide or np.inf) * np.exp(_MOST)
    stretches: tuple[float, ...] = (0.0,) if flat else _STRETCHES
    if wide and deep:
        stretches = (deep / wide,)
    w, r = max(((w, r) for w in ladder for r in stretches), key=lambda pair: search.score(*pair))
    for step in _STEPS:
        before = (0.0, 0.0)
        while (w, r) != before:
            before = (w, r)
            if not (flat or deep):
                r = max((r / step, r, r * step), key=lambda each: search.score(w, each))
            if not fixed and step < NEXT:
                near = [each for each in (w / step, w, w * step) if low <= each <= high]
                w = max(near, key=lambda each: search.score(each, r))
    if search.score(w, r) <= 0:
        return None if wide is None else np.array([deep or wide * stretches[-1], wide, wide])
    return np.array([w * r, w, w])


def refine_widths(
    parts: Sequence[NDArray[np.float32]],
    sigma: NDArray[np.float64],
    noise: Noise,
    settings: DetectionSettings,
    dct: CosineTransform,
) -> tuple[NDArray[np.float64], list[FittedSpots]] | None:
    """The widths that spots have when they are fitted, if less; and the spots; None if no part has one.

    Widths that stand out most are some tenths too large where light is even. Uneven light only widens a fit.
    """
    for _ in range(_REFINED):
        fits = []
        for part in parts:
            candidates = find_candidates(part, sigma, noise, dct)
            significance, maxima = candidates.significance, candidates.filter_.maxima
            decision = decide(significance, maxima.above, candidates.least, settings.fdr)
            if decision.keep:
                fits.append(fit_in_grey(part, candidates, sigma).of(np.sort(decision.order[: decision.keep])))
            else:
                fits.append(FittedSpots.none())
        grown = [fit.growth() for fit in fits if len(fit.position)]
        if not grown:
            return None
        plane, deep = np.clip(np.mean(grown, axis=0), -_MOST, 0.0)
        sigma = sigma * np.exp([deep, plane, plane])
        if max(-plane, -deep) < _ENOUGH:
            break
    return sigma, fits
