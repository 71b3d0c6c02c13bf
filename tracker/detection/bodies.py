"""Bodies without a common profile, such as nuclei: maxima of a Laplacian of Gaussian against minima.

A bright body is surrounded by a ring of minima, which would count as decoys against dim bodies. So the filter
response of accepted bodies is subtracted before the others are tested, as in CLEAN (Högbom, Astron.
Astrophys. Suppl. 15, 417, 1974).

The filter is the negative Laplacian, normalised by the widths (Lindeberg, Int. J. Comput. Vision 30, 79,
1998). Texture and uneven light cause minima that are as deep as the false maxima are high. The minima
therefore serve as an empirical null distribution (target and decoy; Elias & Gygi, Nat. Methods 4, 207, 2007).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from .decision import Decision
from .joint import Candidates, fit_together, light_of, spots_of, vertices
from .noise import Noise
from .response import laplacian, local_maxima
from .spectrum import Filter, along
from .stabilise import Ground
from .width import NARROWEST, NEXT, TRIED, Search

_BODY = 1.4  # width of the filter over that of a Gaussian body, by which its answer is
_ALIKE, _UPPER = 3.0, 0.84  # standard deviations of the brightness of bodies; the quantile one above
_ABOUT, _EVERYWHERE = 4.0, 0.05  # widths of the window of a local spread; share of that of all
_WITHIN = 1.5  # widths about the middle of a body in which a minimum is its texture
_NEARBY = 0.5  # of a quality, in which probabilities are counted
_WIDER = 1.5  # widths of a spot that a body has at least
_UNDER = 0.7  # standard deviations of what is left under spots
_EXPLAINED = 0.4  # share of it that spots explain
_FEWEST = 30  # spots of which the mean under them is taken


class Bodies(NamedTuple):
    """Maxima of the filter response, best first.

    Parameters
    ----------
    place : (n, 3) float64 array
        Positions in voxels: the vertex of a parabola through the maximum and its neighbours.
    height : (n,) float64 array
        Grey values, normalised so that it does not depend on the voxel.
    quality : (n,) float64 array
        Height without the rings of neighbouring bodies, divided by the local spread of the residual response.
    decision : Decision
        The decision on the number of bodies.
    """

    place: NDArray[np.float64]
    height: NDArray[np.float64]
    quality: NDArray[np.float64]
    decision: Decision


def find_bodies(image: NDArray[np.float32], sigma: NDArray[np.float64], fdr: float | None) -> Bodies:
    """Find bodies that match the width of the filter.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
        NaN where nothing was measured.
    sigma : (3,) float64 array
        Width of the filter in voxels; z is ignored in a flat image.
    fdr : float, optional
        As for `decide`.
    """
    dead = ~np.isfinite(image)
    if dead.any():
        image = np.where(dead, np.nanmedian(image) if not dead.all() else 0, image).astype(np.float32)
    values = laplacian(image, sigma)
    if dead.any():
        values[dead] = 0
    voxel = local_maxima(values, 0.0)
    place, at = vertices(values, voxel)[0], tuple(voxel.T)
    top = values[at].astype(np.float64)
    scale = _local(values, sigma)
    bodies, unit = place[:0], np.where(sigma > 0, sigma * np.sqrt(1 + 1 / _BODY**2), 1.0)
    quality, keep = _judged(top, scale[at], _depths(values, scale, bodies, unit), fdr)
    if keep:
        chosen = quality >= np.sort(quality)[-keep]
        values = values - _answers(values.shape, place[chosen], top[chosen], sigma)
        scale, bodies = _local(values, sigma), place[chosen] / unit
        left = values[at] + np.where(chosen, top, 0.0)
        quality, keep = _judged(left, scale[at], _depths(values, scale, bodies, unit), fdr)
    order = np.argsort(-quality, kind="stable")
    best = quality[order]
    false = _exceeding(_depths(values, scale, bodies, unit), best)
    return Bodies(place[order], top[order], best, Decision(order, keep, _probabilities(best, false)))


def _judged(
    light: NDArray[np.float64], scale: NDArray[np.float64], depth: NDArray[np.float64], fdr: float | None
) -> tuple[NDArray[np.float64], int]:
    """Quality of each maximum, and how many of the best are bodies.

    Those that stand out of the minima are; and those not much dimmer than these. A crowd has gaps as deep as
    its bodies are high, but haze, texture and noise are dimmer by more than bodies differ.
    """
    height = light / scale
    keep = _count(np.sort(height)[::-1], depth, fdr)
    if keep == 0 or fdr is not None:
        return height, keep
    least = np.sort(height)[-keep]
    alike = sure = height >= least
    while True:
        middle, upper = np.quantile(np.log(np.maximum(light[alike], 1e-30)), [0.5, _UPPER])
        low = float(np.exp(middle - _ALIKE * (upper - middle)))
        more = sure | (light >= low)
        if more.sum() <= alike.sum():
            break
        alike = more
    quality = np.maximum(height, least * light / low)
    return quality, int((quality >= least).sum())


def _answers(
    shape: tuple[int, ...],
    place: NDArray[np.float64],
    height: NDArray[np.float64],
    sigma: NDArray[np.float64],
) -> NDArray[np.float32]:
    """The response to Gaussian bodies whose answers have these heights."""
    dimensions = int((sigma > 0).sum())
    both = 1 + _BODY**2  # squared width of the smoothed body over that of the body
    peak = dimensions * _BODY**2 / both / both ** (dimensions / 2)
    return laplacian(spots_of(shape, place, height / peak, sigma / _BODY), sigma)


def _local(values: NDArray[np.float32], sigma: NDArray[np.float64]) -> NDArray[np.float32]:
    """Local spread of negative values around each voxel, combined with a share of the global spread."""
    square = np.minimum(values, 0) ** 2
    local = gaussian_filter(square, _ABOUT * sigma, mode="nearest")
    return np.sqrt(2 * local) + _EVERYWHERE * np.sqrt(2 * square.mean()) + np.float32(1e-30)


def _depths(
    values: NDArray[np.float32],
    scale: NDArray[np.float32],
    bodies: NDArray[np.float64],
    unit: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sorted depths of the minima outside bodies; minima inside a body are due to its misfit."""
    voxel = local_maxima(-values, 0.0)
    if len(bodies) and len(voxel):
        voxel = voxel[cKDTree(bodies).query(voxel / unit)[0] > _WITHIN]
    return np.sort((-values / scale)[tuple(voxel.T)].astype(np.float64))


