"""Bodies, such as nuclei, without a common profile: maxima of a Laplacian of Gaussian against its minima.

The filter is the negative Laplacian, normalised by the widths (Lindeberg, Int. J. Comput. Vision 30, 79,
1998). Texture and uneven light make minima as deep as the maxima that are no bodies: an empirical null
(target and decoy; Elias & Gygi, Nat. Methods 4, 207, 2007).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import array_module, ndimage_module, to_host
from .decision import Decision, expected_jaccard, probabilities, rates
from .response import local_maxima
from .scene import Work

WIDER = 1.4
"""Width of the filter over that of the autocorrelation, in which neighbours overlap."""
_TRUNCATE = 3.5  # standard deviations to which a Gaussian is summed


class Bodies(NamedTuple):
    """Maxima of the filter's answer, the best first.

    Parameters
    ----------
    place : (n, 3) float64 array
        In voxels: the vertex of a parabola through the maximum and its neighbours.
    height : (n,) float64 array
        Grey values, normalised so that it does not depend on the voxel.
    decision : Decision
        How many count.
    spread : float
        Standard deviation of the answer by its negative values.
    """

    place: NDArray[np.float64]
    height: NDArray[np.float64]
    decision: Decision
    spread: float


def find_bodies(
    image: NDArray[np.float32], sigma: NDArray[np.float64], fdr: float | None, work: Work
) -> Bodies:
    """Find bodies as wide as the filter.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
        NaN where nothing was measured.
    sigma : (3,) float64 array
        Of the filter, in voxels; z counts for nothing in a flat image.
    fdr : float, optional
        As for `decide`.
    """
    dead = ~np.isfinite(image)
    if dead.any():
        image = np.where(dead, np.nanmedian(image) if not dead.all() else 0, image).astype(np.float32)
    values = laplacian(work.there(image), sigma)
    if dead.any():
        values[work.there(dead)] = 0
    up = local_maxima(values, 0.0)
    down = local_maxima(-values, 0.0)
    place = to_host(up + _vertex(values, up))
    height = to_host(values[tuple(up.T)]).astype(np.float64)
    depth = np.sort(-to_host(values[tuple(down.T)]).astype(np.float64))
    order = np.argsort(-height, kind="stable")
    height = height[order]
    false = (len(depth) - np.searchsorted(depth, height)).astype(np.float64)
    if fdr is not None:
        count = int((rates(false) <= fdr).sum())
    else:
        count = (
            int(np.argmax(expected_jaccard(np.arange(1, len(false) + 1) - false, false))) + 1
            if len(false)
            else 0
        )
    xp = array_module(values)
    spread = float(xp.sqrt(2 * xp.mean(xp.minimum(values, 0).astype(np.float64) ** 2)))
    choice = Decision(order, count, probabilities(height, false, spread / 2))
    return Bodies(place[order], height, choice, spread)


def laplacian(image: NDArray[np.float32], sigma: NDArray[np.float64]) -> NDArray[np.float32]:
    """The sum over axes of -σ² times the second derivative of the smoothed image; edges go on."""
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
    """(n, 3): from each voxel to the vertex of the parabola through it and its neighbours along each axis."""
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
