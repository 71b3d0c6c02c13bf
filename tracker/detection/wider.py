"""One wider spot, such as a bead out of focus, that was found as several.

A spot that is wider than the others is fitted as a ring of them. Three or more neighbours are one spot if a
single one of free width explains their light as well, but for a share by which a spot may differ from its
profile; of pairs the root mean square of the difference is .15 and more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from .fit import SWEEPS, FittedSpots, limits_of
from .fit_cpu import AMPLITUDE, DEPTH, PARAMETERS, REACH, SIZE, X, errors_of, fit_spots, render
from .joint import ONE_SPOT, PROFILE
from .stabilise import WIDEST, Noise

PIECES = 3
"""Prior: so many spots may be a wider one; two are two, unless the fit has moved them together."""


Look = Callable[[tuple[slice, ...]], tuple[NDArray[np.float32], NDArray[np.float32]]]
"""Returns the voxels of a part of a frame, NaN where nothing was measured, and its light without spots."""


def as_one(
    look: Look,
    fitted: FittedSpots,
    significance: NDArray[np.float64],
    significant: NDArray[np.bool_],
    sigma: NDArray[np.float64],
    noise: Noise,
) -> tuple[FittedSpots, NDArray[np.bool_]]:
    """Fitted spots with a wider one in place of the best of its pieces, and which rows stay.

    Parameters
    ----------
    look : callable
    fitted : FittedSpots
        Of all candidates of a frame.
    significance, significant : (n,) arrays
        Of these candidates.
    sigma : (3,) float64 array
        Widths of spots in voxels.
    noise : Noise
    """
    stay, deep = np.ones(len(significance), bool), sigma > 0
    places, spots = fitted.position[:, deep] / sigma[deep], fitted.parameters()
    out, bright = FittedSpots(*(each.copy() for each in fitted)), np.maximum(fitted.amplitude, 1e-30)
    for rows in _neighbours(places, significant):
        if not stay[rows].all():  # another wide spot has taken some
            continue
        middle = np.average(fitted.position[rows], axis=0, weights=bright[rows])
        away = np.linalg.norm(places - middle[deep] / sigma[deep], axis=1)
        square = np.average(away[rows] ** 2, weights=bright[rows])
        grown = float(np.sqrt(1 + square / deep.sum()))
        if grown > WIDEST:
            continue
        pieces = np.isin(np.arange(len(away)), rows) | (away < 2 * grown)
        beside = spots[~pieces & (away < 2 * REACH * grown)]
        one = _wider(look, spots[pieces], beside, middle, grown, sigma, noise)
        if one is None:
            continue
        best = int(np.argmax(np.where(pieces, significance, -np.inf)))
        stay &= ~pieces
        stay[best] = True
        for values, value in zip(out, one._replace(background=out.background[[best]]), strict=True):
            values[best] = value[0]
    return out, stay


def _neighbours(places: NDArray[np.float64], significant: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Rows of significant spots that are neighbours of each other."""
    rows = np.flatnonzero(significant)
    first, second = cKDTree(places[rows]).query_pairs(WIDEST, output_type="ndarray").T
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(len(rows), len(rows)))
    label = connected_components(graph, directed=False)[1]
    for number in np.flatnonzero(np.bincount(label) > 1):
        some = rows[label == number]
        if len(some) >= PIECES or np.linalg.norm(np.diff(places[some], axis=0)) < ONE_SPOT:
            yield some


def _wider(
    look: Look,
    pieces: NDArray[np.float64],
    beside: NDArray[np.float64],
    middle: NDArray[np.float64],
    grown: float,
    sigma: NDArray[np.float64],
    noise: Noise,
) -> FittedSpots | None:
    """The spot, about `grown` times as wide, that explains the light of its pieces; None if none does."""
    wide = grown * sigma
    camera, prior, most = limits_of(wide, noise)
    low = np.maximum(np.floor(middle - REACH * wide).astype(int), 0)
    stop = np.ceil(middle + REACH * wide).astype(int) + 1
    voxels, light = map(np.ascontiguousarray, look(tuple(map(slice, low.tolist(), stop.tolist()))))
    shift = np.concatenate([low, np.zeros(PARAMETERS - 3)])
    single = light + render(light.shape, beside - shift, sigma, REACH)
    several, spot = single + render(light.shape, pieces - shift, sigma, REACH), np.zeros((1, PARAMETERS))
    spot[0, : X + 1], spot[0, AMPLITUDE] = middle - low, pieces[:, AMPLITUDE].max()
    start, moving = spot[:, : X + 1].copy(), np.ones(1, bool)
    fit_spots(voxels, single, spot, start, wide, camera, REACH, prior, most, 1.0, sum(SWEEPS), moving)
    unit = np.where(wide > 0, wide, 1.0)
    apart = [(np.arange(n) - c) / u for n, c, u in zip(light.shape, spot[0], unit, strict=False)]
    near = apart[0][:, None, None] ** 2 + apart[1][:, None] ** 2 + apart[2] ** 2 < REACH**2
    near &= np.isfinite(voxels) & (voxels < noise.saturation)
    weight = near / np.maximum(noise.base + noise.slope * single, noise.least)
    excess = _square(voxels - single, weight) - _square(voxels - several, weight)
    own = float((weight * render(light.shape, spot, wide, REACH) ** 2).sum())
    if not (near.any() and excess <= PROFILE**2 * own):
        return None
    error = errors_of(voxels, single, spot, wide, camera, REACH, prior)
    spot[:, : X + 1] += low
    spot[:, SIZE : DEPTH + 1] += np.log(grown)
    return FittedSpots.of_columns(spot, error, spot[:, AMPLITUDE])


def _square(rest: NDArray[np.float32], weight: NDArray[np.float64]) -> float:
    """Weighted sum of squares beyond a level."""
    rest = np.where(weight > 0, rest, 0)
    level = (weight * rest).sum() / max(float(weight.sum()), 1e-30)
    return float((weight * (rest - level) ** 2).sum())
