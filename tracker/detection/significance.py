"""Significance of spots: the amplitude divided by its standard error under the null hypothesis.

The squared error combines photon noise with the possible error of the light of other spots:
σ² = 1 / Σ p²/v + (ε Σ m p/v / Σ p²/v)² + (the same for halos)². An error of the model is common to all voxels
of a spot. So it accumulates in a filter as light does and cannot be described by a variance per voxel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._arrays import to_host
from .background import variance
from .joint_cpu import AMPLITUDE, ERROR, LEVEL, NEAREST, REACH, X, Y, Z
from .null import spread_below
from .response import Slab
from .scene import Scene, own_maxima
from .significance_cpu import absent, negative, overlap

LEAST_WRONG = 0.02  # share of a fitted spot's light by which its model is wrong at least
_MOST_WRONG = 0.5
FAINT = 0.35
"""Of the typical amplitude in a crowd: a fainter spot may be none."""
HALO_WRONG = 0.2  # share of halos, which are measured on few voxels
_BLUR_FREE, _BLUR_TAKEN = 0.1, 2.0  # a profile that misfits by more than .1 is wrong by twice the rest
_NEAR, _MOST = 4.0, 6  # widths, and how many neighbours count for overlap
_SHAPES = 0.15  # spread of the logarithm of a width along one direction: moving or tilted spots are longer
WIDE = 1.15  # standard deviations of a residual above which its spread is the null
JOINT = 2.38  # standard errors: a spot beside others is at least so significant, where spots are sparse
_LEAST_JOINT = 0.3  # standard errors of any spot beside others
_COUNTED, _ABOVE = 3.5, 3.0  # standard errors, and spreads of the residual, that counted spots exceed
_FEWEST = 5  # spots that are worth counting
_COVERED = 2.5  # areas of a spot: a box of 4 widths, where its light is
_ENOUGH = 50  # voxels that say how wrong the model is
_RESOLVED = 0.5  # weight of a spot whose light counts in the error of the residual
_MANY = 500  # spots that are looked at together
_RESTING = 0.1  # standard errors by which spots may change before their slab is looked at again
_SAMPLED = 4  # of so many rows and columns, one says how wide the residual is
_PASSES = 0.1  # of a spot's light, beside noise in a difference: one of four standard deviations adds .08
_ENOUGH_SAMPLED = 300_000  # voxels that say so
_RESIDUAL_SPREAD = 0.95  # of the negative side of a residual: fitted spots take up some noise

Terms = Sequence[NDArray[np.float32]] | NDArray[np.float32]
Seen = tuple[NDArray[np.int64], Terms, NDArray[np.float64], Terms, NDArray[np.float32]]


def significance(scene: Scene, which: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """(n,): amplitude of some spots in standard errors under the hypothesis that each does not exist."""
    if len(scene.spots) == 0:
        return np.empty(0)
    which = np.ones(len(scene.spots), bool) if which is None else which
    error, skew = _absent(scene, which).T
    error *= np.sqrt(1 - _kept_by_background(scene) * (1 - scene.weight()[which]))
    more = inflation(scene, which)
    joint = np.sqrt(error**2 * more + (_SHAPES * _by_shape(scene)[which] * more) ** 2)
    error = np.maximum(error, joint * _demanded(scene, joint) / JOINT)
    if scene.bright[1] > 0:  # in a crowd a spot as bright as others is one, whatever is sure of its light
        error = np.minimum(error, FAINT * scene.bright[0] / JOINT)
    z = scene.spots[which, AMPLITUDE] / error
    # Poisson counts are skewed: the first term of Cornish and Fisher.
    return z - np.clip(skew, -0.6, 0.6) * (np.minimum(z, 6.0) ** 2 - 1) / 6


def empirical_significance(scene: Scene) -> NDArray[np.float64]:
    """(n,): significance of each spot; where the residual is wider than noise, in spreads of the residual."""
    z = significance(scene)
    return z / scene.spread if scene.spread > WIDE else z


def _demanded(scene: Scene, error: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): standard errors at which one more spot is as probable as not, where light is sure.

    A priori there are as many as sure ones in the area of a spot, and amplitudes are up to the typical one.
    """
    number, usual = crowding(scene, scene.snr), scene.spots[scene.sure, AMPLITUDE]
    if number == 0 or scene.spread > WIDE or len(usual) == 0:
        return np.full(len(error), JOINT)
    typical = float(np.median(usual))
    odds = typical / error / (np.sqrt(2 * np.pi) * number)
    return np.clip(np.sqrt(2 * np.log(np.maximum(odds, 1.0))), _LEAST_JOINT, JOINT)


