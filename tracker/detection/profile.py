"""Profile (core and halo) and common widths of spots, from a joint fit of the bright spots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .background import variance
from .decision import rates
from .joint import begin, fit, measure_blur, misfit
from .joint_cpu import AMPLITUDE, ENTRIES, REACH, STEP, Noise, Optics, reach_of
from .null import expected_maxima
from .profile_cpu import stack
from .scene import Scene, Work

_SIZES = 0.12  # standard deviation of the logarithm of a spot's size
BLUR = 0.03
"""Assumed misfit of a profile, as a share of its light, before it is measured in a frame."""
_LOW, _STANDS_OUT, _FEWEST = 3.5, 5.0, 4  # standard deviations of candidates; of spots that shape; how many
_NOISE = 0.2  # of the candidates: those that are noise are as narrow as the filter
_WIDER = 1.7  # the background's window while a halo is measured, over the usual one
_SHADE, _IN_SHADE = 7.0, 0.2  # widths; share of a neighbour's height below which it may be its halo
_TURNS = 9
_PRIOR = 25.0  # information on the logarithm of a shared width: .2
_STEP = 0.12  # of the logarithm of a width in a turn
_NARROWER = 0.6  # most change of that logarithm
_BRIGHT, _ENOUGH, _LONE = 12.0, 5, 8  # standard errors of spots that are stacked; how many; how many alone
_APART, _MOST = 4.0, 200  # widths to the next spot of one that is alone; spots that are stacked
_BIN = 0.125  # widths, of the stacked profile
_HALOS = (1.5, 1.75, 2.0, 2.5, 3.0, 4.0)  # widths of halos over that of the core
_BETTER = 12.0  # chi-square that a halo has to gain
_MOST_HALO = 0.8  # of the amplitude of the core


Grow = tuple[float, float]


def gaussian(sigma: NDArray[np.float64], flat: bool) -> Optics:
    """Optics with a Gaussian profile."""
    table = np.exp(-np.arange(ENTRIES) * STEP / 2)
    return Optics(np.asarray(sigma, float), table, BLUR, _SIZES, flat)


def measured(image: NDArray[np.float32], noise: Noise, optics: Optics, grow: Grow, work: Work) -> Optics:
    """Widths and profile of the mean spot of an image, from the significant spots; blur is its misfit.

    Parameters
    ----------
    image : (Z, Y, X) float32 array
    noise : Noise
    optics : Optics
        Initial widths and profile.
    grow : tuple of 2 float
        Largest increase of the logarithm of the width along z and in the plane; 0 fixes a width.
    work : Work
    """
    scene = Scene(image, noise, optics, work, _WIDER)
    height = begin(scene, _LOW)
    if (height > _STANDS_OUT).sum() < _FEWEST:
        return optics
    false = expected_maxima(height, image.shape, scene.optics.sigma)
    _leave_halos_out(scene, height, rates(false) < _NOISE)
    first = np.log(np.maximum(scene.optics.sigma, 1e-9))
    fit(scene, 3, 0.0)
    for turn in range(_TURNS):
        scene.background()
        fit(scene, 2, 0.0)
        if max(grow) > 0:
            _widen(scene, first, grow)
        bright = np.flatnonzero(scene.snr > _BRIGHT)
        if len(bright) >= _ENOUGH and turn >= 1:
            _reshape(scene, bright, first, grow)
        measure_blur(scene)
        scene.repaint()
        fit(scene, 2, 0.0)
    return scene.optics._replace(blur=misfit(scene) or 0.0)


def _leave_halos_out(scene: Scene, height: NDArray[np.float64], keep: NDArray[np.bool_]) -> None:
    """Exclude spots that may be part of the halo or a side lobe of a brighter spot."""
    for i, j in cKDTree(scene.in_widths).query_pairs(_SHADE, output_type="ndarray"):
        keep[j] &= height[j] >= _IN_SHADE * height[i]
        keep[i] &= height[i] >= _IN_SHADE * height[j]
    scene.keep(keep)


def _widen(scene: Scene, first: NDArray[np.float64], grow: Grow) -> None:
    """One scoring step of the shared widths."""
    hold = np.diag([_PRIOR, 1e9 if scene.optics.flat else _PRIOR])
    step = np.linalg.solve(scene.curvature[:, :2] + hold, scene.curvature[:, 2])
    plane, along = np.clip(step, -_STEP, _STEP)
    change = np.array([along * (grow[0] > 0), plane * (grow[1] > 0), plane * (grow[1] > 0)])
    log = np.log(np.maximum(scene.optics.sigma, 1e-9)) + change
    most = first + np.array([grow[0], grow[1], grow[1]])
    sigma = np.exp(np.clip(log, first - _NARROWER, most)) * (scene.optics.sigma > 0)
    scene.see(scene.optics._replace(sigma=sigma))


def _reshape(scene: Scene, bright: NDArray[np.int64], first: NDArray[np.float64], grow: Grow) -> None:
    """Profile and core width from stacked bright spots; only from isolated ones if there are enough."""
    place = scene.in_widths
    near = cKDTree(place).query(place, k=2)[0][:, 1] if len(place) > 1 else np.full(1, 9.0)
    lone = bright[near[bright] > _APART]
    use = lone if len(lone) >= _LONE else bright
    use = use[np.argsort(-scene.spots[use, AMPLITUDE], kind="stable")[:_MOST]]
    light, weight = stack(scene.frame, scene.noise, scene.optics, scene.spots, use)
    core, table = core_and_halo(light, weight, scene.optics.profile, hold=grow[1] == 0)
    most = np.exp(first + np.array([grow[0], grow[1], grow[1]]))
    sigma = np.minimum(scene.optics.sigma * core, most) * (scene.optics.sigma > 0)
    scene.see(scene.optics._replace(sigma=sigma, profile=table))
    mean = variance(np.array(np.median(scene.ground.grid)), scene.noise)
    voxels = np.prod([(taps**2).sum() for taps in scene.taps])
    scene.spots[:, REACH] = [
        reach_of(a, float(np.sqrt(mean / voxels)), table) for a in scene.spots[:, AMPLITUDE]
    ]


def core_and_halo(
    light: NDArray[np.float64], weight: NDArray[np.float64], table: NDArray[np.float64], *, hold: bool
) -> tuple[float, NDArray[np.float64]]:
    """Fit core exp(-r²/2s²) and halo exp(-r²/2k²s²) to the stacked profile; returns s and the table.

    Significant deviations from both (rings, flat tops) are added. `hold` fixes s at 1.
    """
    r = (np.arange(len(light)) + 0.5) * _BIN
    w, y = weight / (1 + weight * 0.004**2), light / np.maximum(weight, 1e-12)
    best: tuple[float, float, float, NDArray[np.float64]] | None = None
    for s in (1.0,) if hold else (1.0, *np.arange(0.55, 1.16, 0.03).tolist()):
        for k in _HALOS:
            both = np.stack([np.exp(-r * r / 2 / s**2), np.exp(-r * r / 2 / (k * s) ** 2)], axis=1)
            normal, right = both.T @ (w[:, None] * both), both.T @ (w * y)
            c = np.linalg.solve(normal + 1e-9 * normal[0, 0] * np.eye(2), right)
            if c[1] < 0:
                c = np.array([right[0] / normal[0, 0], 0.0])
            if c[0] <= 0 or c[1] > _MOST_HALO * c[0]:
                continue
            misfit = float((w * (y - both @ c) ** 2).sum())
            gain = _BETTER if best is not None and c[1] > 0 and best[3][1] == 0 else 0.0
            if best is None or misfit < best[0] - gain:
                best = misfit, s, k, c
    if best is None:
        return 1.0, table
    _, s, k, c = best
    q, share = np.arange(ENTRIES) * STEP, c[1] / c.sum()
    p = (1 - share) * np.exp(-q / 2) + share * np.exp(-q / 2 / k**2)
    rest = y / c.sum() - np.interp(r * r / s / s, q, p)
    error = 1 / np.sqrt(np.maximum(weight, 1e-12)) / c.sum()
    rest = np.where(weight > 0, rest**3 / (rest**2 + 4 * error**2 + 1e-8), 0)
    smooth = np.convolve(np.concatenate([rest[:1], rest, rest[-1:]]), [0.25, 0.5, 0.25], "valid")
    p = np.maximum(p + np.interp(np.sqrt(q), r / s, smooth), 0)
    if p[0] == 0:  # a hole in the middle is no spot
        return 1.0, table
    p = p / p[0]
    p = np.minimum(p, np.minimum.accumulate(p) + 0.03)
    return s, p * np.clip((49 - q) / 13, 0, 1)
