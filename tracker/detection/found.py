"""The spots of one frame: fit, decide, and convert to columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .bodies import find_bodies
from .decision import decide
from .joint import find
from .joint_cpu import AMPLITUDE, LEVEL, LOG_SIZE, X, Z
from .model import SpotModel
from .noise import masked
from .sample import checked, prepared
from .scene import Scene, Work
from .scoring_cpu import errors
from .significance import empirical_significance, inflation, peak_snr
from .spots import DetectionSettings

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


def find_in(image: NDArray, frame: int, model: SpotModel, settings: DetectionSettings, work: Work) -> Found:
    """Find the spots of a frame.

    Parameters
    ----------
    image : (Z, Y, X) array of real numbers
    frame : int
        For messages.
    model : SpotModel
    settings : DetectionSettings
        Settings with radii, as `learn` returns them together with the model.
    work : Work
    """
    voxels = prepared(checked(image, frame), settings, model.middle, model.unit)
    voxels[masked(voxels, model.noise)] = np.nan
    if not np.isfinite(voxels).any():
        return empty()
    if settings.bodies:
        return _bodies(voxels, model, settings, work)
    scene, z = find(voxels, model.noise, model.optics, work, focus=model.focus)
    if settings.fdr is not None and scene.bright[1] > 0:
        scene.bright = (0.0, 0.0)  # what is usual in a crowd says nothing about how often noise is as high
        z = empirical_significance(scene)
    choice = decide(z, voxels.shape, scene.optics.sigma, settings.fdr)
    quality = z[choice.order]
    keep = choice.keep if settings.threshold is None else int((quality > settings.threshold).sum())
    position = scene.spots[choice.order, Z : X + 1]
    if voxels.shape[0] == 1:
        position[:, 0] = 0.0
    columns = {"quality": quality, "probability": choice.probability}
    columns |= _columns(scene, model, settings, choice.order)
    return Found(position * settings.spacing, columns, keep, scene.spread)


def _columns(
    scene: Scene,
    model: SpotModel,
    settings: DetectionSettings,
    order: NDArray[np.int64],
) -> dict[str, NDArray[np.float64]]:
    """The fitted values of each spot, in the units of the settings."""
    if len(order) == 0:
        return {name: np.empty(0) for name in FEATURES[2:]}
    spots = scene.spots
    error = errors(scene.frame, scene.noise, scene.optics, spots)
    # A profile that misfits displaces spots as well: errors grow by what chi-square says, and never shrink.
    error[:, :3] *= np.sqrt(inflation(scene) * np.maximum(error[:, 4], 1.0))[:, None]
    error[:, :3] *= settings.spacing
    sign = -1.0 if settings.dark else 1.0
    columns = {
        "amplitude": spots[:, AMPLITUDE] * model.unit,
        "background": sign * spots[:, LEVEL] * model.unit + model.middle,
        "radius": (settings.radius or 0.0) * np.exp(spots[:, LOG_SIZE]),
        "snr": peak_snr(scene),
        "misfit": error[:, 4],
        "position_error_z": error[:, 0] if not scene.optics.flat else np.zeros(len(error)),
        "position_error_y": error[:, 1],
        "position_error_x": error[:, 2],
    }
    return {name: values[order] for name, values in columns.items()}


def _bodies(voxels: NDArray[np.float32], model: SpotModel, settings: DetectionSettings, work: Work) -> Found:
    """The same columns for bodies; their position error is a fixed share of their width."""
    seen = find_bodies(voxels, model.optics.sigma, settings.fdr, work)
    quality = seen.quality
    keep = seen.decision.keep if settings.threshold is None else int((quality > settings.threshold).sum())
    error = model.optics.sigma * settings.spacing / np.maximum(quality, 1.0)[:, None]
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
