"""The spots of one frame: fit, decide, and convert to columns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ..settings.detection import DetectionSettings
from .bodies import find_bodies
from .candidates import Seen, look
from .decision import decide
from .fitted import Fitted, fit_in_grey
from .model import SpotModel
from .noise import masked
from .position_cpu import AMPLITUDE, LEVEL, SIZE, X, Y, Z
from .sample import checked, prepared
from .spectrum import Maxima, Transform
from .stabilise import stabilised, uncut
from .tiles import Tile, tiles

FEATURES = (
    "quality", "probability", "amplitude", "background", "radius", "snr", "misfit",
    "position_error_z", "position_error_y", "position_error_x",
)  # fmt: skip
"""Columns of a detection: see `outbid.detect`."""


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
    """

    position: NDArray[np.float64]
    features: dict[str, NDArray[np.float64]]
    keep: int


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
    pieces = tiles(voxels.shape, model.sigma)
    if len(pieces) == 1:
        parts = [_part(voxels, pieces[0], model, how)]
    else:
        with ThreadPoolExecutor(how.workers) as pool:
            parts = list(pool.map(lambda tile: _part(voxels, tile, model, replace(how, workers=1)), pieces))
    significance = np.concatenate([part.significance for part in parts])
    fitted = Fitted(
        *(np.concatenate([getattr(part.fitted, name) for part in parts]) for name in Fitted._fields)
    )
    choice = decide(
        significance,
        lambda u: np.sum([part.share * part.maxima.above(u) for part in parts], axis=0),
        max(part.least for part in parts),
        settings.fdr,
    )
    quality = significance[choice.order]
    keep = choice.keep if settings.threshold is None else int((quality > settings.threshold).sum())
    columns = {"quality": quality, "probability": choice.probability}
    columns |= {name: values[choice.order] for name, values in _columns(fitted, model, settings).items()}
    return Found(fitted.spots[choice.order, Z : X + 1] * settings.spacing, columns, keep)


class _Part(NamedTuple):
    """Candidates of a tile, its noise, and the share of it that is theirs."""

    significance: NDArray[np.float64]
    fitted: Fitted
    maxima: Maxima
    least: float
    share: float


def _part(voxels: NDArray[np.float32], tile: Tile, model: SpotModel, how: Transform) -> _Part:
    whole = np.ascontiguousarray(voxels[:, tile.rows, tile.columns])
    values = stabilised(uncut(whole, model.sigma, model.noise.top), model.noise)
    seen = look(values, model.sigma, model.noise, how)
    seen = seen.of(np.isfinite(whole[tuple(np.rint(seen.place).astype(int).T)]))
    seen = seen.of(_best_of_each(seen, whole >= model.noise.top))
    fitted = fit_in_grey(whole, values, seen, model.sigma, model.noise)
    fitted.spots[:, Y : X + 1] += tile.start
    own = tile.owns(fitted.spots[:, Y : X + 1])
    return _Part(seen.significance[own], fitted.of(own), seen.maxima, seen.least, tile.share)


def _best_of_each(seen: Seen, cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n,): which candidates are outside saturated regions, or the brightest in theirs.

    Where profiles are cut, two do not differ from one.
    """
    label = ndimage.label(cut)[0][tuple(np.rint(seen.place).astype(int).T)]
    best = np.zeros(label.max(initial=0) + 1)
    np.maximum.at(best, label, seen.height)
    return (label == 0) | (seen.height >= best[label])


def _columns(fitted: Fitted, model: SpotModel, settings: DetectionSettings) -> dict[str, NDArray[np.float64]]:
    """Columns of candidates in the units of the movie."""
    spots, error, noise = fitted.spots, fitted.error, model.noise
    misfit = error[:, 6]
    spread = error[:, :3] * np.sqrt(np.maximum(misfit, 1.0))[:, None] * settings.spacing
    level = fitted.light + spots[:, LEVEL]
    variance = np.maximum(noise.base + noise.slope * (level + spots[:, AMPLITUDE]), noise.least)
    sign = -1.0 if settings.dark else 1.0
    return {
        "amplitude": spots[:, AMPLITUDE] * model.unit,
        "background": sign * level * model.unit + model.middle,
        "radius": (settings.radius or 0.0) * np.exp(spots[:, SIZE]),
        "snr": spots[:, AMPLITUDE] / np.sqrt(variance),
        "misfit": misfit,
        "position_error_z": spread[:, 0], "position_error_y": spread[:, 1], "position_error_x": spread[:, 2],
    }  # fmt: skip


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
