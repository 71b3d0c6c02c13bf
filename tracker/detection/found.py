"""The spots of one frame: fit, decide, and convert to columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bodies import find_bodies
from .decision import decide
from .joint import Candidates, fit_together, light_of
from .model import SpotModel
from .noise import Noise, masked
from .position_cpu import AMPLITUDE, LEVEL, SIZE, X, Z, fit_spots
from .sample import checked, prepared
from .spectrum import Filter, Modes, Transform, spectrum
from .spots import DetectionSettings
from .stabilise import grey, stabilised

FEATURES = (
    "quality", "probability", "amplitude", "background", "radius", "snr", "misfit",
    "position_error_z", "position_error_y", "position_error_x",
)  # fmt: skip
"""Columns of a detection: see `outbid.detect`."""
_PASSES = 4  # of the spectrum, at most: of the frame, and of what is left without the sure spots
_MORE = 1.1  # times as many sure spots as before, without which the passes end
_KEPT = 0.05  # share of the spots' power that may be left by a profile that differs
_TAIL = 3.0  # standard deviations of minima whose depths say how wide noise's tail is
_TAIL_PRIOR = 4  # minima of the computed depth beside them, a prior
_REACH = 3.5  # widths about a spot in which it is fitted
_TURNS = 4  # of the fit
_SIZES = 0.12  # standard deviation of the logarithm of a spot's size, a prior
_STEPS = np.array([0.3, 0.3, 0.3, 0.5, np.inf, 0.2])  # largest: widths, share of the amplitude, -, logarithm


@dataclass(frozen=True, eq=False)
class Found:
    """All candidates of a frame, best first.

    Parameters
    ----------
    position : (n, 3) float64 array
        Voxel centres times `spacing`.
    features : dict of str to (n,) float64 array
        `FEATURES`.
    keep : int
        Number of candidates that are accepted as spots.
    spread : float
        Of the residual, in standard deviations of the noise.
    """

    position: NDArray[np.float64]
    features: dict[str, NDArray[np.float64]]
    keep: int
    spread: float = 1.0


def empty() -> Found:
    """A frame without candidates."""
    return Found(np.empty((0, 3)), {name: np.empty(0) for name in FEATURES}, 0)


def find_in(
    image: NDArray, frame: int, model: SpotModel, settings: DetectionSettings, how: Transform
) -> Found:
    """Find the spots of a frame.

    Parameters
    ----------
    image : (Z, Y, X) array of real numbers
    frame : int
        For messages.
    model : SpotModel
    settings : DetectionSettings
        Settings with radii, as `learn` returns them together with the model.
    how : Transform
    """
    voxels = prepared(checked(image, frame), settings, model.middle, model.unit)
    voxels[masked(voxels, model.noise)] = np.nan
    if not np.isfinite(voxels).any():
        return empty()
    if settings.bodies:
        return _bodies(voxels, model, settings)
    values = stabilised(voxels, model.noise)
    seen, significance, filter_, least, spread = _candidates(values, model, how)
    known = np.isfinite(voxels[tuple(np.rint(seen.place).astype(int).T)])
    seen, significance = seen.of(known), significance[known]
    choice = decide(significance, filter_.false, least, settings.fdr)
    quality = significance[choice.order]
    keep = choice.keep if settings.threshold is None else int((quality > settings.threshold).sum())
    columns = {"quality": quality, "probability": choice.probability}
    ground = _background(values, seen.of(significance > filter_.least()), filter_, how)
    position, more = _columns(voxels, ground, seen, filter_, model, settings)
    columns |= {name: column[choice.order] for name, column in more.items()}
    return Found(position[choice.order] * settings.spacing, columns, keep, spread)


def _candidates(
    values: NDArray[np.float32], model: SpotModel, how: Transform
) -> tuple[Candidates, NDArray[np.float64], Filter, float, float]:
    """Candidates, significances, filter, the least significance looked down to, and the residual's spread."""
    modes = Modes(values.shape)
    mean = np.float32(values.mean(dtype=np.float64))
    first = spectrum(modes, how.forward(values - mean))
    filter_ = Filter(modes, model.sigma, first)
    sure = 0
    for turn in range(_PASSES):
        seen, rest, least = fit_together(values - mean, filter_, how)
        before, bright = sure, seen.of(seen.significance > filter_.least())
        sure = len(bright.place)
        if turn == _PASSES - 1 or (turn and sure <= _MORE * before):
            break
        light = light_of(values.shape, bright, filter_)
        left = spectrum(modes, how.forward(values - mean - light))
        with np.errstate(invalid="ignore"):
            power = left + _KEPT * np.maximum(first - left, 0)
        power[0, 0, 0] = np.inf
        filter_ = Filter(modes, model.sigma, power)
    return seen, seen.significance / _tail(rest, filter_), filter_, least, 1.0


