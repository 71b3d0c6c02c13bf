"""Spots or bodies: which of the two a movie holds, by the profile of what is found as spots.

Spots have one profile, that of the optics; each body has its own, with a flat top and an edge. Spots out of
focus or of unequal size differ as well, but stand alone, while parts of a body are neighbours. Spots
do not care where wider structure is; the parts and the texture of bodies are where the bodies are. Drawn
spots leave little but the camera's noise; of bodies they leave edges and texture. If no spot stands out,
structure with edges is bodies; light has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.spatial import cKDTree

from .blobs import laplacian, width_of_blobs
from .fit import SIZES, FittedSpots, weighted_median, without_prior
from .fit_cpu import REACH, render
from .joint import WINDOW
from .stabilise import Noise, stabilised
from .width import Search

MARGIN = 1.25
"""Error level: factor about 1 of the evidence within which both are counted."""
_CERTAIN = 2.0
"""Error level: scatter of sizes over their errors, below which it may be that of neighbours' light."""
_FLAT = 0.06
"""Prior: lack of light in the middle of a spot relative to its flank, as a share of it: a disc has .2."""
_MIDDLE, _FLANK = 0.5, 1.3
"""Prior: widths of the middle that is smoothed, and from the middle to the flank."""
_RELATED = 0.6
"""Error level: correlation of the spots' light with wider structure, below which evidence counts less."""
_OUTSIDE = 0.5
"""Error level: largest share of spots outside wider structure, over that of places."""
_EDGES = 0.01
"""Error level: power at `_FINE` over that at `_COARSE`: of a disc .02, of a Gaussian .001, of lumps .009."""
_COARSE, _FINE = (1.0, 1.8), (3.6, 4.4)
"""Prior: wave numbers, times the width of the filter of bodies, of bodies and of their edges."""
_LEFT = 0.2
"""Error level: power that drawn spots leave beyond the camera's, over all: of any size .1, of bodies .5."""
_SHELL = (2.2, 2.8)
"""Prior: wave numbers, times the width of spots, at which it is measured: finer than haze."""
_FEWEST = 5
"""Guard: spots whose sizes are compared."""


class Evidence(NamedTuple):
    """Evidence for bodies instead of spots.

    Parameters
    ----------
    ratio : float
        More than 1 if bodies explain the movie better, less if spots do.
    reason : str
    """

    ratio: float
    reason: str


def evidence_of_bodies(
    search: Search,
    parts: Sequence[NDArray[np.float32]],
    fits: Sequence[FittedSpots],
    sigma: NDArray[np.float64] | None,
    noise: Noise,
) -> Evidence:
    """Evidence for bodies in parts of some frames.

    Parameters
    ----------
    search : Search
    parts : sequence of (Z, Y, X) float32 array
        Grey values; NaN where nothing was measured.
    fits : sequence of FittedSpots
        Spots in each part; none if nothing stands out.
    sigma : (3,) float64 array, optional
        Their common widths in voxels.
    noise : Noise
        The camera's. Saturated spots are flat, and are not judged.
    """
    wide = width_of_blobs(search)
    if wide is None:
        return Evidence(0.0, "no structure is wider than spots")
    if sigma is None or not sum(len(fit.position) for fit in fits):
        return Evidence(_edges(search, wide) / _EDGES, "no spot stands out")
    whole = [np.where(np.isfinite(part), part, np.nanmedian(part)).astype(np.float32) for part in parts]
    drawn = [
        render(part.shape, fit.parameters(), sigma, REACH) for part, fit in zip(whole, fits, strict=True)
    ]
    left = _left(search, whole, drawn, sigma, noise)
    if left < _LEFT:
        return Evidence(0.0, "spots of some size leave little")
    related = _relation(whole, drawn, fits, wide)
    if related == 0:
        return Evidence(0.0, "spots do not follow wider structure")
    whole_ones = [
        fit.of(part[tuple(_voxels(fit, part.shape).T)] < noise.saturation)
        for part, fit in zip(whole, fits, strict=True)
    ]
    if sum(len(fit.position) for fit in whole_ones) < _FEWEST:
        return Evidence(0.0, "few spots are not saturated")
    scatter = max(left, _beside(fits, sigma)) * _scatter(FittedSpots.joined(whole_ones)) / SIZES
    flat = _flatness(whole, drawn, whole_ones, sigma) / _FLAT
    return Evidence(related * max(scatter, flat), "what is found as spots has no common profile")