def crowding(scene: Scene, z: NDArray[np.float64]) -> float:
    """Number of spots of clear significance z in the area of one, or in its volume; 0 if hardly any.

    Noise alone has .002 of them, or .004 in a volume, and .013 where the residual is wider than noise.
    """
    count = int((z > max(_COUNTED, _ABOVE * scene.spread)).sum())
    deep = scene.optics.sigma[scene.optics.sigma > 0]
    return count * float(np.prod(np.sqrt(2 * np.pi) * deep)) / scene.image.size if count >= _FEWEST else 0.0


def _absent(scene: Scene, which: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n, 2): standard errors and skewness of some spots."""
    wide = np.flatnonzero(scene.spots[:, REACH] > NEAREST)
    wide = wide[np.argsort(scene.spots[wide, Y])]
    trust, rows = (scene.wrong, HALO_WRONG), np.flatnonzero(which)

    def work(some: NDArray[np.int64]) -> NDArray[np.float64]:
        return absent(scene.frame, scene.noise, scene.optics, scene.spots, some, wide, trust)

    return np.concatenate(scene.work.each(work, np.array_split(rows, 1 + len(rows) // _MANY)))


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


def inflation(scene: Scene, which: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """(n,): variance of each amplitude relative to that without neighbours."""
    place = scene.in_widths[:, 1:] if scene.optics.flat else scene.in_widths
    place = np.ascontiguousarray(place)
    rows = np.arange(len(place)) if which is None else np.flatnonzero(which)
    away, near = cKDTree(place).query(place[rows], k=_MOST + 1, distance_upper_bound=_NEAR)
    there = np.isfinite(away) & (near != rows[:, None])
    start = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return overlap(place, rows, start, near[there].astype(np.int64))


def survey(scene: Scene, low: float) -> NDArray[np.int64]:
    """Measure the model's error and the spread of the residual; (n, 3) voxels of the residual's maxima.

    A response is divided by its error, photon noise and model error. Maxima are above `low` times the spread.
    Slabs are looked at again if their resolved spots have changed.
    """
    resolved = scene.weight() > _RESOLVED
    step = max(_SAMPLED, math.isqrt(scene.image.size // _ENOUGH_SAMPLED))

    def work(slab: Slab) -> Seen:
        lit = scene.spots[resolved & scene.shining(slab)]
        if slab in scene.surveyed and _at_rest(scene.surveyed[slab][0], lit, scene.unit):
            return scene.surveyed[slab][1]
        terms = _terms(scene, slab, lit=len(lit) > 0)
        voxel, _ = own_maxima(slab, _over_error(terms, LEAST_WRONG), low)
        at = tuple((voxel - np.array([0, slab.near.start, 0])).T)
        own = [values[:, slab.core] for values in terms]
        sample = np.stack([values[:, ::step, ::step].ravel() for values in own])
        gathered = np.stack([values[at] for values in terms])
        seen = voxel, gathered, negative(*own[:3]), sample, _rough(scene, slab)
        scene.surveyed[slab] = lit, seen
        return seen

    voxels, at, products, sample, rough = zip(*scene.work.each(work, scene.parts), strict=True)
    measured = np.sum(products, axis=0)
    if measured[2] > _ENOUGH:
        share = np.sqrt(max(measured[0] / measured[1], 0.0))
        scene.wrong = float(np.clip(share, LEAST_WRONG, _MOST_WRONG))
    scene.wrong = max(scene.wrong, LEAST_WRONG, _BLUR_TAKEN * (scene.optics.blur - _BLUR_FREE))
    z = _over_error(np.concatenate(sample, axis=1), scene.wrong)
    scene.spread = spread_below(z) / _RESIDUAL_SPREAD
    if 1 / WIDE < (noise := _spread_of(np.concatenate(rough))) < WIDE:
        # Voxels vary as expected: what is wider is the light of a crowd, or a background where spots are few.
        free = max(1 - _COVERED * crowding(scene, scene.snr), 0.0)
        scene.spread = min(scene.spread, noise + free * max(scene.spread - noise, 0.0))
        if scene.bright[1] > 0:  # the light of spots that are not separated yet
            scene.spread = 1.0
    z = _over_error(np.concatenate(at, axis=1), scene.wrong)
    order = np.argsort(-z, kind="stable")
    return np.concatenate(voxels)[order[z[order] > low * max(scene.spread, 1.0)]]


def _at_rest(before: NDArray[np.float64], now: NDArray[np.float64], unit: NDArray[np.float64]) -> bool:
    """Whether all spots are as they were, but for a share of their errors."""
    if len(before) != len(now):
        return False
    least = _RESTING * now[:, ERROR]
    moved = np.abs(now[:, Z : X + 1] - before[:, Z : X + 1]).max(axis=1, initial=0) * now[:, AMPLITUDE]
    return bool((np.abs(now - before)[:, AMPLITUDE] <= least).all() and (moved <= least * unit[1]).all())


def _rough(scene: Scene, slab: Slab) -> NDArray[np.float32]:
    """Sizes of mixed second differences of the residual, for every fourth row and column.

    Over two voxels, where little of a spot's light passes, so that correlated noise is seen; else over one.
    """
    passes = (2 - 2 * np.exp(-2 / scene.optics.sigma[2] ** 2)) ** 2 / 6
    step = 2 if passes < _PASSES else 1
    planes = slice(None, None, 1 + scene.image.size // (_ENOUGH_SAMPLED * _SAMPLED**2))
    model = scene.model[planes, slab.start : slab.stop]
    values = (scene.image[planes, slab.start : slab.stop] - model) / np.sqrt(variance(model, scene.noise))
    for _ in range(2):
        count = max(values.shape[1] - 2 * step, 0)
        low, middle, high = (values[:, k * step : count + k * step : 4] for k in range(3))
        values = (low - 2 * middle + high).swapaxes(1, 2)
    return np.abs(values[np.isfinite(values)])


def _spread_of(rough: NDArray[np.float32]) -> float:
    """Spread of noise by its mixed second differences; 0 without any."""
    return float(np.median(rough)) / (6 * 0.6745) if len(rough) else 0.0


def _over_error(terms: Terms, wrong: float) -> NDArray[np.float32]:
    """Response over its error."""
    response, spread, light, halo = terms
    return response / np.sqrt(spread + np.float32(wrong**2) * light**2 + np.float32(HALO_WRONG**2) * halo**2)


def _terms(scene: Scene, slab: Slab, *, lit: bool) -> list[NDArray[np.float32]]:
    """Response, its variance by photons, and light and halos after the filter, for near rows."""
    terms = [to_host(scene.response(slab)), to_host(scene.variances(slab))]
    if not lit:
        return [*terms, *[np.zeros_like(terms[0])] * 2]
    light = scene.model[:, slab.wide] - scene.ground.rows(slab.first, slab.last)
    return terms + [to_host(scene.filtered(values, slab)) for values in (light, scene.halo(slab))]


def peak_snr(scene: Scene) -> NDArray[np.float64]:
    """(n,): amplitude divided by the noise of the peak voxel, as in the ISBI 2012 challenge."""
    peak = scene.spots[:, AMPLITUDE] + scene.spots[:, LEVEL]
    return scene.spots[:, AMPLITUDE] / np.sqrt(variance(peak, scene.noise))
