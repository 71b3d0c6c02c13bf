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

from .._arrays import array_module, ndimage_module, to_host
from .decision import Decision, expected_jaccard, probabilities, rates
from .joint_cpu import AMPLITUDE, COLUMNS, ENTRIES, REACH, STEP, Optics, X, Z, paint_beyond
from .response import local_maxima
from .scene import Work

DISC, BALL = 1.55, 1.38
"""Width of the filter over that of the autocorrelation. The answer to a disc of radius R is largest at R/√2,
to a ball at R/√3 (Lindeberg 1998); their autocorrelations fall to half at .81 R and .69 R: 1.46 and 1.38. In
a plane, texture narrows the autocorrelation by some percent: at 1.46, noise has maxima among colloids."""
_ANSWERS = 1.4  # width of the filter over that of a body, by which its answer is
_REACH = 5.0  # widths of an answer that are drawn: 3e-5 of it is beyond
_ALIKE, _UPPER = 3.0, 0.84  # standard deviations of the brightness of bodies; the quantile one above
_ABOUT, _EVERYWHERE = 4.0, 0.05  # widths of the window of a local spread; share of that of all
_WITHIN = 1.5  # widths about the middle of a body in which a minimum is its texture
_TRUNCATE = 3.5  # standard deviations to which a Gaussian is summed


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


def find_bodies(
    image: NDArray[np.float32], sigma: NDArray[np.float64], fdr: float | None, work: Work
) -> Bodies:
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
    response = laplacian(work.there(image), sigma)
    if dead.any():
        response[work.there(dead)] = 0
    voxel = local_maxima(response, 0.0)
    place = to_host(voxel + _vertex(response, voxel))
    values, at = to_host(response), tuple(to_host(voxel).T)
    answer = _answer(sigma)
    top = values[at].astype(np.float64)
    scale = _local(values, sigma)
    bodies, unit = place[:0], _unit(answer)
    quality, keep = _judged(top, scale[at], _depths(values, scale, bodies, unit), fdr)
    if keep:
        chosen = quality >= np.sort(quality)[-keep]
        values = values - _painted(values.shape, place[chosen], top[chosen], answer)
        scale, bodies = _local(values, sigma), place[chosen] / unit
        left = values[at] + np.where(chosen, top, 0.0)
        quality, keep = _judged(left, scale[at], _depths(values, scale, bodies, unit), fdr)
    order = np.argsort(-quality, kind="stable")
    best = quality[order]
    false = _exceeding(_depths(values, scale, bodies, unit), best)
    return Bodies(place[order], top[order], best, Decision(order, keep, probabilities(best, false, 0.5)))


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


def _answer(sigma: NDArray[np.float64]) -> Optics:
    """Filter response to a Gaussian body: (1 - r²/d) exp(-r²/2), with r relative to the combined width."""
    flat = sigma[0] == 0
    wide = np.where(sigma > 0, sigma * np.sqrt(1 + 1 / _ANSWERS**2), 0.0)
    square = np.arange(ENTRIES) * STEP
    return Optics(wide, (1 - square / (2 if flat else 3)) * np.exp(-square / 2), 0.0, 0.0, flat)


def _unit(answer: Optics) -> NDArray[np.float64]:
    return np.where(answer.sigma > 0, answer.sigma, 1.0)


def _painted(
    shape: tuple[int, ...], place: NDArray[np.float64], height: NDArray[np.float64], answer: Optics
) -> NDArray[np.float32]:
    spots = np.zeros((len(place), COLUMNS))
    spots[:, AMPLITUDE], spots[:, Z : X + 1], spots[:, REACH] = height, place, _REACH
    light = np.zeros(shape, np.float32)
    paint_beyond(light, spots, answer, 0.0)
    return light


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
        return int((rates(false) <= fdr).sum())
    return int(np.argmax(expected_jaccard(np.arange(1, len(false) + 1) - false, false))) + 1


def laplacian(image: NDArray[np.float32], sigma: NDArray[np.float64]) -> NDArray[np.float32]:
    """Sum over axes of -σ² times the second derivative of the smoothed image; edge values are repeated."""
    deep = [axis for axis in range(3) if sigma[axis] > 0 and image.shape[axis] > 1]
    total = None
    for curved in deep:
        part = image
        for axis in deep:
            part = _along(part, float(sigma[axis]), axis, curved=axis == curved)
        total = part if total is None else total + part
    return image * 0 if total is None else -total


def _along(image: NDArray[np.float32], width: float, axis: int, *, curved: bool) -> NDArray[np.float32]:
    """Smoothed along an axis, or σ² times the second derivative; exact for constants and parabolas."""
    xp, ndimage = array_module(image), ndimage_module(image)
    reach = max(int(_TRUNCATE * width + 0.5), 1)
    x = np.arange(-reach, reach + 1)
    taps = np.exp(-0.5 * (x / width) ** 2)
    taps /= taps.sum()
    if curved:
        taps = (x**2 / width**2 - 1) * taps - ((x**2 / width**2 - 1) * taps).sum() * taps
        taps *= 2 * width**2 / (x**2 * taps).sum()
    return ndimage.correlate1d(image, xp.asarray(taps), axis, mode="nearest")


def _vertex(values: NDArray[np.float32], voxel: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, 3): offset from each voxel to the vertex of the parabola through its neighbours on each axis."""
    xp = array_module(values)
    shift = xp.zeros(voxel.shape)
    for axis, size in enumerate(values.shape):
        if size < 3:
            continue
        # Beside a wall there is no neighbour: the next voxel is asked, and the shift left at 0.
        here = list(voxel.T)
        middle = xp.clip(here[axis], 1, size - 2)
        before, at, after = (
            values[(*here[:axis], middle + step, *here[axis + 1 :])].astype(np.float64) for step in (-1, 0, 1)
        )
        bend = before - 2 * at + after
        bent = (bend < 0) & (middle == here[axis])
        vertex = (before - after) / xp.where(bent, 2 * bend, 1.0)
        shift[:, axis] = xp.where(bent, xp.clip(vertex, -0.5, 0.5), 0.0)
    return shift
