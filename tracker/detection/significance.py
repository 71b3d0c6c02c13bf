"""Significance of spots: the amplitude divided by its standard error under the null hypothesis.

The squared error combines photon noise with the possible error of the light of other spots:
σ² = 1 / Σ p²/v + (ε Σ m p/v / Σ p²/v)² + (the same for halos)². An error of the model is common to all voxels
of a spot. So it accumulates in a filter as light does and cannot be described by a variance per voxel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._arrays import to_host
from .background import variance
from .joint_cpu import AMPLITUDE, LEVEL, Y
from .response import Slab, correlate
from .scene import Scene
from .significance_cpu import absent, overlap

LEAST_WRONG = 0.02  # share of a fitted spot's light by which its model is wrong at least
_MOST_WRONG = 0.5
HALO_WRONG = 0.2  # share of halos, which are measured on few voxels
_BLUR_FREE, _BLUR_TAKEN = 0.1, 2.0  # a profile that misfits by more than .1 is wrong by twice the rest
_NEAR, _MOST = 4.0, 6  # widths, and how many neighbours count for overlap
_SHAPES = 0.15  # spread of the logarithm of a width along one direction: moving or tilted spots are longer
_ENOUGH = 50  # voxels that say how wrong the model is


def significance(scene: Scene) -> NDArray[np.float64]:
    """(n,): amplitude of each spot in standard errors under the hypothesis that the spot does not exist."""
    if len(scene.spots) == 0:
        return np.empty(0)
    error, skew = _absent(scene).T
    more = inflation(scene)
    z = scene.spots[:, AMPLITUDE] / np.sqrt(error**2 * more + (_SHAPES * _by_shape(scene) * more) ** 2)
    z /= np.sqrt(1 - _kept_by_background(scene) * (1 - scene.weight()))
    # Poisson counts are skewed: the first term of Cornish and Fisher.
    return z - np.clip(skew, -0.6, 0.6) * (np.minimum(z, 6.0) ** 2 - 1) / 6


def _absent(scene: Scene) -> NDArray[np.float64]:
    """(n, 2): standard errors and skewness, computed slab by slab."""
    out = np.ones((len(scene.spots), 2))
    trust = (scene.wrong, HALO_WRONG)
    y = scene.spots[:, Y]
    for slab in scene.parts:
        last = np.inf if slab.stop == scene.image.shape[1] else slab.stop
        rows = np.flatnonzero((y >= (slab.start or -np.inf)) & (y < last))
        halo = scene.halo(slab), slab.first
        out[rows] = absent(scene.frame, scene.noise, scene.optics, scene.spots, rows, halo, trust)
    return out


def _kept_by_background(scene: Scene) -> float:
    """Share of the light of a spot that the background takes up if the spot has no weight."""
    sigma = scene.optics.sigma[1:]
    wide = np.array(scene.smoother.wide)
    one, two = (float(np.prod(np.sqrt(2 * sigma**2 / (2 * sigma**2 + t * wide**2)))) for t in (1, 2))
    return 2 * one - two


def _by_shape(scene: Scene) -> NDArray[np.float64]:
    """(n,): amplitude caused by neighbours per unit of elongation: A r²/4 exp(-r²/4) at r widths."""
    place, amplitude = scene.in_widths, scene.spots[:, AMPLITUDE]
    i, j = cKDTree(place).query_pairs(_NEAR, output_type="ndarray").T
    square = ((place[i] - place[j]) ** 2).sum(axis=1) / 4
    share = (square * np.exp(-square)) ** 2
    return np.sqrt(
        np.bincount(i, share * amplitude[j] ** 2, len(place))
        + np.bincount(j, share * amplitude[i] ** 2, len(place))
    )


def inflation(scene: Scene) -> NDArray[np.float64]:
    """(n,): variance of each amplitude relative to that without neighbours."""
    place = scene.in_widths[:, 1:] if scene.optics.flat else scene.in_widths
    place = np.ascontiguousarray(place)
    count = min(_MOST + 1, len(place))
    away, near = cKDTree(place).query(place, k=count, distance_upper_bound=_NEAR)
    away, near = away.reshape(len(place), -1), near.reshape(len(place), -1)
    there = np.isfinite(away) & (near != np.arange(len(place))[:, None])
    start = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return overlap(place, start, near[there].astype(np.int64))


def residual(scene: Scene, slab: Slab) -> NDArray[np.float32]:
    """Response of the residual divided by its error (photon noise and model error), for rows with margins."""
    response, spread, light, halo = _wrong(scene, slab)
    return response / np.sqrt(spread + (scene.wrong * light) ** 2 + (HALO_WRONG * halo) ** 2 + 1e-30)


def _wrong(scene: Scene, slab: Slab) -> tuple[NDArray[np.float32], ...]:
    """Response, variance, light and halos after the matched filter, on the host."""
    response, spread = scene.filtered(slab)
    light = scene.model[:, slab.wide] - scene.ground.rows(slab.first, slab.last)
    there = scene.work.there
    filtered = [to_host(correlate(there(values), scene.taps)) for values in (light, scene.halo(slab))]
    return to_host(response), to_host(spread), filtered[0], filtered[1]


def measure_wrong(scene: Scene) -> None:
    """Relative error of the light of spots, from negative residuals in bright regions."""
    products = np.zeros(3)
    for slab in scene.parts:
        response, spread, light, _ = (
            values[:, slab.core].astype(np.float64) for values in _wrong(scene, slab)
        )
        low = (response < 0) & (light**2 > 4 * spread)
        r, d, g = response[low] ** 2, spread[low], light[low] ** 2
        weight = 1 / (d + 0.01 * g) ** 2
        products += [(weight * (r - 0.9 * d) * g).sum(), (weight * g**2).sum(), len(r)]
    if products[2] > _ENOUGH:
        share = np.sqrt(max(products[0] / products[1], 0.0))
        scene.wrong = float(np.clip(share, LEAST_WRONG, _MOST_WRONG))
    scene.wrong = max(scene.wrong, LEAST_WRONG, _BLUR_TAKEN * (scene.optics.blur - _BLUR_FREE))


def peak_snr(scene: Scene) -> NDArray[np.float64]:
    """(n,): amplitude divided by the noise of the peak voxel, as in the ISBI 2012 challenge."""
    peak = scene.spots[:, AMPLITUDE] + scene.spots[:, LEVEL]
    return scene.spots[:, AMPLITUDE] / np.sqrt(variance(peak, scene.noise))
