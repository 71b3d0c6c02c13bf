"""One wider spot, such as a bead out of focus, that was found as several.

A spot that is wider than the others is fitted as a ring of them. Three or more neighbours are one spot if a
single one of free width explains their light as well, but for a share by which a spot may differ from its
profile; of pairs the root mean square of the difference is .15 and more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from .candidates import CandidateSpots
from .fit import SIZES, SWEEPS, FittedSpots
from .fit_cpu import (
    AMPLITUDE,
    ERROR_DEPTH,
    ERROR_SIZE,
    MISFIT,
    PARAMETERS,
    REACH,
    X,
    Z,
    errors_of,
    fit_spots,
    render,
)
from .joint import _ONE_SPOT, PROFILE
from .stabilise import WIDEST, Noise

PIECES = 3
"""Prior: so many spots may be a wider one; two are two, unless the fit has moved them together."""


def as_one(
    voxels: NDArray[np.float32], candidates: CandidateSpots, fitted: FittedSpots, sigma: NDArray[np.float64]
) -> tuple[FittedSpots, NDArray[np.bool_]]:
    """Fitted spots with a wider one in place of the best of its pieces, and which rows stay.

    Parameters
    ----------
    voxels : (Z, Y, X) float32 array
        Grey values; NaN where nothing was measured.
    candidates : CandidateSpots
    fitted : FittedSpots
        Of all candidates.
    sigma : (3,) float64 array
        Widths of spots in voxels.
    """
    stay, deep, noise = np.ones(len(fitted.amplitude), bool), sigma > 0, candidates.background.noise
    places, spots = fitted.position[:, deep] / sigma[deep], fitted.parameters()
    out, whole = FittedSpots(*(each.copy() for each in fitted)), None
    for rows in _neighbours(places, candidates.significant):
        if whole is None:
            whole = candidates.background.grey + render(voxels.shape, spots, sigma, REACH)
        middle = np.average(fitted.position[rows], axis=0, weights=fitted.amplitude[rows])
        away = ((places - middle[deep] / sigma[deep]) ** 2).sum(axis=1)
        grown = np.sqrt(1 + np.average(away[rows], weights=fitted.amplitude[rows]) / deep.sum())
        if grown > WIDEST:
            continue
        pieces = np.union1d(rows, np.flatnonzero(away < (2 * grown) ** 2))
        one = _wider(voxels, whole, spots[pieces], middle, grown * sigma, sigma, noise)
        if one is None:
            continue
        best = pieces[np.argmax(candidates.significance[pieces])]
        stay[pieces] = pieces == best
        shift = np.log(grown)
        one = one._replace(log_width=one.log_width + shift, log_depth=one.log_depth + shift)
        for values, value in zip(out, one._replace(background=out.background[best : best + 1]), strict=True):
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
        if len(some) >= PIECES or np.linalg.norm(np.diff(places[some], axis=0)) < _ONE_SPOT:
            yield some


def _wider(
    voxels: NDArray[np.float32],
    whole: NDArray[np.float32],
    pieces: NDArray[np.float64],
    middle: NDArray[np.float64],
    wide: NDArray[np.float64],
    sigma: NDArray[np.float64],
    noise: Noise,
) -> FittedSpots | None:
    """The spot that explains the light of its pieces as well; None if none does."""
    unit = np.where(wide > 0, wide, 1.0)
    low = np.maximum(np.floor(middle - REACH * wide).astype(int), 0)
    box = tuple(slice(a, b) for a, b in zip(low, np.ceil(middle + REACH * wide).astype(int) + 1, strict=True))
    part, several = np.ascontiguousarray(voxels[box]), np.ascontiguousarray(whole[box])
    pieces = pieces - np.concatenate([low, np.zeros(PARAMETERS - 3)])
    single, spot = several - render(part.shape, pieces, sigma, REACH), np.zeros((1, PARAMETERS))
    spot[0, Z : X + 1], spot[0, AMPLITUDE] = middle - low, pieces[:, AMPLITUDE].max()
    camera = np.array([*noise.line, noise.saturation])
    prior = np.array([*1 / unit**2, *[1e-6 / noise.least] * 2, *[1 / SIZES**2] * 2])
    most = np.array([*0.3 * unit, 0.5, np.inf, 0.2, 0.2])
    start = spot[:, Z : X + 1].copy()
    fit_spots(part, single, spot, start, wide, camera, REACH, prior, most, 1.0, sum(SWEEPS), np.ones(1, bool))
    apart = [(np.arange(n) - c) / u for n, c, u in zip(part.shape, spot[0], unit, strict=False)]
    near = apart[0][:, None, None] ** 2 + apart[1][:, None] ** 2 + apart[2] ** 2 < REACH**2
    near &= np.isfinite(part) & (part < noise.saturation)
    weight = near / np.maximum(noise.base + noise.slope * single, noise.least)
    excess = _square(part - single, weight) - _square(part - several, weight)
    light = render(part.shape, spot, wide, REACH)
    if not near.any() or excess > PROFILE**2 * float((weight * light**2).sum()):
        return None
    error = errors_of(part, single, spot, wide, camera, REACH, prior)
    return FittedSpots(
        spot[:, Z : X + 1] + low, error[:, Z : X + 1], spot[:, AMPLITUDE], spot[:, AMPLITUDE],
        spot[:, -2], spot[:, -1], error[:, ERROR_SIZE], error[:, ERROR_DEPTH], error[:, MISFIT],
    )  # fmt: skip


def _square(rest: NDArray[np.float32], weight: NDArray[np.float64]) -> float:
    """Weighted sum of squares beyond a level."""
    rest = np.where(weight > 0, rest, 0)
    level = (weight * rest).sum() / max(float(weight.sum()), 1e-30)
    return float((weight * (rest - level) ** 2).sum())
