"""Joint fit of a frame: candidates, Gauss-Seidel scoring, pruning, and additions from the residual."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._arrays import to_host
from .background import variance
from .crowd import CROWDED, are_alike, brightness, resolve
from .joint_cpu import AMPLITUDE, MISFIT, NEAREST, Noise, Optics, X, Z
from .response import Slab, bell, correlate
from .scene import Scene, Work
from .scoring_cpu import sweep
from .significance import JOINT, crowding, empirical_significance, significance, survey

LOW = 2.8  # standard deviations: noise alone has more than one such maximum in 25 widths squared
_QUIET = 2.5  # standard deviations above which a voxel is no background
_TURNS = 3  # of background and what stands out of it
_STANDS_OUT = 5.0  # standard deviations where pairs are looked for
_PAIR, _PAIR_LOW, _PAIR_APART = (0.5, 0.8), 2.5, 0.7  # widths of the sharper filter; deviations; widths
ROUNDS = 3
"""Of fit, prune and add."""
_NEW_LOW, _NEW_APART = 3.3, 0.8  # standard deviations of a residual; widths from the next spot
_CLOSE = 3.0  # widths within which the weaker of two goes first
_TOUCHING = 2 * NEAREST  # widths within which spots are fitted to the same voxels
_ENOUGH = 0.02  # squared standard deviations: a seventh of the errors, and what is left is far less
_PARTINGS = 8  # times that merged spots are divided
_STEP = 0.35  # widths that a spot moves at most in a visit
_SEEN, _FEWEST = 15.0, 5  # standard errors at which misfit is seen; in how many spots
_CLEAR = 30.0  # standard errors, of which a misfit of a tenth is three
_LEAST_BLUR, _CROWD_BLUR, MOST_BLUR = 0.02, 0.1, 0.5  # share of the light by which a profile errs


def begin(scene: Scene, low: float, *, pairs: bool = False) -> NDArray[np.float64]:
    """Fit the background of a frame and start spots at all maxima above `low`; returns their heights."""

    def quiet(_: NDArray[np.float32], slab: Slab) -> tuple[NDArray[np.float32], float]:
        return to_host(scene.significance(slab))[:, slab.core], _QUIET

    for turn in range(_TURNS):
        sums = scene.summed(quiet) if turn else scene.measured
        scene.rest_on(scene.smoother.fit(sums, scene.noise, scene.work.each))

    def responses(slab: Slab) -> Iterator[Any]:
        z = scene.significance(slab)
        yield z
        if pairs:
            yield _sharp(scene, slab, to_host(z) > _STANDS_OUT)

    (place, height), *sharp = scene.maxima(responses, low, *[_PAIR_LOW] * pairs)
    for more, _ in sharp if len(place) else ():
        apart, _ = cKDTree(place / scene.unit).query(more / scene.unit)
        place = np.concatenate([place, more[apart > _PAIR_APART]])
        height = np.append(height, np.full(len(place) - len(height), _PAIR_LOW))
    order = np.argsort(scene.tiles(place), kind="stable")
    scene.add(place[order])
    return height[order]


def _sharp(scene: Scene, slab: Slab, where: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Response of a sharper filter (a difference of Gaussians) in standard deviations; separates pairs."""
    if not where.any():
        return np.zeros(where.shape, np.float32)
    light = np.nan_to_num(scene.image[:, slab.wide] - scene.model[:, slab.wide])
    one, two = ([bell(c * float(s), 1, 3) for s in scene.optics.sigma] for c in _PAIR)
    one, two = ([taps / taps.sum() for taps in side] for side in (one, two))
    longer = [np.pad(a, (len(b) - len(a)) // 2) for a, b in zip(one, two, strict=True)]
    cross, narrow, broad = (
        float(np.prod([(a * b).sum() for a, b in zip(left, right, strict=True)]))
        for left, right in ((longer, two), (longer, longer), (two, two))
    )
    values = correlate(light, (one[0], one[1], one[2]), slab.inside)
    values -= correlate(light, (two[0], two[1], two[2]), slab.inside)
    spread = variance(scene.model[:, slab.near] + np.maximum(light[:, slab.inside], 0), scene.noise)
    return np.where(where, values / np.sqrt((narrow + broad - 2 * cross) * spread), -9)


def fit(scene: Scene, sweeps: int, enough: float = _ENOUGH) -> None:
    """Update the spots that are not at rest this many times, tile by tile, brightest first.

    A spot rests when its step is expected to lessen the squared standard deviations by less than `enough`,
    until a neighbour moves.
    """
    order = np.lexsort((-scene.spots[:, AMPLITUDE], scene.tiles(scene.spots[:, Z : X + 1])))
    i, j = cKDTree(scene.in_widths).query_pairs(_TOUCHING, output_type="ndarray").T
    pairs = np.argsort(np.concatenate([i, j]), kind="stable")
    near = np.concatenate([j, i])[pairs]
    start = np.concatenate([[0], np.cumsum(np.bincount(np.concatenate([i, j]), minlength=len(order)))])

    def work(some: NDArray[np.int64]) -> NDArray[np.float64]:
        curvature = np.zeros((2, 3))
        which, limits = (some, scene.active, start, near), (_STEP, enough)
        sweep(scene.frame, scene.noise, scene.optics, scene.spots, which, limits, scene.bright, curvature)
        return curvature

    for _ in range(sweeps):
        scene.curvature = np.sum(scene.in_bands(work, order), axis=0)


def find(
    image: NDArray[np.float32],
    noise: Noise,
    optics: Optics,
    work: Work,
    rounds: int = ROUNDS,
    most_blur: float = MOST_BLUR,
    focus: float = 1.0,
) -> tuple[Scene, NDArray[np.float64]]:
    """Fit a frame; returns the scene and the significance of each spot.

    There are three rounds of fitting, pruning and adding, with the measured blur up to `most_blur`; in a
    crowd, merged spots are divided in the first one, if there are several. If the residual is wider than the
    expected noise, the noise model is too small, and significances are divided by the ratio.
    """
    scene = Scene(image, noise, optics, work, focus=focus)
    begin(scene, LOW, pairs=True)
    for turn in range(rounds if len(scene.spots) else 0):
        fit(scene, 3)
        for _ in range(2):
            scene.background()
            fit(scene, 2)
        measure_blur(scene, most_blur)
        prune(scene, JOINT)
        new = survey(scene, _NEW_LOW)
        density = crowding(scene, significance(scene)) if turn == 0 and rounds > 1 else 0.0
        if density > CROWDED and are_alike(scene):
            _part(scene, min(density, 1.0))
            measure_blur(scene, most_blur)
            prune(scene, JOINT)
            new = survey(scene, _NEW_LOW)
        if len(new) and len(scene.spots):
            new = new[cKDTree(scene.in_widths).query(new / scene.unit)[0] > _NEW_APART]
        if turn == rounds - 1 or not (len(new) or (scene.active & scene.sure).any()):
            break
        scene.add(new)
    return scene, empirical_significance(scene)


def _part(scene: Scene, density: float) -> None:
    """Fit a crowd and divide merged spots: the spots of a crowd are about as bright as each other."""
    for turn in range(_PARTINGS):
        if crowding(scene, scene.snr) == 0 or not scene.sure.any():
            break
        scene.bright = brightness(scene)
        fit(scene, 4)
        if turn % 2:
            scene.background()
        if resolve(scene, density) == 0:
            break
    fit(scene, 4)
    scene.background()
    fit(scene, 2)


def misfit(scene: Scene, least: float = 0.5) -> float | None:
    """Share of the light of bright spots that the profile does not explain, if it can be measured.

    At least this share of the spots has to be bright: otherwise bright ones may be merged ones.
    """
    seen = scene.snr > _SEEN
    if seen.sum() < max(_FEWEST, least * scene.sure.sum()):
        return None
    return float(np.sqrt(max(float(np.median(scene.spots[seen, MISFIT])), 0.0)))


def measure_blur(scene: Scene, most: float = MOST_BLUR) -> None:
    """Misfit of the profile as a share of the light of a spot, if it can be measured.

    Merged spots in a crowd misfit as well, so a misfit above a tenth is accepted only from isolated bright
    spots.
    """
    share = misfit(scene)
    if share is None:
        return
    clear = (scene.snr > _CLEAR) & ~_merged(scene)
    if clear.sum() >= max(_FEWEST, 0.5 * (scene.snr > _SEEN).sum()):
        by_themselves = float(np.sqrt(max(float(np.median(scene.spots[clear, MISFIT])), 0.0)))
    else:
        by_themselves = 0.0
    blur = max(min(share, _CROWD_BLUR), min(by_themselves, most), _LEAST_BLUR)
    scene.optics = scene.optics._replace(blur=blur)


def _merged(scene: Scene) -> NDArray[np.bool_]:
    """(n,): whether a spot of at least half the amplitude is so close that both may be one."""
    merged, height = np.zeros(len(scene.spots), dtype=bool), scene.spots[:, AMPLITUDE]
    pairs = cKDTree(scene.in_widths).query_pairs(_CLOSE, output_type="ndarray")
    for one, other in (pairs.T, pairs[:, ::-1].T):
        merged[one[height[other] > 0.5 * height[one]]] = True
    return merged


def prune(scene: Scene, least: float) -> None:
    """Remove spots of low significance, the weakest of neighbours first, and fit the others again."""
    scene.keep(scene.spots[:, AMPLITUDE] > 0)
    z = significance(scene)
    for _ in range(4):
        weak = z < least
        if not weak.any():
            return
        for i, j in cKDTree(scene.in_widths).query_pairs(_CLOSE, output_type="ndarray"):
            if weak[i] and weak[j]:
                weak[i if z[i] > z[j] else j] = False
        away = cKDTree(scene.in_widths[weak]).query(scene.in_widths, distance_upper_bound=_TOUCHING)[0]
        scene.active |= np.isfinite(away)
        touched = scene.active[~weak]
        scene.keep(~weak)
        before, z = scene.spots.copy(), z[~weak]
        fit(scene, 2)
        touched |= (scene.spots != before).any(axis=1)
        z[touched] = significance(scene, touched)