def _exceeding(depth: NDArray[np.float64], height: NDArray[np.float64]) -> NDArray[np.float64]:
    """Number of minima that are deeper than each maximum is high."""
    return (len(depth) - np.searchsorted(depth, height)).astype(np.float64)


def _count(height: NDArray[np.float64], depth: NDArray[np.float64], fdr: float | None) -> int:
    """Number of highest maxima that are kept."""
    if len(height) == 0:
        return 0
    false = _exceeding(depth, height)
    if fdr is not None:
        return int((np.minimum.accumulate((false / np.arange(1, len(false) + 1))[::-1])[::-1] <= fdr).sum())
    true = np.arange(1, len(false) + 1) - false
    return int(np.argmax(true / (max(float(true.max()), 1e-9) + false))) + 1


def _probabilities(best: NDArray[np.float64], false: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): 1 minus the minima per maximum within `_NEARBY` above each one; non-increasing."""
    first = np.searchsorted(-best, -(best + _NEARBY), side="left")
    before = np.where(first > 0, false[np.maximum(first - 1, 0)], 0.0)
    rate = (false - before) / (np.arange(1, len(best) + 1) - first)
    return 1 - np.maximum.accumulate(np.clip(rate, 0, 1)).round(12)


def width_of_bodies(search: Search) -> NDArray[np.float64] | None:
    """(3,) widths in voxels of the filter that answers most, beyond texture; None if no width stands out.

    The power of the normalised filter's response is V(σ) = mean of (σk)⁴ exp(-σ²k²) P(k); its first maximum
    by σ is that of the bodies, at 2/√d times the width of Gaussian ones in d dimensions.
    """
    modes, scale = search.modes[0], search.scale
    power = np.where(np.isfinite(search.plain[0]), np.maximum(search.plain[0] - 1, 0), 0)
    widths = [w * scale for w in NARROWEST * NEXT ** np.arange(TRIED)]
    seen = []
    for sigma in widths:
        z, y, x = (along(axis, (k * s) ** 2) for axis, (k, s) in enumerate(zip(modes.k, sigma, strict=True)))
        square = z + y + x
        seen.append(float((square**2 * np.exp(-square) * power).mean(dtype=np.float64)))
    for number in range(1, len(seen) - 1):
        if seen[number - 1] < seen[number] >= seen[number + 1]:
            before, at, after = np.log(np.maximum(seen[number - 1 : number + 2], 1e-30))
            shift = (before - after) / (2 * (before - 2 * at + after))
            return widths[number] * NEXT**shift * _BODY * np.sqrt((scale > 0).sum()) / 2
    return None


def look_like_bodies(search: Search, sigma: NDArray[np.float64], filter_: Filter, noise: Noise) -> bool:
    """Whether wider structure stays under most spots of this width: the texture of bodies is like that."""
    wide = width_of_bodies(search)
    if wide is None or wide[1] < _WIDER * sigma[1]:
        return False
    mean = search.frames[0].mean()
    values, ground = search.frames[0] - mean, Ground(np.full(search.frames[0].shape, mean), noise)
    seen, _, _ = fit_together(values, ground, filter_, search.how, Candidates.none())
    sure = seen.of(seen.significance > filter_.least())
    if len(sure.place) < _FEWEST:
        return False
    left = laplacian(values - light_of(ground, sure, filter_), wide)
    at = left[tuple(np.rint(sure.place).astype(int).T)]
    explained = 1 - float(left.var()) / float(laplacian(values, wide).var())
    return float(at.mean()) > _UNDER * float(left.std()) and explained < _EXPLAINED
