"""Precision: errors of separated spots against the Cramér-Rao bound, and what stated errors are worth.

The bound has position, amplitude and background free for each spot, and its width known, for all spots of
an image share it. Expected photons μ and variance v = μ + read² of a voxel give the information
Σ (∂μ/∂θ_i) (∂μ/∂θ_j) / v over the voxels about a spot; the derivatives are differences of the renderer's own
images, so that the bound is that of the true optics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from outbid import DetectionSettings, detect

from . import agree, scmos
from .cells import Cell
from .separated import Separated, light, scene, separated, shape_of

SNRS = (3.0, 4.0, 7.0, 15.0, 30.0)
SCENES = {
    cell.name: cell
    for renderer in ("camera", "optics")
    for dimensions, radius in ((2, 1.8), (2, 3.5), (3, 2.5))
    for cell in (scene(renderer, dimensions, radius, snr) for snr in SNRS)
}
ENOUGH = 900  # spots of a scene: a share of .68 of so many is known to .016
ABOUT = 5.0  # standard deviations about a spot that are informative
STEP = 0.05  # pixels, of the differences
LIMITS = {3.0: 1.3}  # of the error over the bound, by SNR
LIMIT = 1.15  # at all others
COVERED, OFF = 0.6827, 0.05  # share of errors within one standard error, and by how much it may differ
AXES = ("z", "y", "x")
Row = dict[str, Any]


def bound(one: Separated, cell: Cell) -> NDArray[np.float64]:
    """(n, 3) least variances along z, y, x; z is 0 in 2D."""
    axes = range(3) if cell.dimensions == 3 else range(1, 3)
    variance = one.photons + one.read**2 + 1 / 12 / scmos.GAIN**2
    slopes = []
    for axis in axes:
        step = np.zeros(3)
        step[axis] = STEP
        ahead, behind = (light(cell, one.truth + sign * step, one.amplitude) for sign in (1, -1))
        slopes.append((ahead - behind) / (2 * STEP))
    # Spots are so far apart that the light near one is its own.
    slopes += [light(cell, one.truth, one.amplitude) / one.amplitude.mean(), np.ones(one.photons.shape)]
    least = np.zeros((len(one.truth), 3))
    reach = ABOUT * np.array(cell.sigma)
    for row, place in enumerate(one.truth):
        low = np.maximum(np.floor((place - reach) / cell.voxel).astype(int), 0)
        stop = np.minimum(np.ceil((place + reach) / cell.voxel).astype(int) + 1, shape_of(cell))
        window = tuple(slice(a, b) for a, b in zip(low, stop, strict=True))
        d = np.stack([slope[window].ravel() for slope in slopes])
        information = (d / variance[window].ravel()) @ d.T
        least[row, list(axes)] = np.diag(np.linalg.inv(information))[: len(axes)]
    return least


def nearest(
    found: NDArray[np.float64], truth: NDArray[np.float64], near: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of spots with a detection within a distance, and the row of the nearest of these."""
    if not len(found):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    away, row = cKDTree(found).query(truth)
    return np.flatnonzero(away <= near), row[away <= near]


def precision(cell: Cell) -> Row:
    """Root mean square errors over the bound, and coverage of stated errors, along each axis.

    Along z the mean error of an image is left out with aberrated optics: where the middle of such a spot is,
    is a convention. Stated errors are those of the columns ``position_error_z`` …, if there are any.
    """
    errors, least, stated, spots = [], [], [], 0
    seed = 0
    while spots < ENOUGH:
        one = separated(cell, seed)
        seed += 1
        seen, _ = detect([one.image], DetectionSettings(spacing=cell.voxel), workers=1)
        true, hit = nearest(agree.scaled(seen.position, cell), agree.scaled(one.truth, cell), cell.radius)
        error = seen.position[hit] - one.truth[true]
        if cell.renderer == "optics" and len(error):
            error[:, 0] -= error[:, 0].mean()
        errors.append(error)
        least.append(bound(one, cell)[true])
        names = [f"position_error_{axis}" for axis in AXES]
        if all(name in seen.features for name in names):
            stated.append(np.column_stack([seen.features[name][hit] for name in names]))
        spots += len(one.truth)
    error, variance = np.concatenate(errors), np.concatenate(least)
    row: Row = {"spots": spots, "found": len(error)}
    for axis, name in enumerate(AXES):
        if (cell.dimensions == 2 and axis == 0) or not len(error):
            continue
        least_mean = variance[:, axis].mean()
        row[f"ratio_{name}"] = round(float(np.sqrt((error[:, axis] ** 2).mean() / least_mean)), 3)
        if stated:
            within = np.abs(error[:, axis]) <= np.concatenate(stated)[:, axis]
            row[f"covered_{name}"] = round(float(within.mean()), 3)
    return row


def failures(name: str, row: Row) -> list[str]:
    """What of a row is beyond its limit."""
    snr = float(name.partition("SNR")[2].split()[0])
    limit = LIMITS.get(snr, LIMIT)
    wrong = [
        f"{name}: {key} {value} above {limit}"
        for key, value in row.items()
        if key.startswith("ratio") and value > limit
    ]
    return wrong + [
        f"{name}: {key} {value}, not within {OFF} of {COVERED}"
        for key, value in row.items()
        if key.startswith("covered") and abs(value - COVERED) > OFF
    ]