def _left(
    search: Search,
    whole: Sequence[NDArray[np.float32]],
    drawn: Sequence[NDArray[np.float32]],
    sigma: NDArray[np.float64],
    noise: Noise,
) -> float:
    """Power that drawn spots leave beyond the camera's noise, over what was there, at the scale of spots."""
    power, count = np.zeros(2), 0
    for number, (part, light) in enumerate(zip(whole, drawn, strict=True)):
        modes, seen = search.modes[number], search.transforms[number]
        rest = search.dct.forward(search.frames[number] - stabilised(light + np.median(part - light), noise))
        z, y, x = (k * width for k, width in zip(modes.k, sigma, strict=True))
        wave = np.sqrt((z**2)[:, None, None] + (y**2)[:, None] + x**2)
        shell = (wave > _SHELL[0]) & (wave < _SHELL[1])
        power += [float(np.square(each[shell]).sum()) for each in (seen, rest)]
        count += int(shell.sum())
    before, left = (power / max(count, 1)).tolist()
    return (left - 1) / max(before, 1.0)


def _voxels(fit: FittedSpots, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """(n, 3): the voxels of spots."""
    return np.clip(np.rint(fit.position).astype(np.int64), 0, np.array(shape) - 1)


def _beside(fits: Sequence[FittedSpots], sigma: NDArray[np.float64]) -> float:
    """Share of spots with another in their window, as parts of a body; one out of focus may stand alone."""
    unit = np.where(sigma > 0, sigma, 1.0)
    places = [fit.position / unit for fit in fits if len(fit.position)]
    return float(np.mean(np.concatenate([cKDTree(p).query(p, 2)[0][:, 1] for p in places]) < WINDOW))


def _scatter(spots: FittedSpots) -> float:
    """Standard deviation of the logarithm of sizes beyond their errors; 0 if it is not certain."""
    measured, size, own = without_prior(spots.log_width, spots.log_width_error)
    if len(size) < _FEWEST:
        return 0.0
    weight = own / np.maximum(spots.misfit[measured], 1)
    square = (size - weighted_median(size, weight)) ** 2
    chi = float(np.mean(square * weight))
    return float(np.sqrt(np.average(square, weights=weight) * (1 - 1 / chi))) if chi > _CERTAIN**2 else 0.0


def _relation(
    whole: Sequence[NDArray], drawn: Sequence[NDArray], fits: Sequence[FittedSpots], wide: NDArray
) -> float:
    """From 0 to 1: how far spots are where wider structure is, and their light is a share of it."""
    sums, outside, places = np.zeros(3), 0, 0.0
    for part, light, fit in zip(whole, drawn, fits, strict=True):
        all_, own = laplacian(part, wide), laplacian(light, wide)
        sums += [np.vdot(all_, own), np.vdot(all_, all_), np.vdot(own, own)]
        voxel = _voxels(fit, part.shape)
        outside += int((all_[tuple(voxel.T)] < 0).sum())
        places += len(voxel) * float((all_ < 0).mean())
    if outside >= _OUTSIDE * places:
        return 0.0
    correlation = float(sums[0] / np.sqrt(max(sums[1] * sums[2], 1e-30)))
    return min(1.0, max(correlation, 0.0) / _RELATED) ** 2


def _flatness(
    whole: Sequence[NDArray],
    drawn: Sequence[NDArray],
    fits: Sequence[FittedSpots],
    sigma: NDArray[np.float64],
) -> float:
    """Light of the flanks of spots beyond their profile, less that of the middles, as a share of them."""
    lack = light = 0.0
    steps = [_FLANK * sigma * np.eye(3)[axis] * sign for axis in np.flatnonzero(sigma) for sign in (-1, 1)]
    for part, own, fit in zip(whole, drawn, fits, strict=True):
        rest = gaussian_filter(part - own, _MIDDLE * sigma)
        middle, *flanks = (
            map_coordinates(rest, (fit.position + step).T, order=1, mode="nearest")
            for step in (np.zeros(3), *steps)
        )
        lack += float(fit.amplitude @ (np.mean(flanks, axis=0) - middle))
        light += float(fit.amplitude @ fit.amplitude)
    return lack / light


def _edges(search: Search, wide: NDArray[np.float64]) -> float:
    """Power of edges in the plane over that of bodies, both beyond the camera's noise."""
    plane = search.modes[0].plane * wide[1]
    power = np.maximum(search.power[0][0] - 1, 0)
    coarse, fine = (power[(plane > low) & (plane < high)] for low, high in (_COARSE, _FINE))
    return float(fine.mean() / max(float(coarse.mean()), 1e-9)) if len(coarse) and len(fine) else 0.0