def _tail(rest: NDArray[np.float32], filter_: Filter) -> float:
    """How much wider than a Gaussian's the tail of the minima is, at least 1."""
    from .response import local_maxima

    deep = -rest[tuple(local_maxima(-rest, _TAIL).T)].astype(np.float64)
    u = np.linspace(_TAIL, _TAIL + 5, 200)
    expected = float(np.average(u**2 - _TAIL**2, weights=-np.gradient(filter_.false(u))))
    mean = ((deep**2 - _TAIL**2).sum() + _TAIL_PRIOR * expected) / (len(deep) + _TAIL_PRIOR)
    return float(np.sqrt(max(1.0, mean / expected)))


def _background(
    values: NDArray[np.float32], sure: Candidates, filter_: Filter, how: Transform
) -> NDArray[np.float32]:
    """Uneven light without spots and noise: the Wiener filter of what is left (Wiener 1949)."""
    share = np.where(np.isfinite(filter_.power), np.maximum(1 - 1 / np.maximum(filter_.power, 1), 0), 1)
    return how.back(how.forward(values - light_of(values.shape, sure, filter_)) * share.astype(np.float32))


def _columns(
    voxels: NDArray[np.float32],
    ground: NDArray[np.float32],
    seen: Candidates,
    filter_: Filter,
    model: SpotModel,
    settings: DetectionSettings,
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Positions in voxels and columns of the candidates, fitted in grey values."""
    noise, n = model.noise, len(seen.place)
    at = tuple(np.rint(seen.place).astype(int).T)
    light = grey(ground, noise)
    here = ground[at]
    spots = np.zeros((n, 6))
    spots[:, Z : X + 1] = seen.place
    spots[:, AMPLITUDE] = grey(here + (seen.amplitude / filter_.scale).astype(np.float32), noise) - light[at]
    spots[:, AMPLITUDE] = np.maximum(spots[:, AMPLITUDE], 0.1 * np.sqrt(noise.least))
    wide = np.where(model.sigma > 0, model.sigma, 1.0)
    prior = np.array([*1 / wide**2, 1e-6 / noise.least, 1e-6 / noise.least, 1 / _SIZES**2])
    most = _STEPS * [*wide, 1, 1, 1]
    line = np.array([noise.base, noise.slope, noise.least, noise.top])
    error = fit_spots(voxels, light.copy(), spots, model.sigma, line, _REACH, prior, most, _TURNS)
    error[:, :3] *= np.sqrt(np.maximum(error[:, 4], 1.0))[:, None] * settings.spacing
    level = light[at] + spots[:, LEVEL]
    peak = _variance(noise, level + spots[:, AMPLITUDE])
    sign = -1.0 if settings.dark else 1.0
    return spots[:, Z : X + 1], {
        "amplitude": spots[:, AMPLITUDE] * model.unit,
        "background": sign * level * model.unit + model.middle,
        "radius": (settings.radius or 0.0) * np.exp(spots[:, SIZE]),
        "snr": spots[:, AMPLITUDE] / np.sqrt(peak),
        "misfit": error[:, 4],
        "position_error_z": error[:, 0], "position_error_y": error[:, 1], "position_error_x": error[:, 2],
    }  # fmt: skip


def _variance(noise: Noise, mean: NDArray) -> NDArray:
    return np.maximum(noise.base + noise.slope * mean, noise.least)


def _bodies(voxels: NDArray[np.float32], model: SpotModel, settings: DetectionSettings) -> Found:
    """The same columns for bodies; their position error is a fixed share of their width."""
    seen = find_bodies(voxels, model.sigma, settings.fdr)
    quality = seen.quality
    keep = seen.decision.keep if settings.threshold is None else int((quality > settings.threshold).sum())
    error = model.sigma * settings.spacing / np.maximum(quality, 1.0)[:, None]
    sign = -1.0 if settings.dark else 1.0
    voxel = np.rint(seen.place).astype(np.int64)
    level = np.nan_to_num(voxels[tuple(voxel.T)]).astype(np.float64) - seen.height
    one = np.ones(len(quality))
    columns = {
        "quality": quality, "probability": seen.decision.probability, "amplitude": seen.height * model.unit,
        "background": sign * level * model.unit + model.middle,
        "radius": (settings.radius or 0.0) * one, "snr": quality, "misfit": one,
        "position_error_z": error[:, 0], "position_error_y": error[:, 1], "position_error_x": error[:, 2],
    }  # fmt: skip
    return Found(seen.place * settings.spacing, columns, keep)
